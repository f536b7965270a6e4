/**
 * The GRH areas of datagrams that have come and are not dequeued: taken out of the receive buffer
 * when the completion is seen, because afterwards the buffer is the consumer's to post again.
 */
import { assert } from '../../spi/checks/index.js';
import { GRH_LENGTH } from '../../spi/index.js';

export class GrhQueue {
  private bytes: Uint8Array;
  private capacity: number;
  private head = 0;
  private count = 0;

  /** @param capacity headers that fit without growing; at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity;
    this.bytes = new Uint8Array(capacity * GRH_LENGTH);
  }

  /** Appends the 40 bytes at `offset`; zeros, where memory has been taken away. */
  push(memory: Uint8Array, offset: number): void {
    if (this.count === this.capacity) this.grow();
    const at = ((this.head + this.count) % this.capacity) * GRH_LENGTH;
    for (let i = 0; i < GRH_LENGTH; i++) this.bytes[at + i] = memory[offset + i] ?? 0;
    this.count++;
  }

  /** Takes the oldest; a copy. */
  shift(): Uint8Array {
    assert(this.count > 0, 'a datagram that is taken has a header');
    const at = this.head * GRH_LENGTH;
    this.head = (this.head + 1) % this.capacity;
    this.count--;
    return this.bytes.slice(at, at + GRH_LENGTH);
  }

  private grow(): void {
    const next = new Uint8Array(this.bytes.length * 2);
    const first = this.bytes.subarray(this.head * GRH_LENGTH);
    next.set(first);
    next.set(this.bytes.subarray(0, this.head * GRH_LENGTH), first.length);
    this.bytes = next;
    this.capacity *= 2;
    this.head = 0;
  }
}
