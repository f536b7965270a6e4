/** A completion queue of a stranger's device: what has no room in the ring waits behind it. */
import {
  AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  CQE,
  CQE_BYTES,
  Ring,
  ringEntries,
  SpiError,
} from 'dapl/spi';
import type { Mutant } from './mutants.js';

export interface CompletionWords {
  readonly status: number;
  readonly opcode: number;
  readonly qpn: number;
  readonly cookie: readonly [number, number];
  readonly index: number;
  readonly context: number;
  readonly bytes?: number;
  readonly immediate?: number;
  readonly flags?: number;
}

const SOLICITED_OR_FAILED = 'solicited';

export class StrangerCompletionQueue implements CompletionQueue {
  ring: Ring;
  users = 0;
  /** Told at most once of an overrun. */
  private broken = false;
  private armed: 'no' | 'any' | typeof SOLICITED_OR_FAILED = 'no';
  private room: number;

  constructor(
    private readonly init: CompletionQueueInit,
    private readonly defer: (task: () => void) => void,
    private readonly mutant: Mutant | undefined,
    private readonly onOverrun: (cq: StrangerCompletionQueue) => void,
  ) {
    this.room = init.minEntries;
    this.ring = Ring.allocate(ringEntries(init.minEntries), CQE_BYTES);
  }

  add(words: CompletionWords, isSolicited = false): void {
    if (this.ring.length >= Math.min(this.ring.entries, Math.max(this.room, 1))) {
      if (this.mutant === 'overruns in silence' || this.broken) return;
      this.broken = true;
      this.defer(() => this.init.onEvent(AsyncEventType.CQ_ERR));
      this.onOverrun(this);
      return;
    }
    this.write(this.ring, words);
    if (this.mutant === 'completes out of order' && this.ring.length === 2) this.swap();
    const wakes = this.armed === 'any' || words.status !== 0 || isSolicited;
    const notifies = (this.armed !== 'no' && wakes) || this.mutant === 'notifies unarmed';
    if (!notifies) return;
    this.armed = 'no';
    this.defer(() => this.init.onNotify());
  }

  poll(): number {
    return this.ring.length;
  }

  arm(solicitedOnly: boolean): void {
    if (this.mutant === 'notifies inside a call' && this.ring.length > 0) {
      this.init.onNotify();
      return;
    }
    if (this.armed !== 'any') this.armed = solicitedOnly ? SOLICITED_OR_FAILED : 'any';
  }

  setPolling(): void {
    // It always works in turns of the event loop.
  }

  resize(minEntries: number): void {
    const { ring } = this;
    if (ring.length > minEntries) {
      throw new SpiError('EINVAL', `${ring.length} completions wait, ${minEntries} have room`);
    }
    const larger = Ring.allocate(ringEntries(minEntries), CQE_BYTES);
    for (let i = 0; i < ring.length; i++) {
      const from = ring.wordOf(ring.consumer + i);
      larger.words.set(ring.words.subarray(from, from + CQE.WORDS), larger.wordOf(i));
      larger.producer = i + 1;
    }
    this.ring = larger;
    this.room = minEntries;
  }

  destroy(): void {
    if (this.users > 0) throw new SpiError('EBUSY', `${this.users} queue pairs use it`);
  }

  private write(ring: Ring, words: CompletionWords): void {
    const at = ring.wordOf(ring.producer);
    const { status, opcode, flags = 0, qpn, cookie, bytes = 0, immediate = 0 } = words;
    ring.words.fill(0, at, at + CQE.WORDS);
    ring.words[at + CQE.CONTROL] = status | (opcode << 8) | (flags << 16);
    ring.words[at + CQE.QPN] = qpn;
    ring.words.set(cookie, at + CQE.COOKIE_LO);
    ring.words[at + CQE.BYTE_LENGTH] = bytes;
    ring.words[at + CQE.IMMEDIATE_OR_INVALIDATE] = immediate;
    ring.words[at + CQE.WQE_INDEX] = words.index;
    ring.words[at + CQE.QP_CONTEXT] = words.context;
    ring.producer = (ring.producer + 1) >>> 0;
  }

  private swap(): void {
    const { ring } = this;
    const [one, two] = [ring.wordOf(ring.consumer), ring.wordOf(ring.consumer + 1)];
    const first = ring.words.slice(one, one + CQE.WORDS);
    ring.words.copyWithin(one, two, two + CQE.WORDS);
    ring.words.set(first, two);
  }
}
