/**
 * A completion queue in memory: notification is one-shot and edge-triggered, as docs/spi.md says.
 */
import {
  CQE,
  CQE_BYTES,
  type AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  type PollingMode,
  Ring,
  SpiError,
  WcFlags,
  WcOpcode,
  WcStatus,
  ringEntries,
} from '../../../core/spi/index.js';

export interface FakeCompletion {
  readonly context: number;
  readonly cookie?: number;
  readonly status?: number;
  readonly opcode?: number;
  readonly flags?: number;
  readonly lengthBytes?: number;
  readonly immediate?: number;
}

export class FakeCq implements CompletionQueue {
  ring: Ring;
  armed: 'none' | 'solicited' | 'next' = 'none';
  /** A notification is on its way; `deliver` brings it. */
  notification = false;
  arms = 0;
  /** Arm calls that are to fail. */
  failArms = 0;
  destroyed = false;
  polling: PollingMode = 'event';
  /** Where a device's own thread may interfere. */
  beforePoll: () => void = () => undefined;
  beforeArm: () => void = () => undefined;

  constructor(private readonly init: CompletionQueueInit) {
    this.ring = Ring.allocate(ringEntries(init.minEntries), CQE_BYTES);
  }

  poll(): number {
    this.checkAlive();
    this.beforePoll();
    return this.ring.length;
  }

  arm(solicitedOnly: boolean): void {
    this.checkAlive();
    this.beforeArm();
    this.arms++;
    if (this.failArms > 0) {
      this.failArms--;
      throw new SpiError('EIO', 'the device does not arm');
    }
    if (this.armed !== 'next') this.armed = solicitedOnly ? 'solicited' : 'next';
  }

  /** The device completes something. */
  add(completion: FakeCompletion): void {
    const { status = WcStatus.SUCCESS, opcode = WcOpcode.SEND, flags = 0 } = completion;
    const { cookie = 0, lengthBytes = 0, immediate = 0 } = completion;
    const ring = this.ring;
    if (ring.length === ring.entries) throw new Error('fake cq: ring full');
    const at = ring.wordOf(ring.producer);
    ring.words.fill(0, at, at + CQE.WORDS);
    ring.words[at + CQE.CONTROL] = status | (opcode << 8) | (flags << 16);
    ring.words[at + CQE.COOKIE_LO] = cookie >>> 0;
    ring.words[at + CQE.COOKIE_HI] = Math.floor(cookie / 2 ** 32);
    ring.words[at + CQE.BYTE_LENGTH] = lengthBytes;
    ring.words[at + CQE.IMMEDIATE_OR_INVALIDATE] = immediate;
    ring.words[at + CQE.QP_CONTEXT] = completion.context;
    ring.producer = ring.producer + 1;
    const loud = status !== WcStatus.SUCCESS || (flags & WcFlags.SOLICITED) !== 0;
    if (this.armed === 'next' || (this.armed === 'solicited' && loud)) this.fire();
  }

  fire(): void {
    this.armed = 'none';
    this.notification = true;
  }

  /** The notification arrives, if there is one. */
  deliver(): boolean {
    if (!this.notification) return false;
    this.notification = false;
    this.init.onNotify();
    return true;
  }

  event(event: AsyncEventType): void {
    this.init.onEvent(event);
  }

  setPolling(mode: PollingMode): void {
    this.polling = mode;
  }

  resize(minEntries: number): void {
    const old = this.ring;
    const ring = Ring.allocate(ringEntries(minEntries), CQE_BYTES);
    if (old.length > ring.entries) throw new SpiError('EINVAL', `${old.length} completions`);
    let to = 0;
    for (let from = old.consumer; from !== old.producer; from = (from + 1) >>> 0) {
      const at = old.wordOf(from);
      ring.words.set(old.words.subarray(at, at + CQE.WORDS), ring.wordOf(to++));
    }
    ring.producer = to;
    this.ring = ring;
  }

  destroy(): void {
    this.destroyed = true;
  }

  private checkAlive(): void {
    if (this.destroyed) throw new SpiError('EINVAL', 'the completion queue is destroyed');
  }
}
