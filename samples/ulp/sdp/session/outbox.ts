/** Outgoing messages: numbers them, and keeps to the credits and the room at the host. */
import { type Body, headBytes } from '../wire/index.js';
import type { CreditClass, Credits } from './credits.js';
import type { SessionHost } from './host.js';

const NOTHING: readonly Uint8Array[] = [];

export class Outbox {
  /** Flags that every message carries until they are cleared. */
  private standing = 0;

  constructor(
    private readonly host: SessionHost,
    private readonly credits: Credits,
  ) {}

  /**
   * True if a message of that class can be sent now.
   * @param requests that it needs, including those before it
   */
  may(kind: CreditClass, requests = 1): boolean {
    return this.host.requestsFree >= requests && this.credits.allows(kind);
  }

  raise(flag: number, isUp: boolean): void {
    this.standing = isUp ? this.standing | flag : this.standing & ~flag;
  }

  /** Sends a message without a payload, if possible now. */
  control(body: Body, isSolicited = false): boolean {
    if (!this.may('control')) return false;
    this.send(body, NOTHING, 0, 0, isSolicited);
    return true;
  }

  /** Sends a message that `may` has allowed. @returns its sequence number */
  send(
    body: Body,
    payload: readonly Uint8Array[],
    payloadBytes: number,
    flags = 0,
    isSolicited = false,
  ): number {
    const sequence = this.credits.take(flags | this.standing);
    this.host.post({ body, sequence, payload, payloadBytes, isSolicited });
    return sequence.mseq;
  }

  /** Tells the peer about receives, if a message can be sent now. */
  update(): boolean {
    if (!this.credits.owesUpdate || !this.may('update')) return false;
    this.send({ mid: 'DATA' }, NOTHING, 0);
    return true;
  }
}

/** Bytes of payload that fit into a receive of the peer after that head. */
export function roomFor(mid: Body['mid'], receiveBytes: number): number {
  return Math.max(0, receiveBytes - headBytes(mid));
}
