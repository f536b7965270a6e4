/** Lengths of a connection's requests, for the error of one that was too long. */
import type { ConnectionEvent } from '../evd/index.js';

export class RequestSizes {
  /** Bytes, by cookie. */
  private readonly bytes: Float64Array;
  private failedBytes = -1;

  /** @param requests how many may be posted at a time: cookies are below it */
  constructor(requests: number) {
    this.bytes = new Float64Array(requests);
  }

  set(cookie: number, lengthBytes: number): void {
    this.bytes[cookie] = lengthBytes;
  }

  /**
   * Keeps the size of a failed request. Its promise ends with the connection, whose last event has
   * the reason.
   */
  onFailed(cookie: number): void {
    this.failedBytes = this.bytes[cookie] as number;
  }

  /** Where a length has ended the connection: both lengths, as far as they are known here. */
  involved({ cause }: ConnectionEvent, bufferBytes: number): string {
    if (cause === 'LOCAL_LENGTH') return `: receives.bufferBytes is ${bufferBytes} here`;
    if (cause !== 'REMOTE_LENGTH' || this.failedBytes < 0) return '';
    return `: the message had ${this.failedBytes} bytes, and only the peer knows its own limit`;
  }
}
