/**
 * How an upcall is recognized in the asynchronous part of its handler, where it is on no call
 * stack: an async function of its own name awaits the handler's promise. V8 walks from the code
 * that runs, through the promises that depend on it, to the functions that await them; where a
 * name of ours is among those, that upcall cannot end before the code has. It costs nothing until
 * it is asked for. Code that the upcall awaits by other ways (a callback that resolves a promise)
 * is not found.
 */
import { type Upcall, currentUpcall } from './upcall.js';

/** An upcall that has outlived its call. */
export interface UpcallFrame {
  readonly name: string;
  /** Awaits; its name is the frame's. */
  readonly follow: (result: PromiseLike<void>) => Promise<void>;
}

/** Of all EVDs, by the names of their frames. */
const outlived = new Map<string, Upcall>();
/** Of upcalls that have ended. */
const idle: UpcallFrame[] = [];
let made = 0;

/** What awaits the promise of its handler, so that the upcall can be found. */
export function enterFrame(upcall: Upcall): UpcallFrame {
  const frame = idle.pop() ?? newFrame();
  outlived.set(frame.name, upcall);
  return frame;
}

/** The upcall has ended. */
export function leaveFrame(frame: UpcallFrame): void {
  outlived.delete(frame.name);
  idle.push(frame);
}

/** The upcall in progress that made the call, or awaits the code that does. */
export function callingUpcall(): Upcall | undefined {
  return currentUpcall() ?? (outlived.size > 0 ? awaiting() : undefined);
}

function newFrame(): UpcallFrame {
  const name = `upcall ${++made}`;
  const named = {
    async [name](result: PromiseLike<void>): Promise<void> {
      await result;
    },
  };
  return { name, follow: named[name]! };
}

/** The first upcall among the async functions that await the code that runs now. */
function awaiting(): Upcall | undefined {
  const v8: { prepareStackTrace?: unknown; stackTraceLimit: number } = Error;
  const saved = { prepareStackTrace: v8.prepareStackTrace, stackTraceLimit: v8.stackTraceLimit };
  const holder: { stack?: unknown } = {};
  try {
    v8.stackTraceLimit = Infinity;
    v8.prepareStackTrace = (_: Error, sites: readonly NodeJS.CallSite[]) => sites;
    Error.captureStackTrace(holder);
    const sites = holder.stack as readonly NodeJS.CallSite[];
    const name = sites
      .map((site) => site.getFunctionName() ?? '')
      .find((each) => outlived.has(each));
    return name === undefined ? undefined : outlived.get(name);
  } finally {
    Object.assign(v8, saved);
  }
}
