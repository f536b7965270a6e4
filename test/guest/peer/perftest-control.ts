/**
 * What perftest's programs tell each other with -R before and after a test: messages of SEND over
 * a connection of its own. The client sends first, the server answers. Structures are those of
 * perftest on x86-64.
 */
import {
  type Cr,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type LmrSegment,
  nameOf,
} from 'dapl';

import { patience } from '../../support/patience.js';
import { textOf } from './exchange.js';

export const PERFTEST_PORT = 18515;
export type Role = 'client' | 'server';

const TIMEOUT_MS = patience(60_000);
const RECEIVES = 8;
/** struct pingpong_dest. */
const DESTINATION_BYTES = 56;
const AT = { rkey: 16, address: 24 } as const;
/** Others are refused when they are older than 5.70, and these formats are of 5.33. */
const VERSION = '6.06';
const VERSION_BYTES = 16;
const CYCLE_BUFFER_BYTES = 4096;
const CACHE_LINE_BYTES = 64;

/** Where the other side's memory is. */
export interface Destination {
  readonly address: bigint;
  readonly rkey: number;
}

export class Control {
  private readonly ep: Ep;
  private readonly connections: Evd;
  private readonly completions: Evd;
  private readonly receives: Evd;
  private readonly incoming: LmrSegment[];
  private readonly outgoing: LmrSegment;

  constructor(
    ia: Ia,
    private readonly role: Role,
  ) {
    const pz = ia.createPz();
    const memory = ia.allocate((RECEIVES + 1) * DESTINATION_BYTES, { pz });
    const at = (index: number): LmrSegment =>
      memory.segment(index * DESTINATION_BYTES, DESTINATION_BYTES);
    this.incoming = Array.from({ length: RECEIVES }, (_, index) => at(index));
    this.outgoing = at(RECEIVES);
    [this.connections, this.completions, this.receives] = [8, 8, RECEIVES].map((qlen) =>
      ia.createEvd({ qlen }),
    ) as [Evd, Evd, Evd];
    this.ep = ia.createEndpoint({
      pz,
      connectEvd: this.connections,
      requestEvd: this.completions,
      recvEvd: this.receives,
    });
    this.incoming.forEach((segment, index) => this.ep.postRecv(segment, index));
  }

  async connect(address: string): Promise<void> {
    this.ep.connect({ address, connQual: PERFTEST_PORT, timeoutMs: TIMEOUT_MS });
    await this.established();
  }

  async accept(cr: Cr): Promise<void> {
    cr.accept(this.ep);
    await this.established();
  }

  /** Versions, buffers and path MTU: what both sides must know before anything else. */
  async introduce(mtuBytes: number): Promise<void> {
    const version = Buffer.alloc(VERSION_BYTES);
    version.write(VERSION);
    const theirs = (await this.exchange(version)).toString('latin1').replace(/\0.*/s, '');
    if (!/^\d+\.\d+$/.test(theirs)) throw new Error(`perftest's version is "${theirs}"`);
    for (const number of [CYCLE_BUFFER_BYTES, CACHE_LINE_BYTES]) {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(number);
      await this.exchange(bytes);
    }
    // enum ibv_mtu in decimal: 256 is 1, 4096 is 5.
    await this.exchange(Buffer.from(`${Math.log2(mtuBytes) - 7}\0`));
  }

  /** Both sides are at the same point; what the other has to reach is told on the way. */
  async shakeHands(mine: Destination = { address: 0n, rkey: 0 }): Promise<Destination> {
    const bytes = Buffer.alloc(DESTINATION_BYTES);
    bytes.writeUInt32BE(mine.rkey, AT.rkey);
    bytes.writeBigUInt64BE(mine.address, AT.address);
    const theirs = await this.exchange(bytes);
    if (theirs.length !== DESTINATION_BYTES) throw new Error(`${theirs.length} bytes`);
    return { rkey: theirs.readUInt32BE(AT.rkey), address: theirs.readBigUInt64BE(AT.address) };
  }

  /** The report of a bandwidth test, which the server prints. Returns the other side's. */
  async exchangeReports(report: Report): Promise<Report> {
    const whole = async (value: number): Promise<number> => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64BE(BigInt(value));
      return Number((await this.exchange(bytes)).readBigUInt64BE());
    };
    const real = async (value: number): Promise<number> => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value);
      return (await this.exchange(bytes)).readDoubleBE();
    };
    const bytes = await whole(report.bytes);
    const iterations = await whole(report.iterations);
    await real(report.mibps);
    const mibps = await real(report.mibps);
    await real((report.mibps * 2 ** 20) / report.bytes / 1e6);
    return { bytes, iterations, mibps };
  }

  async exchange(mine: Buffer): Promise<Buffer> {
    if (this.role === 'client') await this.send(mine);
    const theirs = await this.receive();
    if (this.role === 'server') await this.send(mine);
    return theirs;
  }

  /** Resolves when the other side has left. */
  async ended(): Promise<void> {
    const { event } = await this.connections.wait({ timeoutMs: TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event`);
  }

  private async send(bytes: Buffer): Promise<void> {
    const { lmr, offsetBytes } = this.outgoing;
    this.outgoing.bytes.set(bytes);
    this.ep.postSend(lmr.segment(offsetBytes, bytes.length), 0);
    await this.next(this.completions);
  }

  private async receive(): Promise<Buffer> {
    const { cookie, transferredLength } = await this.next(this.receives);
    const segment = this.incoming[cookie];
    if (segment === undefined) throw new Error(`no receive ${cookie}`);
    const bytes = Buffer.from(segment.bytes.subarray(0, transferredLength));
    this.ep.postRecv(segment, cookie);
    return bytes;
  }

  private async next(evd: Evd): Promise<{ cookie: number; transferredLength: number }> {
    const { event } = await evd.wait({ timeoutMs: TIMEOUT_MS });
    if (event.type !== 'dto') throw new Error(`a ${event.type} event among completions`);
    if (event.status !== DatDtoStatus.SUCCESS) throw new Error(nameOf(DatDtoStatus, event.status));
    return event;
  }

  private async established(): Promise<void> {
    const { event } = await this.connections.wait({ timeoutMs: TIMEOUT_MS });
    if (event.type === 'connection' && event.number === DatEventNumber.ESTABLISHED) return;
    throw new Error(event.type === 'connection' ? textOf(event) : `a ${event.type} event`);
  }
}

export interface Report {
  readonly bytes: number;
  readonly iterations: number;
  readonly mibps: number;
}
