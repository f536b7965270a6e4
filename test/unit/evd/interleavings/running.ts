/** Upcalls that go on after their call has returned. */
import assert from 'node:assert/strict';
import { DatError } from '../../../../core/errors/index.js';
import type { Evd, Upcall } from '../../../../core/evd/index.js';
import type { EvdWorld } from './evd-world.js';
import { internalsOf } from './fingerprint.js';
import { Fatal, Thenable } from './rules.js';

/** An upcall in progress that has outlived its call. */
export interface Running {
  readonly upcall: Upcall;
  readonly end: (error?: unknown) => void;
  /** Calls that its asynchronous part awaits, each of which would wait for that to end. */
  readonly awaitOwnEnd?: (call: (evd: Evd) => Promise<void>) => void;
  /** Such a call has been answered, or none is under way. */
  isAnswered?: boolean;
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
    isAnswered: true,
    end: (error) => {
      leave(world, running);
      tell(() => {
        if (error !== undefined) throw error as Error;
        return 'over';
      });
    },
    awaitOwnEnd: (call) => {
      running.isAnswered = false;
      tell(async () => {
        await refused(world, () => deep(2 * SHOWN, () => call(world.evd)));
        running.isAnswered = true;
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

/** The call is an error, and has changed nothing. */
async function refused({ evd }: EvdWorld, call: () => Promise<void>): Promise<void> {
  const state = (): unknown[] => [evd.isFreed, internalsOf(evd).upcalls.gate.policy];
  const before = state();
  const error: unknown = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const isRefusal = DatError.isDatError(error) && error.code === 'DAT_INVALID_STATE';
  if (!isRefusal) throw new Fatal(`an upcall that awaits its own end got ${String(error)}`);
  assert.deepEqual(state(), before);
}

async function deep(calls: number, call: () => Promise<void>): Promise<void> {
  const { stackTraceLimit } = Error;
  const go = (left: number): Promise<void> => (left === 0 ? call() : go(left - 1));
  Error.stackTraceLimit = SHOWN;
  try {
    return go(calls);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
