/** Runs the upcalls that the gate allows: hands events to the handler and tracks its end. */
import type { Scheduler } from '../../spi/index.js';
import type { DatEvent } from '../events/event.js';
import type { EvdRecord } from '../evd-record.js';
import type { EventStore } from '../queue/event-store.js';
import { UpcallGate } from './gate.js';
import {
  callHandler,
  currentUpcall,
  type NotifyHandler,
  Upcall,
  type UpcallHandler,
} from './upcall.js';

// Identifies an upcall in the asynchronous part of its handler, where it is on no call stack. An
// async function with a name of its own awaits the handler's promise. V8 walks from the running
// code, through the promises that depend on it, to the functions that await them. If one of our
// names is among those, that upcall cannot end before the code has. It costs nothing until it is
// used. It does not find code that the upcall awaits by other ways (a callback that resolves a
// promise).

/** An upcall that has outlived its call. */
interface UpcallFrame {
  readonly name: string;
  /** Awaits the promise; its function name is the frame's. */
  readonly follow: (result: PromiseLike<void>) => Promise<void>;
}

/** Upcalls of all EVDs that have outlived their call, by the names of their frames. */
const outlived = new Map<string, Upcall>();
/** Frames of upcalls that have ended. */
const idle: UpcallFrame[] = [];
let made = 0;

/** Takes a frame, which awaits the handler's promise so that the upcall can be found. */
function enterFrame(upcall: Upcall): UpcallFrame {
  const frame = idle.pop() ?? newFrame();
  outlived.set(frame.name, upcall);
  return frame;
}

/** The upcall has ended. */
function leaveFrame(frame: UpcallFrame): void {
  outlived.delete(frame.name);
  idle.push(frame);
}

/** The upcall in progress that made the call, or that awaits the calling code. */
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

/** The first upcall among the async functions that await the running code. */
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

/** A stream that owns the upcalls of an EVD. */
export interface UpcallLessee {
  /** The upcalls are lost: another handler, TEARDOWN by the consumer, or the end of the EVD. */
  upcallsLost(): void;
}

export class UpcallRunner {
  readonly gate = new UpcallGate();
  handler: UpcallHandler | NotifyHandler | undefined;
  lessee: UpcallLessee | undefined = undefined;

  constructor(
    private readonly store: EventStore,
    private readonly record: EvdRecord,
    private readonly scheduler: Scheduler,
  ) {}

  /** Starts at most `budget` upcalls; returns the rest: 0 also when the turn is over. */
  run(budget: number): number {
    let left = budget;
    while (left > 0 && this.gate.mayStart(this.store.pending)) {
      if (left < budget && !this.scheduler.mayStart()) return 0;
      if (!this.start()) break;
      left--;
    }
    return left;
  }

  private start(): boolean {
    const handler = this.handler;
    if (handler === undefined) return false;
    const carriesEvent = this.gate.carriesEvent;
    const event = carriesEvent ? this.store.take() : undefined;
    if (carriesEvent && event === undefined) return false;
    // Events from here on start an upcall by themselves.
    if (this.store.pending === 0) this.gate.due = false;
    const more = this.store.pending > 0 || this.store.scan() > 0;
    const upcall = new Upcall(this.record.evd, more);
    this.gate.begin(upcall);
    try {
      const result = callHandler(handler, event, upcall);
      if (isPromiseLike(result)) {
        this.follow(result, event, upcall);
        return true;
      }
    } catch (error) {
      this.record.upcallFailed(error, event);
    }
    this.gate.end(upcall);
    return true;
  }

  /** The upcall lasts until the handler's promise settles. */
  private follow(result: PromiseLike<void>, event: DatEvent | undefined, upcall: Upcall): void {
    const frame = result instanceof Promise ? enterFrame(upcall) : undefined;
    let over = false;
    const end = (): void => {
      if (over) return;
      over = true;
      if (frame !== undefined) leaveFrame(frame);
      this.gate.end(upcall);
      this.record.upcallEnded();
    };
    const fail = (error: unknown): void => {
      if (!over) this.record.upcallFailed(error, event);
      end();
    };
    (frame?.follow(result) ?? result).then(end, fail);
  }
}

/** A thenable as in JavaScript: an object with a method `then`. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (typeof value !== 'object' || value === null) return false;
  return typeof (value as Partial<PromiseLike<T>>).then === 'function';
}
