/** Our end of cm-peer.c: connections without data, and what becomes of them. */
import { once } from 'node:events';
import { runInNewContext } from 'node:vm';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';

import { type ConnectionEvent, DatEventNumber, type Ep, type Evd, type Ia } from 'dapl';

import { patience } from '../../support/patience.js';
import { textOf } from './exchange.js';

const CORNER_PORT = 7800;
const STEP_TIMEOUT_MS = patience(120_000);
const STALE_CONNECTION = 10;
/** Connections after which all pools have grown, and the heap is compared from then on. */
const WARM_UP = 100;
/** What may be left of the pools' growth once queue pairs have sat out their time-wait. */
const SLACK_BYTES = 1 << 20;
const TIME_WAIT_MS = 30_000;
/** A peer that leaves at the same time gets its answer even where its packets are delayed. */
const LINGER_MS = 1000;
/** Retries that run out within a second. rdma_rxe takes 7 of them for "for ever". */
const WATCHED = { ackTimeout: 14, retryCount: 3 };

interface CornerOptions {
  readonly count: number;
  /**
   * When we disconnect: `each` as soon as it is established, all so many milliseconds after the
   * last one, or never (undefined): the peer does.
   */
  readonly leave: 'each' | number | undefined;
}

class Corners {
  private readonly connections: Evd;
  private readonly alive = new Set<Ep>();
  private established = 0;
  private ended = 0;

  constructor(
    private readonly ia: Ia,
    private readonly options: CornerOptions,
  ) {
    this.connections = ia.createEvd({ qlen: 4 * options.count });
  }

  endpoint(): Ep {
    const attributes = { maxRecvDtos: 1, maxRequestDtos: 1 };
    const connectEvd = this.connections;
    const pz = this.ia.createPz();
    const ep = this.ia.createEndpoint({ pz, connectEvd, attributes });
    this.alive.add(ep);
    return ep;
  }

  async untilAllEnded(): Promise<void> {
    const { count, leave } = this.options;
    while (this.ended < count) {
      const event = await this.event();
      process.stdout.write(`${textOf(event)}\n`);
      if (event.number !== DatEventNumber.ESTABLISHED) {
        this.ended++;
        continue;
      }
      const isLast = ++this.established === count;
      if (leave === 'each') this.leave();
      else if (isLast && leave !== undefined) setTimeout(() => this.leave(), leave);
    }
    if (leave !== undefined) await delay(LINGER_MS);
  }

  private leave(): void {
    for (const ep of this.alive) if (ep.state === 'CONNECTED') ep.disconnect('graceful');
  }

  private async event(): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
    return event;
  }
}

/** As `cm-peer hold`. */
async function hold(ia: Ia, connQual: number, options: CornerOptions): Promise<void> {
  const corners = new Corners(ia, options);
  const requests = ia.createEvd({ qlen: 2 * options.count });
  const psp = ia.createPsp({ connQual, evd: requests });
  process.stdout.write('listening\n');
  const accepting = (async (): Promise<void> => {
    for (let left = options.count; left > 0; left--) {
      const { event } = await requests.wait();
      if (event.type !== 'connection-request') throw new Error(`a ${event.type} event`);
      event.cr.accept(corners.endpoint());
    }
    psp.free();
  })();
  await corners.untilAllEnded();
  await accepting;
}

/** As `cm-peer connect`. */
async function connectAll(
  ia: Ia,
  address: string,
  connQual: number,
  options: CornerOptions,
): Promise<void> {
  const corners = new Corners(ia, options);
  for (let index = 0; index < options.count; index++) {
    corners.endpoint().connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
  }
  await corners.untilAllEnded();
}

/** One connection after the other, each with a fresh endpoint; prints what the heap has grown. */
async function connectInSequence(
  ia: Ia,
  address: string,
  connQual: number,
  count: number,
): Promise<void> {
  const growth = new HeapGrowth(count);
  const connectEvd = ia.createEvd({ qlen: 4 });
  const pz = ia.createPz();
  for (let index = 0; index < count; index++) {
    const ep = ia.createEndpoint({ pz, connectEvd });
    ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
    await expectEvent(connectEvd, DatEventNumber.ESTABLISHED);
    ep.disconnect();
    await expectEvent(connectEvd, DatEventNumber.DISCONNECTED);
    ep.free();
    growth.step(index + 1);
  }
  process.stdout.write(`connected ${count}\n${await growth.settled()}\n`);
}

/** The other side of `cm-peer connect ... sequence`. */
async function acceptInSequence(ia: Ia, connQual: number, count: number): Promise<void> {
  const growth = new HeapGrowth(count);
  const requests = ia.createEvd({ qlen: 4 });
  const psp = ia.createPsp({ connQual, evd: requests });
  const connectEvd = ia.createEvd({ qlen: 4 });
  const pz = ia.createPz();
  process.stdout.write('listening\n');
  for (let index = 0; index < count; index++) {
    const { event } = await requests.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'connection-request') throw new Error(`a ${event.type} event`);
    const ep = ia.createEndpoint({ pz, connectEvd });
    event.cr.accept(ep);
    await expectEvent(connectEvd, DatEventNumber.ESTABLISHED);
    await expectEvent(connectEvd, DatEventNumber.DISCONNECTED);
    ep.free();
    growth.step(index + 1);
  }
  psp.free();
  process.stdout.write(`accepted ${count}\n${await growth.settled()}\n`);
}

