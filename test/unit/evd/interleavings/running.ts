/** Upcalls that go on after their call has returned. */
import type { Upcall } from '../../../../core/evd/index.js';
import type { EvdWorld } from './evd-world.js';
import { Thenable } from './rules.js';

/** An upcall in progress that has outlived its call. */
export interface Running {
  readonly upcall: Upcall;
  readonly end: (error?: unknown) => void;
  /** Makes a call behind an `await` of its asynchronous part, deep in other calls. */
  readonly behindAwait?: (call: () => void) => void;
}

/** What a stack trace shows by itself, as Node has it; mocha asks for all. */
const SHOWN = 10;

/** What an asynchronous handler returns: settled when the search ends the upcall. */
export function goOn(world: EvdWorld, upcall: Upcall): PromiseLike<void> {
  if (world.space.isAsync === true) return goOnAsync(world, upcall);
  const thenable = new Thenable();
  const running: Running = {
    upcall,
    end: (error) => {
      leave(world, running);
      thenable.settle(error);
    },
  };
  world.running.push(running);
  return thenable;
}

/** What an async function is to do next. */
type Order = () => Promise<'on'> | 'over';

/** The same by an async function, which does in its asynchronous part what the search says. */
async function goOnAsync(world: EvdWorld, upcall: Upcall): Promise<void> {
  let tell: (order: Order) => void = () => undefined;
  const running: Running = {
    upcall,
    end: (error) => {
      leave(world, running);
      tell(() => {
        if (error !== undefined) throw error as Error;
        return 'over';
      });
    },
    behindAwait: (call) => {
      tell(async () => {
        await Promise.resolve();
        deep(2 * SHOWN, call);
        return 'on' as const;
      });
    },
  };
  world.running.push(running);
  for (;;) {
    const order = await new Promise<Order>((resolve) => (tell = resolve));
    if ((await order()) === 'over') return;
  }
}

function leave(world: EvdWorld, running: Running): void {
  world.running = world.running.filter((other) => other !== running);
}

function deep(calls: number, call: () => void): void {
  const { stackTraceLimit } = Error;
  const go = (left: number): void => (left === 0 ? call() : go(left - 1));
  Error.stackTraceLimit = SHOWN;
  try {
    go(calls);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
