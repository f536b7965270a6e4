/**
 * The DAT endpoint of a connection: its receives, its requests, which complete in order, and its
 * end, which is reported once.
 */
import {
  CompletionFlags,
  type ConnectionEvent,
  type Cr,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  type Lmr,
  type LmrSegment,
  type RemoteAddress,
} from 'dapl';
import type { Lease } from 'dapl/flow';
import { leaveUnhandled } from 'dapl/spi';
import type { Adapter } from './adapter.js';
import type { Piece } from './areas.js';
import type { SdpPlan } from './options.js';
import { streamErrors } from '../../socket/over-dat/index.js';
import { SdpWireError } from '../wire/index.js';

/** The receives of a connection: one buffer each, which may be replaced by a larger one. */
const ALIGNMENT = 64;

/** Buffers of one size, in one lease. */
interface Block {
  readonly lease: Lease;
  readonly bytes: Uint8Array;
  readonly stride: number;
  readonly bufferBytes: number;
}

class Receives {
  private readonly blocks: Block[] = [];
  /** The block of each receive. */
  private readonly homes: Block[] = [];

  /** @throws FlowError; then nothing is left open */
  constructor(
    private readonly adapter: Adapter,
    private readonly count: number,
    bufferBytes: number,
  ) {
    const block = this.grow(bufferBytes);
    for (let slot = 0; slot < count; slot++) this.homes.push(block);
  }

  /** @throws DatError as `ep.postRecv`; FlowError if there is no memory for a larger one */
  post(ep: Ep, slot: number, bufferBytes: number): void {
    let home = this.homes[slot] as Block;
    if (home.bufferBytes < bufferBytes) {
      const last = this.blocks.at(-1) as Block;
      home = last.bufferBytes >= bufferBytes ? last : this.grow(bufferBytes);
      this.homes[slot] = home;
    }
    ep.postRecv(segmentOf(home, slot), slot);
  }

  view(slot: number, lengthBytes: number): Uint8Array {
    const { bytes, stride } = this.homes[slot] as Block;
    return bytes.subarray(slot * stride, slot * stride + lengthBytes);
  }

  /** Frees the buffers: nothing is posted any more. */
  free(): void {
    for (const { lease } of this.blocks.splice(0)) lease.release();
  }

  private grow(bufferBytes: number): Block {
    const stride = Math.ceil(bufferBytes / ALIGNMENT) * ALIGNMENT;
    const lease = this.adapter.take(stride * this.count);
    const block = { lease, bytes: lease.bytes, stride, bufferBytes };
    this.blocks.push(block);
    return block;
  }
}

function segmentOf({ lease, stride, bufferBytes }: Block, slot: number): LmrSegment {
  return lease.segment(bufferBytes, slot * stride);
}

export interface LinkEvents {
  onEstablished(privateData: Uint8Array): void;
  /** A message has arrived in that receive. */
  onMessage(slot: number, bytes: Uint8Array): void;
  /** The oldest RDMA Read has completed. */
  onRead(): void;
  /** The oldest RDMA Write of data has completed. */
  onWritten(bytes: number): void;
  onProbed(): void;
  /** All received messages were reported. */
  onDrained(): void;
  /** The connection has ended; undefined if its adapter was closed. */
  onEnd(event: ConnectionEvent | undefined): void;
}

/** A posted request: its kind, and the memory that it holds. */
type Posted =
  | { readonly kind: 'send'; readonly lease: Lease }
  | { readonly kind: 'read'; readonly piece: Piece }
  | { readonly kind: 'write'; readonly lmr: Lmr; readonly bytes: number }
  | { readonly kind: 'probe' };

/** Messages, reads and writes in flight. */
const REQUESTS = 96;
const CONNECTION_EVENTS = 4;
/** Incoming and outgoing reads in flight, as in OFED. */
const READS = 4;
const FOR_EVER = 7;
/** IBTA table 45, 1.28 ms: time that a peer waits if there is no receive. */
const RNR_1_28_MS = 14;
const NOTHING: readonly LmrSegment[] = [];
const NOWHERE: RemoteAddress = { address: 0n, rmrContext: 0 };
const NO_FLAGS = CompletionFlags.DEFAULT;

export class Link {
  readonly ep: Ep;
  private readonly evd: Evd;
  private readonly receives: Receives;
  private readonly posted: Posted[] = [];
  private isOver = false;

  /** @throws DatError, FlowError; then nothing is left open */
  constructor(
    private readonly adapter: Adapter,
    { receives, polling }: SdpPlan,
    receiveBytes: number,
    private readonly events: LinkEvents,
  ) {
    const { ia, pz } = adapter;
    const qlen = receives + REQUESTS + CONNECTION_EVENTS;
    this.receives = new Receives(adapter, receives, receiveBytes);
    const undo = [() => this.receives.free()];
    try {
      const handler = (): void => this.drain();
      const evd = ia.createEvd({ qlen, polling, policy: 'NOTIFY', handler });
      this.evd = evd;
      undo.unshift(() => leaveUnhandled(evd.free()));
      const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
      this.ep = ia.createEndpoint({
        ...{ pz, ...evds },
        attributes: {
          ...{ maxRecvDtos: receives, maxRequestDtos: REQUESTS },
          ...{ maxRdmaReadIn: READS, maxRdmaReadOut: READS },
          transport: { rnrRetryCount: FOR_EVER, minRnrTimer: RNR_1_28_MS },
        },
      });
      undo.unshift(() => this.ep.free());
      this.ep.burst(() => {
        for (let slot = 0; slot < receives; slot++) this.receives.post(this.ep, slot, receiveBytes);
      });
    } catch (error) {
      for (const step of undo) step();
      throw error;
    }
    this.ep.state$.subscribe({ complete: () => this.end(undefined) });
  }

