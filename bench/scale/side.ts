/** One process of the benchmark of many endpoints, through the public DAT API. */
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  DatDto,
  DatEventNumber,
  type Ep,
  EventBatch,
  type Evd,
  EvdFlags,
  type Ia,
  type Lmr,
  type LmrSegment,
  type Psp,
  type Pz,
  openIa,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import type { Shape, Work } from './protocol.js';

const CONN_QUAL = 7600;
const MESSAGE_BYTES = 64;
const BATCH = 256;
/** Connection attempts under way: enough to keep both processes busy, fewer than the CM allows. */
const ATTEMPTS = 128;
/** Receives that an endpoint has posted. */
const RECEIVES = 2;
/** The same of the first one, and what it may have to send: the load of a measurement. */
const LEAD_RECEIVES = 256;
const LEAD_REQUESTS = 127;
/** Looks between two turns of the event loop. */
const LOOKS = 64;

export class Side {
  static async open(local: string, remote: string, most: number): Promise<Side> {
    return new Side(await openIa(softroce({ addresses: [local], shm: false })), remote, most);
  }

  private readonly pz: Pz;
  private readonly memory: Lmr;
  private readonly segment: LmrSegment;
  private readonly dtoEvd: Evd;
  private readonly connectEvd: Evd;
  private readonly batch = new EventBatch(BATCH);
  /** Regions beside `memory`: nothing uses them. */
  private readonly extra: Lmr[] = [];
  private eps: Ep[] = [];
  private psp: Psp | undefined;
  private accepted = 0;
  private ended = 0;

  private constructor(
    private readonly ia: Ia,
    private readonly remote: string,
    most: number,
  ) {
    this.pz = ia.createPz();
    this.memory = ia.allocate(MESSAGE_BYTES, { pz: this.pz });
    this.segment = this.memory.segment(0, MESSAGE_BYTES);
    this.dtoEvd = ia.createEvd({ qlen: most * (RECEIVES + 2) + 256, polling: 'spin' });
    const streams = EvdFlags.CONNECTION | EvdFlags.CR;
    this.connectEvd = ia.createEvd({ qlen: 2 * most + 256, streams });
    this.connectEvd.modifyUpcall('NOTIFY', () => this.takeConnectionEvents());
  }

  /** Registers memory until there are `count` regions, all of the same few bytes. */
  register(count: number): void {
    const { ia, pz, extra } = this;
    while (extra.length + 1 < count) extra.push(ia.allocate(MESSAGE_BYTES, { pz }));
  }

  /** The first endpoint has room for the whole load, which it is to bear alone as well. */
  create(shape: Shape, count: number): Work {
    const startMs = performance.now();
    const lead = { ...shape, requests: LEAD_REQUESTS, receives: LEAD_RECEIVES };
    this.eps = Array.from({ length: count }, (_, i) => this.createOne(i === 0 ? lead : shape));
    this.eps.forEach((ep, at) => {
      const receives = at === 0 ? LEAD_RECEIVES : RECEIVES;
      for (let i = 0; i < receives; i++) ep.postRecv(this.segment, i);
    });
    return { count, seconds: (performance.now() - startMs) / 1000 };
  }

  private createOne({ requests, receives, segments }: Shape): Ep {
    const { pz, dtoEvd, connectEvd } = this;
    const attributes = {
      ...(requests !== undefined && { maxRequestDtos: requests }),
      ...(receives !== undefined && { maxRecvDtos: receives }),
      ...(segments !== undefined && {
        maxRecvIov: segments,
        maxRequestIov: segments,
        maxRdmaReadIov: segments,
        maxRdmaWriteIov: segments,
      }),
    };
    return this.ia.createEndpoint({
      pz,
      recvEvd: dtoEvd,
      requestEvd: dtoEvd,
      connectEvd,
      attributes,
    });
  }

