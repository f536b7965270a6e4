/**
 * The DAT endpoint of a connection: posts receives without memory, reports completions in order,
 * and reports the end once.
 */
import {
  type ConnectionEvent,
  type Cr,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  type LmrSegment,
  RemoteSegment,
} from 'dapl';
import { leaveUnhandled } from 'dapl/spi';
import type { StreamAddress } from '../../socket/index.js';
import { CONTROL_SLOTS } from '../session/index.js';
import type { Adapter } from './adapter.js';
import type { RsocketPlan } from './options.js';
import { streamErrors } from '../../socket/over-dat/index.js';
import { RsocketProtocolError } from '../wire/index.js';

/** Kinds of requests, used as their cookies. */
export const Sent = { DATA: 0, CONTROL: 1 } as const;

export interface LinkEvents {
  onEstablished(privateData: Uint8Array): void;
  /** A message of the peer: a write with immediate data, of this many bytes. */
  onMessage(immediate: number, writtenBytes: number): void;
  /** A completion of anything but a write with immediate data. */
  onStrange(operation: number): void;
  /** The oldest request of that kind was acknowledged. */
  onSent(kind: number): void;
  /** All received messages were reported. */
  onDrained(): void;
  /** The connection has ended; undefined if its adapter was closed. */
  onEnd(event: ConnectionEvent | undefined): void;
}

/** Receives beyond the credits, for messages that need no credit. */
const SPARE_RECEIVES = 2 * CONTROL_SLOTS;
const CONNECTION_EVENTS = 4;
const FOR_EVER = 7;
/** IBTA table 45, 1.28 ms: time that a peer waits if there is no receive. */
const RNR_1_28_MS = 14;
const NOTHING: readonly LmrSegment[] = [];
const NOWHERE = new RemoteSegment({ address: 0n, rmrContext: 0 });

export class Link {
  readonly ep: Ep;
  private readonly evd: Evd;
  private isOver = false;
  /** Receives to be posted again. */
  private spent = 0;
  private readonly postSpent = (): void => {
    for (; this.spent > 0; this.spent--) this.ep.postRecv(NOTHING);
  };

  /** @throws DatError as `ia.createEvd` and `ia.createEndpoint`; then nothing is left open */
  constructor(
    private readonly adapter: Adapter,
    { credits, sends, polling, keepAliveMs }: RsocketPlan,
    private readonly events: LinkEvents,
  ) {
    const { ia, pz } = adapter;
    const receives = credits + SPARE_RECEIVES;
    const requests = sends + CONTROL_SLOTS;
    const qlen = receives + requests + CONNECTION_EVENTS;
    const handler = (): void => this.drain();
    this.evd = ia.createEvd({ qlen, polling, policy: 'NOTIFY', handler });
    const evds = { recvEvd: this.evd, requestEvd: this.evd, connectEvd: this.evd };
    try {
      this.ep = ia.createEndpoint({
        ...{ pz, ...evds },
        attributes: {
          ...{ maxRecvDtos: receives, maxRequestDtos: requests },
          ...{ maxRdmaReadIn: 0, maxRdmaReadOut: 0, keepAliveMs },
          transport: { rnrRetryCount: FOR_EVER, minRnrTimer: RNR_1_28_MS },
        },
      });
    } catch (error) {
      leaveUnhandled(this.evd.free());
      throw error;
    }
    this.spent = receives;
    this.ep.burst(this.postSpent);
    this.ep.state$.subscribe({ complete: () => this.end(undefined) });
  }

  /** The local end; its port is 0 until the connection is established. */
  get own(): StreamAddress {
    const { localAddress: address, localPortQual: port = 0 } = this.ep.query();
    return { address, port };
  }

  /** Longest write of the adapter, in bytes. */
  get maxWriteBytes(): number {
    return this.ep.query().attributes.maxRdmaBytes;
  }

  connect(address: string, port: number, privateData: Uint8Array): void {
    this.ep.connect({ address, connQual: port, privateData });
  }

  accept(cr: Cr, privateData: Uint8Array): void {
    cr.accept(this.ep, { privateData });
  }

  /** Writes with immediate data. */
  write(
    segments: LmrSegment | readonly LmrSegment[],
    kind: number,
    remote: RemoteSegment,
    immediate: number,
  ): void {
    this.ep.postRdmaWriteWithImmediate(segments, kind, remote, immediate);
  }

  /** Sends immediate data alone. */
  tell(immediate: number): void {
    this.ep.postRdmaWriteWithImmediate(NOTHING, Sent.CONTROL, NOWHERE, immediate);
  }

  /** Writes without notifying the peer. */
  writeSilently(segments: LmrSegment | readonly LmrSegment[], remote: RemoteSegment): void {
    this.ep.postRdmaWrite(segments, Sent.DATA, remote);
  }

  /** A write of no bytes, which the peer's device acknowledges. */
  probe(): void {
    this.ep.postRdmaWrite(NOTHING, Sent.CONTROL, NOWHERE);
  }

  /** Posts everything in `work` with one doorbell. */
  burst(work: () => void): void {
    this.ep.burst(work);
  }

  /**
   * Disconnects after the posted requests were sent; `onEnd` follows, unless the peer does not
   * answer.
   */
  disconnect(): void {
    if (this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
  }

  /** Frees the endpoint; no more events follow. A second call is a no-op. */
  free(): void {
    this.isOver = true;
    // If the adapter is closed, they are freed already.
    if (!this.ep.isFreed) this.ep.free();
    if (!this.evd.isFreed) leaveUnhandled(this.evd.free());
  }

  ref(): void {
    this.ep.ref();
    this.evd.ref();
  }

  unref(): void {
    this.ep.unref();
    this.evd.unref();
  }

  private drain(): void {
    const { batch } = this.adapter;
    while (!this.isOver && this.evd.dequeueInto(batch, batch.capacity) > 0) {
      for (let i = 0; i < batch.count && !this.isOver; i++) {
        const event = batch.events[i];
        if (event?.type === 'connection') this.onConnection(event);
        else this.onCompletion(i);
      }
      if (this.spent > 0 && !this.isOver) this.ep.burst(this.postSpent);
    }
    if (!this.isOver) this.events.onDrained();
  }

  private onCompletion(at: number): void {
    const { cookies, operations, statuses, lengths, immediates } = this.adapter.batch;
    // The end's event follows failed and flushed requests.
    if (statuses[at] !== DatDtoStatus.SUCCESS) return;
    const operation = operations[at] as number;
    if (operation === DatDto.RECV_IMMED) {
      this.spent++;
      this.events.onMessage(immediates[at] as number, lengths[at] as number);
    } else if (operation === DatDto.RDMA_WRITE || operation === DatDto.RDMA_WRITE_IMMED) {
      this.events.onSent(cookies[at] as number);
    } else this.events.onStrange(operation);
  }

  private onConnection(event: ConnectionEvent): void {
    if (event.number === DatEventNumber.ESTABLISHED) this.events.onEstablished(event.privateData);
    else this.end(event);
  }

  private end(event: ConnectionEvent | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    this.events.onEnd(event);
  }
}

/** Errors of a connection, with the codes of Node. */
export const { errorOf, errorOfEnd } = streamErrors((error) => {
  if (!(error instanceof RsocketProtocolError)) return undefined;
  return error.field === 'version' ? 'EPROTONOSUPPORT' : 'EPROTO';
});
