/** iSCSI over TCP: a target's portal and its connections on sockets of node:net (RFC 7143). */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  INITIATOR_OPCODE,
  padBytes,
  PduStream,
  readInitiatorPdu,
  RESERVED_TAG,
  WireError,
} from '../../wire/index.js';
import {
  type Datamover,
  type Header,
  type Negotiated,
  ProtocolFault,
  type SequenceNumbers,
  TargetConnection,
  type TargetNode,
  TcpTransfers,
  type TransferTask,
  UNSPOKEN_SEGMENT_BYTES,
} from '../../session/target-side/index.js';
import { alarm } from '../system.js';
import { bracketed } from './iser-portal.js';

/** Bytes waiting to be sent at which reading stops. */
const HIGH_WATER_BYTES = 4 << 20;
/** Time for an initiator to take the bytes that were sent. */
const LINGER_MS = 1000;
type Sent = (error?: Error | null) => void;
const PADDING = new Uint8Array(3);

export class TcpMover implements Datamover {
  readonly connection: TargetConnection;
  private readonly stream = new PduStream(UNSPOKEN_SEGMENT_BYTES);
  private transfers: TcpTransfers | undefined = undefined;
  private linger: (() => void) | undefined = undefined;
  private reason = 'the initiator has closed the connection';

  constructor(
    private readonly target: TargetNode,
    private readonly socket: Socket,
    portal: string,
  ) {
    socket.setNoDelay(true);
    const peer = `${socket.remoteAddress ?? 'an initiator'}:${socket.remotePort ?? 0}`;
    const parts = { target, mover: this, alarm, isRdma: false, portal, peer };
    this.connection = new TargetConnection(parts);
    target.enter(this.connection);
    socket.on('data', (chunk) => this.take(chunk));
    socket.on('drain', () => socket.resume());
    // Handle earlier data first; the end of the session closes the other direction.
    socket.on('end', () => this.end());
    socket.on('error', (error) => (this.reason = error.message));
    socket.on('close', () => this.end());
  }

  sendControl(header: Header, data: Uint8Array): void {
    this.write(header, data);
  }

  async putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void> {
    await this.enabled.putData(task, offset, from);
  }

  async getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void> {
    await this.enabled.getData(task, offset, into);
  }

  enable(negotiated: Negotiated, numbers: SequenceNumbers): void {
    this.stream.maxDataBytes = negotiated.recvDataSegmentLength;
    const send = (header: Header, data: Uint8Array, sent?: Sent): void =>
      this.write(header, data, sent);
    this.transfers = new TcpTransfers({
      ...{ negotiated, numbers, send, alarm },
      timeoutMs: this.target.options.transferTimeoutMs,
      stalled: () => this.connection.stalled(),
    });
  }

  limitSegments(sendDataSegmentLength: number): void {
    this.enabled.limitSegments(sendDataSegmentLength);
  }

  terminate(): void {
    this.transfers?.end(new Error('the session has ended'));
    this.socket.end();
    this.linger = alarm(LINGER_MS, () => this.socket.destroy());
  }

  private get enabled(): TcpTransfers {
    if (this.transfers === undefined) throw new RangeError('data is moved before login has ended');
    return this.transfers;
  }

  private take(chunk: Uint8Array): void {
    let bytes = chunk;
    try {
      for (const pdu of this.stream.push(chunk)) {
        bytes = pdu;
        if (!this.takeDataOut(pdu)) this.connection.receive(pdu);
      }
    } catch (error) {
      if (!(error instanceof WireError || error instanceof ProtocolFault)) throw error;
      this.connection.receiveFault(error, bytes);
      // The boundaries between PDUs are lost.
      if (error instanceof WireError) this.connection.close(error.message);
    }
    if (this.socket.writableLength > HIGH_WATER_BYTES) this.socket.pause();
  }

  /** Handles data that answers an R2T: it is not for the session. */
  private takeDataOut(bytes: Uint8Array): boolean {
    const isDataOut = ((bytes[0] ?? 0) & 0x3f) === INITIATOR_OPCODE.DATA_OUT;
    if (!isDataOut || this.transfers === undefined) return false;
    const pdu = readInitiatorPdu(bytes);
    if (pdu.type !== 'dataOut' || pdu.header.targetTransferTag === RESERVED_TAG) return false;
    this.transfers.dataOut(pdu);
    return true;
  }

  private write(header: Header, data: Uint8Array, done?: Sent): void {
    const { socket } = this;
    // Tasks are aborted before a write of theirs rejects: a lost initiator is no mistake of ours.
    const sent: Sent | undefined =
      done &&
      ((error) => {
        if (error) this.connection.transportEnded((socket.errored ?? error).message);
        done(error);
      });
    if (data.length === 0) {
      socket.write(header, sent);
      return;
    }
    const padding = padBytes(data.length);
    socket.cork();
    socket.write(header);
    if (padding > 0) {
      socket.write(data);
      socket.write(PADDING.subarray(0, padding), sent);
    } else socket.write(data, sent);
    socket.uncork();
  }

  private end(): void {
    this.linger?.();
    this.linger = undefined;
    this.connection.transportEnded(this.reason);
    this.transfers?.end(new Error(this.reason));
    this.socket.destroy();
  }
}

/** A portal for iSCSI initiators over TCP. */
export class TcpPortal {
  private constructor(
    readonly name: string,
    private readonly server: Server,
  ) {}

  /** @throws the system's error if it cannot listen on the address */
  static async listen(target: TargetNode, address: string, port: number): Promise<TcpPortal> {
    const server = createServer((socket) => meet(target, socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: address, port, ipv6Only: true }, resolve);
    });
    const bound = server.address() as AddressInfo;
    const name = `${bracketed(bound.address)}:${bound.port}`;
    // An initiator cannot connect to "any address": it is told the one that it has found.
    if (!WILDCARDS.has(bound.address)) target.addPortal(name, false);
    return new TcpPortal(name, server);
  }

  /** Stops listening; open connections continue. */
  async closeListener(): Promise<void> {
    this.server.close();
  }
}

const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

function meet(target: TargetNode, socket: Socket): void {
  const portal = `${bracketed(socket.localAddress ?? '')}:${socket.localPort ?? 0}`;
  new TcpMover(target, socket, portal);
}
