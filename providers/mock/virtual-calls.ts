/** How an event loop in virtual time calls a task later: in a step of its own, at the same time. */
import type { LoopCalls } from '../host/index.js';
import { type VirtualClock, VirtualTimer } from './virtual-clock.js';

/** All microtasks of a step run before the next one: there is no need to tell them apart. */
export function virtualCalls(clock: VirtualClock): LoopCalls {
  const soon = (task: () => void) => (): void => void clock.soon(task);
  return {
    microtask: soon,
    lastMicrotask: soon,
    turn: (task) => {
      const step = new VirtualTimer(clock, task);
      return { request: () => step.arm(clock.now()), cancel: () => step.close() };
    },
    timer: (_, onDeadline) => new VirtualTimer(clock, onDeadline),
  };
}
