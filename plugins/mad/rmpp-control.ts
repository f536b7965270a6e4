/**
 * ACK, STOP and ABORT (IBTA 13.6.2): MADs of 256 bytes that repeat the headers of the transfer.
 * They are best effort and only use free room on QP1, since strangers can trigger them; a lost one
 * is triggered again.
 */
import { type Logger, MAD_BYTES, type MadAddress } from '../../core/spi/index.js';
import type { MadPort } from './port.js';
import { postAnswer, type TransmissionOwner } from './transmission.js';
import { METHOD_RESPONSE_BIT } from '../../core/spi/modules/mad-header.js';
import {
  RMPP_FLAG,
  RMPP_NO_RESPONSE_TIME,
  RMPP_TYPE,
  RMPP_VERSION,
  emitRmppHeader,
} from './wire/rmpp-header.js';

const METHOD_OFFSET = 3;

export class RmppControl {
  constructor(
    private readonly port: MadPort,
    private readonly owner: TransmissionOwner,
    private readonly logger: Logger,
  ) {}

  /** @param headers of the transfer as received from the peer, RMPP header included */
  ack(headers: Uint8Array, peer: MadAddress, segmentNumber: number, newWindowLast: number): void {
    const data = towardsPeer(headers);
    this.post(data, peer, RMPP_TYPE.ACK, 0, segmentNumber, newWindowLast);
  }

  stop(headers: Uint8Array, peer: MadAddress, status: number): void {
    this.post(towardsPeer(headers), peer, RMPP_TYPE.STOP, status, 0, 0);
  }

  abort(headers: Uint8Array, peer: MadAddress, status: number): void {
    this.post(towardsPeer(headers), peer, RMPP_TYPE.ABORT, status, 0, 0);
  }

  /** @param headers of a transfer sent by us */
  abortOwn(headers: Uint8Array, peer: MadAddress, status: number): void {
    const data = new Uint8Array(MAD_BYTES);
    data.set(headers);
    this.post(data, peer, RMPP_TYPE.ABORT, status, 0, 0);
  }

  private post(
    data: Uint8Array,
    peer: MadAddress,
    type: number,
    status: number,
    segmentNumber: number,
    payloadLengthOrNewWindowLast: number,
  ): void {
    const { port, owner } = this;
    if (!port.hasRoom) return;
    const version = RMPP_VERSION;
    const responseTime = RMPP_NO_RESPONSE_TIME;
    const flags = RMPP_FLAG.ACTIVE;
    emitRmppHeader(
      { version, type, responseTime, flags, status, segmentNumber, payloadLengthOrNewWindowLast },
      data,
    );
    try {
      postAnswer(port, owner, data, peer);
    } catch (error) {
      this.logger.debug('an RMPP transfer cannot be answered', { error });
    }
  }
}

/** Flips the response bit, for the other direction of the exchange. */
function towardsPeer(headers: Uint8Array): Uint8Array {
  const data = new Uint8Array(MAD_BYTES);
  data.set(headers);
  data[METHOD_OFFSET] = (data[METHOD_OFFSET] ?? 0) ^ METHOD_RESPONSE_BIT;
  return data;
}