  /** Takes requests from now on, in any order; each gets the next endpoint. */
  listen(): void {
    this.accepted = 0;
    this.ended = 0;
    this.psp ??= this.ia.createPsp({ connQual: CONN_QUAL, evd: this.connectEvd });
  }

  async connect(): Promise<Work> {
    const { eps } = this;
    const startMs = performance.now();
    this.accepted = 0;
    this.ended = 0;
    let begun = 0;
    while (this.accepted < eps.length) {
      if (this.ended > 0) throw new Error('a connection was not established');
      for (; begun < eps.length && begun - this.accepted < ATTEMPTS; begun++) {
        eps[begun]!.connect({ address: this.remote, connQual: CONN_QUAL });
      }
      await nextTurn();
    }
    return { count: eps.length, seconds: (performance.now() - startMs) / 1000 };
  }

  private takeConnectionEvents(): void {
    for (let event = this.connectEvd.dequeue(); event; event = this.connectEvd.dequeue()) {
      if (event.type === 'connection-request') event.cr?.accept(this.eps[this.accepted++]);
      else if (event.type !== 'connection') continue;
      else if (event.number !== DatEventNumber.ESTABLISHED) this.ended++;
      else if (!this.psp) this.accepted++;
    }
  }

  /** Keeps `inFlight` messages under way, each on the endpoint whose turn it is. */
  async send(spread: number, inFlight: number, seconds: number): Promise<Work> {
    const { eps, segment, batch, dtoEvd } = this;
    let turn = 0;
    let messages = 0;
    let waiting = 0;
    const post = (): void => {
      eps[turn]!.postSend(segment, 0);
      turn = turn + 1 < spread ? turn + 1 : 0;
      waiting++;
    };
    const startMs = performance.now();
    const endMs = startMs + seconds * 1000;
    for (let i = 0; i < inFlight; i++) post();
    let more = true;
    while (waiting > 0) {
      for (let look = 0; look < LOOKS && waiting > 0; look++) {
        const count = dtoEvd.dequeueInto(batch);
        for (let i = 0; i < count; i++) {
          if (batch.statuses[i] !== 0) throw new Error('a message failed');
          messages++;
          waiting--;
          if (more) post();
        }
      }
      more = performance.now() < endMs;
      await nextTurn();
    }
    return { count: messages, seconds: (performance.now() - startMs) / 1000 };
  }

  /** Takes messages in and posts their receives again, until told otherwise. */
  async serve(over: () => boolean): Promise<void> {
    const { batch, dtoEvd, segment } = this;
    while (!over()) {
      for (let look = 0; look < LOOKS; look++) {
        const count = dtoEvd.dequeueInto(batch);
        for (let i = 0; i < count; i++) {
          if (batch.operations[i] === DatDto.RECEIVE && batch.statuses[i] === 0) {
            (batch.eps[i] as Ep).postRecv(segment, batch.cookies[i]);
          }
        }
      }
      await nextTurn();
    }
  }

  /** Disconnects all and waits for the ends. */
  async disconnect(): Promise<Work> {
    const startMs = performance.now();
    this.ended = 0;
    for (const [i, ep] of this.eps.entries()) {
      ep.disconnect('graceful');
      if (i % ATTEMPTS === ATTEMPTS - 1) await nextTurn();
    }
    await this.disconnected();
    return { count: this.eps.length, seconds: (performance.now() - startMs) / 1000 };
  }

  /** Waits until every endpoint has ended, and drops the flushed receives. */
  async disconnected(): Promise<void> {
    while (this.ended < this.eps.length) await nextTurn();
    while (this.dtoEvd.dequeueInto(this.batch) > 0);
  }

  free(): Work {
    const startMs = performance.now();
    const { eps } = this;
    for (const ep of eps) ep.free();
    this.eps = [];
    this.batch.eps.fill(undefined);
    return { count: eps.length, seconds: (performance.now() - startMs) / 1000 };
  }

  async close(): Promise<void> {
    await this.ia.close('abrupt');
  }
}