  /** Longest read or write of the adapter, in bytes. */
  get maxRdmaBytes(): number {
    return this.ep.query().attributes.maxRdmaBytes;
  }

  get requestsFree(): number {
    return this.isOver ? 0 : REQUESTS - this.posted.length;
  }

  connect(address: string, serviceId: bigint, privateData: Uint8Array): void {
    this.ep.connect({ address, serviceId, privateData });
  }

  accept(cr: Cr, privateData: Uint8Array): void {
    cr.accept(this.ep, { privateData });
  }

  postReceive(slot: number, bytes: number): void {
    this.receives.post(this.ep, slot, bytes);
  }

  /** Sends the first bytes of a buffer, which is returned to its pool when they have arrived. */
  send(lease: Lease, bytes: number, isSolicited: boolean): void {
    const flags = isSolicited ? CompletionFlags.SOLICITED_WAIT : NO_FLAGS;
    try {
      this.ep.postSend(lease.segment(bytes), 0, flags);
    } catch (error) {
      lease.release();
      throw error;
    }
    this.posted.push({ kind: 'send', lease });
  }

  read(piece: Piece, bytes: number, remote: RemoteAddress): void {
    this.ep.postRdmaRead(piece.segment(bytes), 0, remote);
    this.posted.push({ kind: 'read', piece });
  }

  write(lmr: Lmr, remote: RemoteAddress): void {
    this.ep.postRdmaWrite(lmr.segment(), 0, remote);
    this.posted.push({ kind: 'write', lmr, bytes: lmr.lengthBytes });
  }

  /** A write of no bytes, which the peer's device acknowledges. */
  probe(): void {
    this.ep.postRdmaWrite(NOTHING, 0, NOWHERE);
    this.posted.push({ kind: 'probe' });
  }

  /** Posts everything in `work` with one doorbell. */
  burst(work: () => void): void {
    if (this.isOver) work();
    else this.ep.burst(work);
  }

  /**
   * Disconnects after the posted requests were sent; `onEnd` follows, unless the peer does not
   * answer.
   */
  disconnect(): void {
    if (!this.isOver && this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
  }

  /** Disconnects without sending the posted requests; `onEnd` follows. */
  cut(): void {
    if (!this.isOver && this.ep.state !== 'DISCONNECTED') this.ep.disconnect('abrupt');
  }

  /** Frees the endpoint: no more events follow, and nothing accesses its memory. */
  free(): void {
    this.isOver = true;
    // If the adapter is closed, they are freed already.
    if (!this.ep.isFreed) this.ep.free();
    if (!this.evd.isFreed) leaveUnhandled(this.evd.free());
    for (const posted of this.posted.splice(0)) this.settle(posted);
    this.receives.free();
  }

  ref(): void {
    if (this.isOver) return;
    this.ep.ref();
    this.evd.ref();
  }

  unref(): void {
    if (this.isOver) return;
    this.ep.unref();
    this.evd.unref();
  }

  private settle(posted: Posted): void {
    if (posted.kind === 'send') posted.lease.release();
    else if (posted.kind === 'read') posted.piece.settle();
    else if (posted.kind === 'write' && !posted.lmr.isFreed) posted.lmr.free();
  }

  private drain(): void {
    const { batch } = this.adapter;
    while (!this.isOver && this.evd.dequeueInto(batch, batch.capacity) > 0) {
      const { count } = batch;
      this.burst(() => {
        for (let i = 0; i < count && !this.isOver; i++) {
          const event = batch.events[i];
          if (event?.type === 'connection') this.onConnection(event);
          else this.onCompletion(i);
        }
        if (!this.isOver) this.events.onDrained();
      });
    }
  }

  private onCompletion(at: number): void {
    const { cookies, operations, statuses, lengths } = this.adapter.batch;
    // The end's event follows failed and flushed requests.
    if (statuses[at] !== DatDtoStatus.SUCCESS) return;
    const operation = operations[at] as number;
    if (operation === DatDto.RECEIVE) {
      const slot = cookies[at] as number;
      this.events.onMessage(slot, this.receives.view(slot, lengths[at] as number));
      return;
    }
    if (operation === DatDto.RECV_MSG_IMMED || operation === DatDto.RECV_IMMED) {
      this.events.onMessage(cookies[at] as number, EMPTY);
      return;
    }
    const posted = this.posted.shift();
    if (posted === undefined) return;
    this.settle(posted);
    if (posted.kind === 'read') this.events.onRead();
    else if (posted.kind === 'write') this.events.onWritten(posted.bytes);
    else if (posted.kind === 'probe') this.events.onProbed();
  }

  private onConnection(event: ConnectionEvent): void {
    if (event.number === DatEventNumber.ESTABLISHED) this.events.onEstablished(event.privateData);
    else this.end(event);
  }

  private end(event: ConnectionEvent | undefined): void {
    if (this.isOver) return;
    this.events.onEnd(event);
  }
}

/** Immediate data is no message of SDP: it is handled as one of no bytes, and refused. */
const EMPTY = new Uint8Array(0);

/** Errors of a connection, with the codes of Node. */
export const { errorOf, errorOfEnd } = streamErrors(
  (error) => (error instanceof SdpWireError ? 'EPROTO' : undefined),
  // The peer aborted while this side read from its offer.
  { REMOTE_ACCESS: 'ECONNRESET' },
);