/** Connects; a peer that still knows our predecessor is asked again from a fresh queue pair. */
async function connectAgain(ia: Ia, address: string, connQual: number): Promise<void> {
  const connections = ia.createEvd({ qlen: 8 });
  const ep = ia.createEndpoint({ pz: ia.createPz(), connectEvd: connections });
  for (;;) {
    ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
    const { event } = await connections.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
    process.stdout.write(`${textOf(event)}\n`);
    if (event.rejectReason !== STALE_CONNECTION) break;
    ep.reset();
  }
  const { event } = await connections.wait({ timeoutMs: STEP_TIMEOUT_MS });
  if (event.type === 'connection') process.stdout.write(`${textOf(event)}\n`);
}

/**
 * Prints every event of one connection until SIGUSR2, also those behind its end; then it leaves.
 * @param keepAliveMs 0: only the CM can tell of an end
 */
async function watch(ia: Ia, keepAliveMs: number, open: (ep: Ep) => Promise<void>): Promise<void> {
  const leave = once(process, 'SIGUSR2');
  const awake = setInterval(() => undefined, LINGER_MS);
  const connectEvd = ia.createEvd({ qlen: 8 });
  const attributes = { keepAliveMs, transport: WATCHED };
  const ep = ia.createEndpoint({ pz: ia.createPz(), connectEvd, attributes });
  const ended = new Promise<void>((resolve) => {
    connectEvd.events$.subscribe((event) => {
      if (event.type !== 'connection') return;
      process.stdout.write(`${textOf(event)}\n`);
      if (event.number !== DatEventNumber.ESTABLISHED) resolve();
    });
  });
  await open(ep);
  await leave;
  if (ep.state === 'CONNECTED') ep.disconnect();
  await ended;
  await delay(LINGER_MS);
  clearInterval(awake);
}

async function acceptOne(ia: Ia, ep: Ep): Promise<void> {
  const requests = ia.createEvd({ qlen: 2 });
  const psp = ia.createPsp({ connQual: CORNER_PORT, evd: requests });
  process.stdout.write('listening\n');
  const { event } = await requests.wait({ timeoutMs: STEP_TIMEOUT_MS });
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event`);
  event.cr.accept(ep);
  psp.free();
}

function optionsOf([count, leave]: readonly string[]): CornerOptions {
  const isWord = leave === 'each' || leave === undefined;
  return { count: Number(count), leave: isWord ? leave : Number(leave) };
}

type Verb = (ia: Ia, address: string, args: readonly string[]) => Promise<void>;

export const CORNER_CLIENTS: Readonly<Record<string, Verb>> = {
  'connect-all': (ia, address, args) => connectAll(ia, address, CORNER_PORT, optionsOf(args)),
  'connect-again': (ia, address) => connectAgain(ia, address, CORNER_PORT),
  'connect-text': (ia, address, [port]) => connectText(ia, address, Number(port)),
  'connect-in-sequence': (ia, address, [count]) =>
    connectInSequence(ia, address, CORNER_PORT, Number(count)),
  'watch-connect': (ia, address, [keepAliveMs = 0]) =>
    watch(ia, Number(keepAliveMs), async (ep) => {
      ep.connect({ address, connQual: CORNER_PORT, timeoutMs: STEP_TIMEOUT_MS });
    }),
};

export const CORNER_SERVERS: Readonly<Record<string, Verb>> = {
  hold: (ia, _, args) => hold(ia, CORNER_PORT, optionsOf(args)),
  'accept-in-sequence': (ia, _, [count]) => acceptInSequence(ia, CORNER_PORT, Number(count)),
  'watch-accept': (ia, _, [keepAliveMs = 0]) =>
    watch(ia, Number(keepAliveMs), (ep) => acceptOne(ia, ep)),
};

/** Connects once; what comes with the answer is a text. */
async function connectText(ia: Ia, address: string, connQual: number): Promise<void> {
  const connectEvd = ia.createEvd({ qlen: 4 });
  const ep = ia.createEndpoint({ pz: ia.createPz(), connectEvd });
  ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
  const { event } = await connectEvd.wait({ timeoutMs: STEP_TIMEOUT_MS });
  if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
  const text = Buffer.from(event.privateData).toString().replace(/\0+$/, '');
  process.stdout.write(`${textOf(event)}\nprivate data: ${text}\n`);
}

class HeapGrowth {
  private before = 0;

  constructor(private readonly last: number) {
    setFlagsFromString('--expose-gc');
  }

  step(done: number): void {
    if (done === Math.min(WARM_UP, this.last)) this.before = heapBytes();
  }

  /** Waits for the time-wait of the last connections: their queue pairs are still there. */
  async settled(): Promise<string> {
    const endMs = performance.now() + TIME_WAIT_MS;
    let grown = heapBytes() - this.before;
    while (grown > SLACK_BYTES && performance.now() < endMs) {
      await delay(500);
      grown = heapBytes() - this.before;
    }
    return `heap grew by ${grown} bytes after the first ${WARM_UP}`;
  }
}

function heapBytes(): number {
  const collect = runInNewContext('gc') as () => void;
  collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}

async function expectEvent(evd: Evd, number: DatEventNumber): Promise<void> {
  const { event } = await evd.wait({ timeoutMs: STEP_TIMEOUT_MS });
  if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
  if (event.number !== number) throw new Error(textOf(event));
}
