/** iSCSI over TCP: an initiator's connection on a socket of node:net (RFC 7143). */
import { connect, type Socket } from 'node:net';
import { asIscsiError, IscsiError, type OutgoingPdu } from '../../session/initiator/index.js';
import { padBytes, PduStream, readTargetPdu, WireError } from '../../wire/index.js';
import type { InitiatorMover, MoverHost, Portal } from './mover.js';

const PADDING = new Uint8Array(3);

export class TcpInitiatorMover implements InitiatorMover {
  private readonly socket: Socket;
  private readonly stream: PduStream;
  private isOver = false;
  private isCorked = false;

  /** @param recvDataSegment the longest data segment that is declared to the target, in bytes */
  constructor(
    { address, port }: Portal,
    private readonly host: MoverHost,
    recvDataSegment: number,
  ) {
    this.stream = new PduStream(recvDataSegment);
    const socket = connect({ host: address, port, noDelay: true });
    this.socket = socket;
    const where = `${address} port ${port}`;
    let reason = `the target at ${where} has closed the connection`;
    let cause: Error | undefined;
    socket.once('connect', () => host.onConnected());
    socket.on('data', (chunk) => this.take(chunk));
    socket.on('error', (error) => {
      reason = `the connection to ${where} has failed: ${error.message}`;
      cause = error;
    });
    socket.on('close', () => this.lost(new IscsiError('ISCSI_CONNECTION', reason, { cause })));
  }

  send({ header, data }: OutgoingPdu): void {
    const { socket } = this;
    // All data of one turn is sent with one system call.
    if (!this.isCorked) {
      this.isCorked = true;
      socket.cork();
      process.nextTick(() => {
        this.isCorked = false;
        socket.uncork();
      });
    }
    socket.write(header);
    if (data.length === 0) return;
    socket.write(data);
    const padding = padBytes(data.length);
    if (padding > 0) socket.write(PADDING.subarray(0, padding));
  }

  prepare(): void {
    // A byte stream needs no room to be made.
  }

  release(): void {
    // Data-In was stored when it arrived.
  }

  allocate(lengthBytes: number): Uint8Array {
    return new Uint8Array(lengthBytes);
  }

  close(how: 'graceful' | 'abrupt'): void {
    this.isOver = true;
    if (how === 'graceful') this.socket.end(() => this.socket.destroy());
    else this.socket.destroy();
  }

  private take(chunk: Uint8Array): void {
    if (this.isOver) return;
    try {
      for (const pdu of this.stream.push(chunk)) {
        this.host.onPdu(readTargetPdu(pdu));
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.lost(asIscsiError(error));
    }
  }

  private lost(error: IscsiError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.socket.destroy();
    this.host.onLost(error);
  }
}
