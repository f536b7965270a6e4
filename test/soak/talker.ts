/** One side of a connection in the kill soak: an endpoint, what it moves, and how it ended. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Cr,
  type DatEvent,
  DatEventNumber,
  type EpAttributeOptions,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  type Pz,
  RemoteSegment,
} from '../../core/index.js';
import { patience } from '../support/patience.js';

export const PHASES = ['connecting', 'idle', 'send', 'write', 'read', 'disconnecting'] as const;
export type Phase = (typeof PHASES)[number];

const BYTES = 1 << 16;
const RECEIVES = 8;
const REQUESTS = 4;
const RECEIVE = 1;
const REQUEST = 2;

export interface TalkerOptions {
  readonly attributes: EpAttributeOptions;
  readonly phase: Phase;
  /** It sends, writes or reads. */
  readonly moves: boolean;
}

/** What all connections of a side share. */
export class Side {
  readonly pz: Pz;
  readonly lmr: Lmr;

  constructor(readonly ia: Ia) {
    this.pz = ia.createPz();
    this.lmr = ia.allocate(BYTES, { pz: this.pz, privileges: MemPrivileges.ALL });
  }

  /** Address and key, for the peer. */
  get privateData(): Uint8Array {
    const view = new DataView(new ArrayBuffer(12));
    view.setBigUint64(0, this.lmr.address);
    view.setUint32(8, this.lmr.rmrContext ?? 0);
    return new Uint8Array(view.buffer);
  }
}

export class Talker {
  readonly evd: Evd;
  readonly ep: Ep;
  /** Messages moved, both ways. */
  moved = 0;
  /** Text of the event that has ended the connection, or the attempt. */
  ended: string | undefined;
  established = false;
  private readonly taking = new AbortController();
  private remote: RemoteSegment | undefined;

  constructor(
    private readonly side: Side,
    private readonly options: TalkerOptions,
  ) {
    const { ia, pz } = side;
    this.evd = ia.createEvd({ qlen: 64 });
    const evds = { recvEvd: this.evd, requestEvd: this.evd, connectEvd: this.evd };
    const attributes = { maxRecvDtos: 16, maxRequestDtos: 16, ...options.attributes };
    this.ep = ia.createEndpoint({ pz, ...evds, attributes });
    for (let i = 0; i < RECEIVES; i++) this.postReceive();
  }

  connect(address: string, connQual: number): Promise<void> {
    const { privateData } = this.side;
    this.ep.connect({ address, connQual, privateData, timeoutMs: patience(5000) });
    return this.live();
  }

  accept(cr: Cr): Promise<void> {
    this.learn(cr.privateData);
    cr.accept(this.ep, { privateData: this.side.privateData });
    return this.live();
  }

  /** Leaves the connection as it is: nobody takes its events any more. */
  leave(): void {
    this.taking.abort();
  }

  /** Takes events until the connection has ended, and frees everything. */
  private async live(): Promise<void> {
    const { signal } = this.taking;
    try {
      while (this.ended === undefined) this.take((await this.evd.wait({ signal })).event);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    this.ep.free();
    await this.evd.free();
  }

  private take(event: DatEvent): void {
    if (event.type === 'dto') this.onDto(event.cookie, event.status === 0);
    else if (event.type === 'connection') this.onConnection(event.number, event.privateData);
  }

  private onConnection(number: number, privateData: Uint8Array): void {
    if (number !== DatEventNumber.ESTABLISHED) {
      this.ended = nameOf(DatEventNumber, number);
      return;
    }
    this.established = true;
    if (this.remote === undefined) this.learn(privateData);
    const { phase, moves } = this.options;
    if (phase === 'disconnecting' && moves) this.ep.disconnect();
    else if (moves) for (let i = 0; i < REQUESTS; i++) this.postRequest();
  }

  private onDto(cookie: number, success: boolean): void {
    if (!success || this.ep.state !== 'CONNECTED') return;
    this.moved++;
    if (cookie === RECEIVE) this.postReceive();
    else this.postRequest();
  }

  private postReceive(): void {
    this.ep.postRecv(this.side.lmr.segment(0, 4096), RECEIVE);
  }

  private postRequest(): void {
    const { ep, remote } = this;
    const { lmr } = this.side;
    const { phase } = this.options;
    if (phase === 'send') ep.postSend(lmr.segment(0, 1024), REQUEST);
    else if (phase === 'write' && remote) ep.postRdmaWrite(lmr.segment(), REQUEST, remote);
    else if (phase === 'read' && remote) ep.postRdmaRead(lmr.segment(), REQUEST, remote);
  }

  private learn(privateData: Uint8Array): void {
    const view = new DataView(privateData.buffer, privateData.byteOffset);
    const address = view.getBigUint64(0);
    this.remote = new RemoteSegment({ address, rmrContext: view.getUint32(8) });
  }
}

/** Connections are made and ended all the time there. */
export function isChurn(phase: Phase): boolean {
  return phase === 'connecting' || phase === 'disconnecting';
}

/** Keeps a connection going for as long as `goesOn`; in a churn, one after the other. */
export async function keepConnecting(
  side: Side,
  options: TalkerOptions,
  to: { readonly address: string; readonly connQual: number },
  goesOn: () => boolean,
  onTalker: (talker: Talker) => void,
): Promise<void> {
  do {
    const talker = new Talker(side, options);
    onTalker(talker);
    const life = talker.connect(to.address, to.connQual);
    if (options.phase === 'connecting') void endSoon(talker);
    await life;
  } while (goesOn() && isChurn(options.phase));
}

/** In a churn of connections, none lasts long. */
async function endSoon(talker: Talker): Promise<void> {
  while (!talker.established && talker.ended === undefined) await delay(1);
  if (talker.ended === undefined) talker.ep.disconnect();
}
