/** The time and chance of this machine, for a device that runs in real time. */
import { leaveUnhandled } from '../../core/spi/index.js';
import { clockOffsetUs, countCores, monotonicClock, SystemRandom } from './machine.js';
import type { HostTime, LoopCalls } from './event-loop.js';
import { NextTurn } from './next-turn.js';
import { onExit } from './process.js';
import { RealTimer } from './real-timer.js';

/** Its reactions are microtasks, at a third of what `queueMicrotask` costs. */
const SETTLED = Promise.resolve();

/** Ways to call a task later on the event loop of Node. */
export const NODE_CALLS: LoopCalls = {
  microtask: (task) => () => leaveUnhandled(SETTLED.then(task)),
  lastMicrotask: (task) => {
    // A tick that a microtask asks for comes when all of them have run.
    const askForTick = (): void => process.nextTick(task);
    return () => leaveUnhandled(SETTLED.then(askForTick));
  },
  turn: (task) => new NextTurn(task),
  timer: (clock, onDeadline, onEarly) => new RealTimer(clock, onDeadline, onEarly),
};

export function machineTime(): HostTime {
  return {
    clock: monotonicClock,
    calls: NODE_CALLS,
    random: new SystemRandom(),
    machine: { originUs: clockOffsetUs(), onExit, countCores },
  };
}
