/**
 * A CNO as an object that other event loops can watch, like a file descriptor. Node's event loop
 * uses the event 'readable', that of a worker thread a word of shared memory.
 */
import { showAs } from '../../spi/checks/index.js';
import { EventEmitter } from 'node:events';
import type { ProcessHold } from '../../spi/index.js';
import { changeHold, HOLD, hasRef } from '../../spi/time/hold.js';
import type { Evd } from '../evd.js';

/** The CNO's side of its handle. */
export interface HandleSource {
  isTriggered(): boolean;
  take(): Evd | undefined;
}

interface HandleEvents {
  /** The CNO has become triggered; the EVD is a hint. */
  readable: [evd: Evd | undefined];
  /** The CNO has been freed, or its adapter closed. */
  close: [];
  /** Members of EventEmitter that run before a listener is added and after it has been removed. */
  newListener: [name: string | symbol, listener: () => void];
  removeListener: [name: string | symbol, listener: () => void];
}

/**
 * Readable while its CNO is TRIGGERED. 'readable' is emitted once each time it becomes so, and not
 * again before `take()`. Take first, then dequeue from all EVDs of the CNO until each is empty:
 * that order loses nothing. Listeners of 'readable' keep the process alive, unless `unref()` has
 * been called.
 */
export class CnoHandle extends EventEmitter<HandleEvents> {
  static {
    showAs(this, 'CnoHandle', ({ readable, hold, closed }) => {
      return { readable, ref: hasRef(hold), closed };
    });
  }

  /**
   * One word of shared memory that counts the triggers (modulo 2^32), for a worker thread that
   * cannot listen: `Atomics.wait` or `Atomics.waitAsync` on index 0 wakes at each of them.
   */
  readonly word = new Int32Array(new SharedArrayBuffer(4));
  /** Bits of HOLD. */
  private hold = 0;
  private closed = false;

  /** @internal */
  constructor(
    private readonly source: HandleSource,
    private readonly processHold: ProcessHold,
  ) {
    super();
    // 'newListener' comes before the listener is counted, 'removeListener' after.
    this.on('newListener', (name) => this.update(name === 'readable' ? 1 : 0));
    this.on('removeListener', () => this.update());
  }

  get readable(): boolean {
    return this.source.isTriggered();
  }

  /**
   * Takes the trigger, so that the next one is reported. Returns the EVD that fired it, as a hint.
   * Undefined also when there was no trigger to take (ask `readable` first).
   */
  take(): Evd | undefined {
    return this.source.take();
  }

  /** Lets listeners keep the process alive: the default. */
  ref(): this {
    this.hold = changeHold(this.processHold, this.hold, HOLD.UNREF, false);
    return this;
  }

  /** Lets the process exit despite listeners. */
  unref(): this {
    this.hold = changeHold(this.processHold, this.hold, HOLD.UNREF, true);
    return this;
  }

  hasRef(): boolean {
    return hasRef(this.hold);
  }

  /** @internal the CNO has been triggered, whatever takes it */
  count(): void {
    Atomics.add(this.word, 0, 1);
    Atomics.notify(this.word, 0);
  }

  /** @internal */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.update();
    Atomics.notify(this.word, 0);
    this.emit('close');
  }

  private update(coming = 0): void {
    const listeners = this.listenerCount('readable') + coming;
    const engaged = !this.closed && listeners > 0;
    this.hold = changeHold(this.processHold, this.hold, HOLD.ENGAGED, engaged);
  }
}
