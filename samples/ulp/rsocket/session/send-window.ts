/**
 * Position in the peer's receive buffer, and credits for messages. The buffer has two halves,
 * filled in turn: a message never straddles them, and the next half begins when the present one is
 * full.
 */
import {
  checkEnd,
  type ConnectionData,
  distance,
  LIST_ENTRIES,
  next16,
  type RemoteRegion,
  RsocketProtocolError,
  SEQUENCE_MASK,
} from '../wire/index.js';

export class SendWindow {
  /** The entry, of the two, that is being filled. */
  private current = 0;
  private readonly entries: (RemoteRegion | undefined)[];
  /** Bytes of the current entry that are filled. */
  private used = 0;
  /** DATA and IOMAP messages sent, modulo 2^16. */
  private sent = 0;
  /** The last message that may be sent, modulo 2^16. */
  private limit: number;
  /** The slot that the peer writes next. */
  private arriving = 1;
  private readonly credits: number;

  constructor({ buffer, credits }: ConnectionData) {
    this.entries = new Array<RemoteRegion | undefined>(LIST_ENTRIES).fill(undefined);
    this.entries[0] = buffer;
    this.limit = credits;
    this.credits = credits;
  }

  /** Messages that may still be sent: 0 to the credits that the peer announced. */
  get messages(): number {
    return distance(this.sent, this.limit);
  }

  /** Bytes that one message may have now. */
  get bytes(): number {
    const entry = this.entries[this.current];
    return entry === undefined || this.messages === 0 ? 0 : entry.length - this.used;
  }

  /** The entry for the next bytes, from `offset` on. Valid if `bytes` is not 0. */
  get entry(): RemoteRegion {
    return this.entries[this.current] as RemoteRegion;
  }

  get offset(): number {
    return this.used;
  }

  /** A DATA message of that many bytes, at most `bytes`, was sent. */
  fill(bytes: number): void {
    this.spend();
    this.used += bytes;
    if (this.used < this.entry.length) return;
    this.entries[this.current] = undefined;
    this.current = (this.current + 1) % LIST_ENTRIES;
    this.used = 0;
  }

  /** A message that takes a credit was sent. */
  spend(): void {
    this.sent = next16(this.sent, 1);
  }

  /** The slot of the target list that the peer has written with a received message. */
  get arrivingSlot(): number {
    return this.arriving;
  }

  /**
   * Handles a target entry. @throws RsocketProtocolError for an entry of no bytes, one that passes
   * the end of all addresses, or one that replaces an entry that is not full
   */
  grant(entry: RemoteRegion): void {
    const slot = this.arriving;
    if (entry.length === 0) throw new RsocketProtocolError('entry length', 0, '1 to 4294967295');
    checkEnd('entry', entry);
    if (this.entries[slot] !== undefined) {
      throw new RsocketProtocolError('entry', `in slot ${slot}`, 'in a slot that is used up');
    }
    this.entries[slot] = entry;
    this.arriving = (slot + 1) % LIST_ENTRIES;
  }

  /**
   * Handles a new limit for messages.
   * @param argument its low 16 bits are the limit
   * @throws RsocketProtocolError for a limit behind the last one, or beyond the announced credits
   */
  extend(argument: number): void {
    const limit = argument & SEQUENCE_MASK;
    const { sent, credits } = this;
    if (distance(sent, limit) > credits || distance(sent, limit) < this.messages) {
      const least = next16(sent, this.messages);
      const most = next16(sent, credits);
      throw new RsocketProtocolError('sequence limit', limit, `${least} to ${most}`);
    }
    this.limit = limit;
  }
}
