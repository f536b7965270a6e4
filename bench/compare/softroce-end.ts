/** Our side: the workloads over softroce through the public DAT API, as a stranger writes them. */
import { performance } from 'node:perf_hooks';
import {
  CompletionFlags,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  EventBatch,
  type Evd,
  type Ia,
  type Lmr,
  type LmrSegment,
  MemPrivileges,
  type Pz,
  RemoteSegment,
  nameOf,
  openIa,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import type { Cell } from './cells.js';
import { type Count, type End, type Target, spinUntil } from './end.js';
import { HalfRoundTrips } from './half-round-trips.js';

const CONN_QUAL = 7500;
const BATCH = 256;
const PRIVILEGES =
  MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE | MemPrivileges.REMOTE_WRITE;

export class SoftroceEnd implements End {
  private connection: Connection | undefined;
  private serving: Promise<void> | undefined;

  static async open(port: 'native' | 'dgram', local: string, remote: string): Promise<SoftroceEnd> {
    return new SoftroceEnd(await openIa(softroce({ addresses: [local], port })), remote);
  }

  private constructor(
    private readonly ia: Ia,
    private readonly remote: string,
  ) {}

  listen(cell: Cell): Promise<Target> {
    const connection = new Connection(this.ia, cell, 2 * cell.depth);
    this.connection = connection;
    const psp = this.ia.createPsp({ connQual: CONN_QUAL });
    psp.requests$.subscribe((event) => {
      event.cr?.accept(connection.ep);
      psp.free();
    });
    this.serving = connection.consume((batch, i) => connection.serve(batch, i));
    const { address, rmrContext } = connection.memory;
    return Promise.resolve({ port: CONN_QUAL, address, rmrContext: rmrContext ?? 0 });
  }

  async run(cell: Cell, target: Target, seconds: number): Promise<Count> {
    const connection = new Connection(this.ia, cell, 2);
    this.connection = connection;
    const established = connection.established();
    connection.ep.connect({ address: this.remote, connQual: target.port, timeoutMs: 3000 });
    await established;
    return cell.workload === 'ping'
      ? ping(connection, seconds)
      : stream(connection, target, seconds);
  }

  async stop(): Promise<void> {
    this.connection?.stop();
    await this.serving;
    this.serving = undefined;
    await this.connection?.free();
    this.connection = undefined;
  }

  async close(): Promise<void> {
    await this.ia.close('abrupt');
  }
}

/** An endpoint with its memory and the one EVD of its completions. */
class Connection {
  readonly ep: Ep;
  readonly memory: Lmr;
  readonly segments: readonly LmrSegment[];
  private readonly pz: Pz;
  private readonly evd: Evd;
  private readonly batch = new EventBatch(BATCH);
  private over = false;
  private end: () => void = () => undefined;

  constructor(
    ia: Ia,
    readonly cell: Cell,
    receives: number,
  ) {
    const { bytes, depth, mode } = cell;
    const slots = Math.max(depth, receives);
    this.pz = ia.createPz();
    this.memory = ia.allocate(slots * bytes, { pz: this.pz, privileges: PRIVILEGES });
    this.segments = Array.from({ length: slots }, (_, i) => this.memory.segment(i * bytes, bytes));
    this.evd = ia.createEvd({ qlen: 2 * (slots + depth), polling: mode });
    this.ep = ia.createEndpoint({
      pz: this.pz,
      recvEvd: this.evd,
      requestEvd: this.evd,
      attributes: { maxRecvDtos: slots, maxRequestDtos: 2 * depth },
    });
    this.segments.forEach((segment, i) => i < receives && this.ep.postRecv(segment, i));
  }

  established(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.ep.connection$.subscribe((event) => {
        const { number } = event;
        if (number === DatEventNumber.ESTABLISHED) resolve();
        else reject(new Error(`the connection: ${nameOf(DatEventNumber, number)}`));
      });
    });
  }

  /** Shows every completion to `take`, the way the cell says, until `stop`. */
  consume(take: (batch: EventBatch, i: number) => void): Promise<void> {
    const turn = (): void => {
      const { batch } = this;
      const count = this.evd.dequeueInto(batch);
      if (count > 0) this.ep.burst(() => this.takeAll(batch, take));
    };
    if (this.cell.mode === 'spin') return spinUntil(() => this.over, turn);
    return new Promise((resolve) => {
      this.end = resolve;
      this.evd.modifyUpcall('NOTIFY', turn);
    });
  }

  private takeAll(batch: EventBatch, take: (batch: EventBatch, i: number) => void): void {
    for (let i = 0; i < batch.count; i++) {
      const status = batch.statuses[i]!;
      if (status === DatDtoStatus.SUCCESS) take(batch, i);
      else if (!this.over) {
        if (status !== DatDtoStatus.FLUSHED) {
          process.stderr.write(`a request failed: ${nameOf(DatDtoStatus, status)}\n`);
        }
        this.stop();
      }
    }
  }

  /** The server's part: takes messages in and posts the receive again; echoes pings. */
  serve(batch: EventBatch, i: number): void {
    if (batch.operations[i] !== DatDto.RECEIVE) return;
    const slot = batch.cookies[i]!;
    const segment = this.segments[slot]!;
    this.ep.postRecv(segment, slot);
    if (this.cell.workload === 'ping') this.ep.postSend(segment, 0, CompletionFlags.SUPPRESS);
  }

  stop(): void {
    this.over = true;
    this.end();
  }

  async free(): Promise<void> {
    await this.evd.modifyUpcall('TEARDOWN');
    if (this.ep.state === 'CONNECTED') this.ep.disconnect('abrupt');
    this.ep.free();
    await this.evd.free();
    this.memory.free();
    this.pz.free();
  }
}

