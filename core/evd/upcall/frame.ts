/**
 * How an upcall is recognized in the asynchronous part of its handler, where it is on no call
 * stack: an async function of its own name awaits the handler's promise. V8 walks from the code
 * that runs, through the promises that depend on it, to the functions that await them; where a
 * name of ours is among those, that upcall cannot end before the code has. It costs nothing until
 * it is asked for. Code that the upcall awaits by other ways (a callback that resolves a promise)
 * is not found.
 */

export class UpcallFrame {
  /** Awaits; its name is the frame's. */
  readonly follow: (result: PromiseLike<void>) => Promise<void>;

  /** @param name unique among the upcalls in progress, of all EVDs */
  constructor(readonly name: string) {
    const named = {
      async [name](result: PromiseLike<void>): Promise<void> {
        await result;
      },
    };
    this.follow = named[name]!;
  }
}

/** Names of the async functions that await the code that runs now. */
export function awaiting(): ReadonlySet<string> {
  const v8: { prepareStackTrace?: unknown; stackTraceLimit: number } = Error;
  const saved = { prepareStackTrace: v8.prepareStackTrace, stackTraceLimit: v8.stackTraceLimit };
  const holder: { stack?: unknown } = {};
  try {
    v8.stackTraceLimit = Infinity;
    v8.prepareStackTrace = (_: Error, sites: readonly NodeJS.CallSite[]) => sites;
    Error.captureStackTrace(holder);
    const sites = holder.stack as readonly NodeJS.CallSite[];
    return new Set(sites.map((site) => site.getFunctionName() ?? ''));
  } finally {
    Object.assign(v8, saved);
  }
}
