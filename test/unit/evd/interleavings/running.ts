/** Upcalls that go on after their call has returned. */
import type { Upcall } from '../../../../core/evd/index.js';
import type { EvdWorld } from './evd-world.js';
import { Thenable } from './rules.js';

/** An upcall in progress that has outlived its call. */
export interface Running {
  readonly upcall: Upcall;
  readonly end: (error?: unknown) => void;
}

/** What an asynchronous handler returns: settled when the search ends the upcall. */
export function goOn(world: EvdWorld, upcall: Upcall): Thenable {
  const thenable = new Thenable();
  const running: Running = {
    upcall,
    end: (error) => {
      world.running = world.running.filter((other) => other !== running);
      thenable.settle(error);
    },
  };
  world.running.push(running);
  return thenable;
}
