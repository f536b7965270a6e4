/**
 * Measures a pair of adapters as perftest does: round trips of one message, and the throughput of a
 * window of messages in flight. Both ends are in this process and sleep until the device wakes
 * them.
 */
import {
  CompletionFlags,
  type DatEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  RemoteSegment,
} from 'dapl';
import type { CompliancePair } from 'dapl/testing';

/** Latency: half a round trip, in µs. Bandwidth: MiB/s. */
export type Figure =
  | { readonly test: string; readonly bytes: number; readonly medianUs: number; p99Us: number }
  | { readonly test: string; readonly bytes: number; readonly mibPerSecond: number };

const KIB = 1024;
const MIB = 1 << 20;
const LATENCY_BYTES = [64, 4 * KIB] as const;
const BANDWIDTH_BYTES = [64 * KIB, MIB] as const;
/** Messages before the measurement, for compilation and caches. */
const WARM_UP = 20;
const WINDOW = 64;
const WAIT_MS = 20_000;
const CONN_QUAL = 7471;
const { SUPPRESS } = CompletionFlags;

export interface FigureOptions {
  /** Largest number of round trips of a latency test. */
  readonly trips: number;
  /** Limit of a test in milliseconds; the volume may end it earlier. */
  readonly limitMs: number;
  readonly volumeBytes: number;
}

const DEFAULTS: FigureOptions = { trips: 1000, limitMs: 1000, volumeBytes: 256 * MIB };

/**
 * Measures latency and bandwidth.
 * @param reads true if the device has RDMA reads
 */
export async function measure(
  pair: CompliancePair,
  reads: boolean,
  options: FigureOptions = DEFAULTS,
): Promise<Figure[]> {
  const here = new End(pair.active);
  const there = new End(pair.passive);
  await connect(pair, here, there);
  const figures: Figure[] = [];
  for (const bytes of LATENCY_BYTES) figures.push(await latency(here, there, bytes, options));
  for (const bytes of BANDWIDTH_BYTES) {
    const write = (): void =>
      here.ep.postRdmaWrite(here.lmr.segment(0, bytes), bytes, there.remote());
    const read = (): void =>
      here.ep.postRdmaRead(here.lmr.segment(0, bytes), bytes, there.remote());
    figures.push(await bandwidth('write_bw', here, bytes, write, options));
    if (reads) figures.push(await bandwidth('read_bw', here, bytes, read, options));
  }
  return figures;
}

/** One side: an endpoint and its memory. Receives and requests have separate event dispatchers. */
class End {
  readonly receives: Evd;
  readonly requests: Evd;
  readonly connection: Evd;
  readonly ep: Ep;
  readonly lmr: Lmr;

  constructor(readonly ia: Ia) {
    const pz = ia.createPz();
    [this.receives, this.requests, this.connection] = [128, 128, 8].map((qlen) =>
      ia.createEvd({ qlen }),
    ) as [Evd, Evd, Evd];
    const evds = {
      recvEvd: this.receives,
      requestEvd: this.requests,
      connectEvd: this.connection,
    };
    const dtos = Math.min(WINDOW, ia.query().ia.maxDtoPerEp);
    const attributes = { maxRequestDtos: dtos, maxRecvDtos: dtos };
    this.ep = ia.createEndpoint({ pz, ...evds, attributes });
    this.lmr = ia.allocate(MIB, { pz, privileges: MemPrivileges.ALL });
  }

  remote(): RemoteSegment {
    const { address, rmrContext = 0 } = this.lmr;
    return new RemoteSegment({ address, rmrContext });
  }

  async connected(): Promise<void> {
    const { event } = await this.connection.wait({ timeoutMs: WAIT_MS });
    if (this.ep.state !== 'CONNECTED') throw new Error(`no connection: ${event.type}`);
  }

  async received(): Promise<void> {
    succeeded((await this.receives.wait({ timeoutMs: WAIT_MS })).event);
  }
}

async function connect(pair: CompliancePair, here: End, there: End): Promise<void> {
  const psp = there.ia.createPsp({ connQual: CONN_QUAL, evd: there.connection });
  here.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
  const { event } = await there.connection.wait({ timeoutMs: WAIT_MS });
  if (event.type !== 'connection-request') throw new Error(`no request: ${event.type}`);
  event.cr.accept(there.ep);
  await Promise.all([here.connected(), there.connected()]);
  psp.free();
}

function succeeded(event: DatEvent): void {
  if (event.type === 'dto' && event.status === 0) return;
  throw new Error(`a request has failed: ${event.type}`);
}

async function latency(
  here: End,
  there: End,
  bytes: number,
  { trips, limitMs }: FigureOptions,
): Promise<Figure> {
  const halves: number[] = [];
  const send = ({ ep, lmr }: End): void => ep.postSend(lmr.segment(0, bytes), 0, SUPPRESS);
  const listen = ({ ep, lmr }: End): void => ep.postRecv(lmr.segment(0, bytes), 0);
  // At least one message is counted, however slow the machine is.
  let end = Infinity;
  for (let trip = -WARM_UP; trip < trips && performance.now() < end; trip++) {
    listen(here);
    listen(there);
    const before = performance.now();
    send(here);
    await there.received();
    send(there);
    await here.received();
    if (trip < 0) continue;
    halves.push((performance.now() - before) * 500);
    if (trip === 0) end = performance.now() + limitMs;
  }
  halves.sort((a, b) => a - b);
  const at = (quantile: number): number => round(halves[Math.floor(quantile * halves.length)] ?? 0);
  return { test: 'send_lat', bytes, medianUs: at(0.5), p99Us: at(0.99) };
}

async function bandwidth(
  test: string,
  { ep, requests }: End,
  bytes: number,
  post: () => void,
  { limitMs, volumeBytes }: FigureOptions,
): Promise<Figure> {
  const messages = Math.max(1, Math.floor(volumeBytes / bytes));
  let [posted, completed] = [0, 0];
  const before = performance.now();
  const isOver = (): boolean => posted >= messages || performance.now() - before > limitMs;
  const fill = (): void => {
    for (; ep.requestsFree > 0 && !isOver(); posted++) post();
  };
  for (ep.burst(fill); completed < posted; ep.burst(fill)) {
    succeeded((await requests.wait({ timeoutMs: WAIT_MS })).event);
    completed++;
    for (let event = requests.dequeue(); event !== undefined; event = requests.dequeue()) {
      succeeded(event);
      completed++;
    }
  }
  const seconds = (performance.now() - before) / 1000;
  return { test, bytes, mibPerSecond: round((completed * bytes) / MIB / seconds) };
}

/** Rounds to three significant digits. */
function round(value: number): number {
  return Number(value.toPrecision(3));
}