/** Keeps `depth` messages in flight, each signalled and its completion consumed. */
async function stream(connection: Connection, target: Target, seconds: number): Promise<Count> {
  const { cell, ep, segments } = connection;
  const remote = new RemoteSegment(target);
  const endMs = performance.now() + seconds * 1000;
  const startMs = performance.now();
  let messages = 0;
  let inFlight = 0;
  let looks = 0;
  const post = (slot: number): void => {
    if (cell.workload === 'write') {
      ep.postRdmaWrite(segments[slot]!, slot, remote.seek(slot * cell.bytes));
    } else ep.postSend(segments[slot]!, slot);
    inFlight += 1;
  };
  const every = cell.bytes < 4096 ? 64 : 1;
  const consumed = connection.consume((batch, i) => {
    messages += 1;
    inFlight -= 1;
    // The clock is looked at once for so many bytes, not for every small message.
    if (looks >= 0 && ++looks % every === 0 && performance.now() >= endMs) looks = -1;
    if (looks >= 0) post(batch.cookies[i]!);
    else if (inFlight === 0) connection.stop();
  });
  ep.burst(() => {
    for (let slot = 0; slot < cell.depth; slot++) post(slot);
  });
  await consumed;
  if (inFlight > 0) throw new Error(`the connection broke with ${inFlight} messages in flight`);
  return { messages, seconds: (performance.now() - startMs) / 1000 };
}

async function ping(connection: Connection, seconds: number): Promise<Count> {
  const { ep, segments } = connection;
  const times = new HalfRoundTrips(seconds);
  const consumed = connection.consume((batch, i) => {
    if (batch.operations[i] !== DatDto.RECEIVE) return;
    const slot = batch.cookies[i]!;
    if (!times.lap()) {
      connection.stop();
      return;
    }
    ep.postRecv(segments[slot]!, slot);
    ep.postSend(segments[0]!, 0, CompletionFlags.SUPPRESS);
  });
  times.start();
  ep.postSend(segments[0]!, 0, CompletionFlags.SUPPRESS);
  await consumed;
  return times.count();
}
