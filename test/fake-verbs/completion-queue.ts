/** A completion ring filled by ibv_poll_cq. */
import type { CompletionQueue, CompletionQueueInit } from '../../core/spi/device.js';
import { CQE_BYTES, Ring, ringEntries } from '../../core/spi/ring.js';
import { SpiError } from '../../core/spi/spi-error.js';
import type { Dispatch } from './device.js';
import { check, made } from './library.js';

/** All of a ring's memory, as the addon takes it. */
export function memoryOf(ring: Ring): Uint32Array {
  return new Uint32Array(ring.buffer);
}

export class VerbsCompletionQueue implements CompletionQueue {
  readonly number: number;
  private current: Ring;

  constructor(
    private readonly dispatch: Dispatch,
    readonly init: CompletionQueueInit,
  ) {
    const ring = Ring.allocate(ringEntries(init.minEntries), CQE_BYTES);
    this.current = ring;
    this.number = made(
      'ibv_create_cq',
      dispatch.library.createCq(memoryOf(ring), ring.entries, ring.strideBytes),
    );
    dispatch.queues.set(this.number, this);
  }

  get ring(): Ring {
    return this.current;
  }

  poll(): number {
    const readable = this.dispatch.library.poll(this.number);
    if (readable < 0) throw new SpiError('EIO', 'ibv_poll_cq failed');
    return readable;
  }

  arm(solicitedOnly: boolean): void {
    const errno = this.dispatch.library.arm(this.number * 2 + (solicitedOnly ? 1 : 0));
    check('ibv_req_notify_cq', errno);
  }

  /** The completion channel's descriptor is what wakes us: every mode is 'event' here. */
  setPolling(): void {}

  resize(minEntries: number): void {
    const from = this.current;
    const to = Ring.allocate(ringEntries(minEntries), CQE_BYTES);
    const unread = from.length;
    if (unread > to.entries) {
      throw new SpiError('EINVAL', `resize to ${to.entries}: ${unread} completions are unread`);
    }
    for (let i = 0; i < unread; i++) {
      const at = from.wordOf(from.consumer + i);
      to.words.set(from.words.subarray(at, at + from.strideWords), to.wordOf(i));
    }
    to.producer = unread;
    const errno = this.dispatch.library.resizeCq(
      this.number,
      memoryOf(to),
      to.entries,
      to.strideBytes,
    );
    check('ibv_resize_cq', errno);
    this.current = to;
  }

  notify(): void {
    this.init.onNotify();
  }

  destroy(): void {
    check('ibv_destroy_cq', this.dispatch.library.destroyCq(this.number));
    this.dispatch.queues.delete(this.number);
  }
}
