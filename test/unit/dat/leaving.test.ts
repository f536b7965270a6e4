// What an endpoint that is reset or freed leaves on event dispatchers that others feed as well.

import assert from 'node:assert/strict';
import {
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  EvdFlags,
  EventBatch,
  type Ia,
  MemPrivileges,
  openIa,
} from '../../../core/index.js';
import { Fabric, mock, SeededRandom } from '../../../providers/mock/index.js';

const [LEFT, RIGHT] = ['192.0.2.1', '192.0.2.2'] as const;
const PAIRS = 3;
const STEPS = 60;
const { ESTABLISHED, DISCONNECTED, BROKEN } = DatEventNumber;

/** What the consumer knows of an endpoint: all of it is what it must still be told. */
interface Known {
  readonly ep: Ep;
  /** Cookies posted, oldest first, of receives and of requests. */
  readonly posted: { receive: number[]; request: number[] };
  ends: number;
  freed: boolean;
}

class Scene {
  readonly sides: Known[] = [];
  readonly batch = new EventBatch(4);
  private cookie = 0;
  private connQual = 7000;
  private lost = 0;

  private constructor(
    readonly fabric: Fabric,
    readonly random: SeededRandom,
    readonly ias: readonly Ia[],
    readonly evds: readonly Evd[],
    private readonly requests: Evd,
  ) {}

  /** One adapter at each end; its endpoints share one event dispatcher, or two. */
  static async open(seed: number): Promise<Scene> {
    const fabric = new Fabric({ seed, autoRun: false });
    const random = new SeededRandom(seed);
    const ias = [await openIa(mock({ fabric, address: LEFT }))];
    ias.push(await openIa(mock({ fabric, address: RIGHT })));
    const streams = EvdFlags.DEFAULT & ~(EvdFlags.CR | EvdFlags.ASYNC);
    const evds = ias.flatMap((ia) => [0, 1].map(() => ia.createEvd({ qlen: 512, streams })));
    const requests = ias[1]!.createEvd({ qlen: 8, streams: EvdFlags.CR });
    const scene = new Scene(fabric, random, ias, evds, requests);
    const split = random.below(2);
    for (let i = 0; i < 2 * PAIRS; i++) {
      const ia = ias[i % 2]!;
      const [one, other] = [evds[(i % 2) * 2]!, evds[(i % 2) * 2 + split]!];
      const at = { recvEvd: one, requestEvd: other, connectEvd: one };
      const attributes = { maxRecvDtos: 8, maxRequestDtos: 8 };
      const ep = ia.createEndpoint({ pz: ia.createPz(), ...at, attributes });
      scene.sides.push({ ep, posted: { receive: [], request: [] }, ends: 0, freed: false });
    }
    for (let pair = 0; pair < PAIRS; pair++) await scene.connect(pair);
    return scene;
  }

  pair(index: number): readonly [Known, Known] {
    return [this.sides[2 * index]!, this.sides[2 * index + 1]!];
  }

  async connect(pair: number): Promise<void> {
    const [active, passive] = this.pair(pair);
    if (active.freed || passive.freed) return;
    if (active.ep.state !== 'UNCONNECTED' || passive.ep.state !== 'UNCONNECTED') return;
    const psp = this.ias[1]!.createPsp({ connQual: ++this.connQual, evd: this.requests });
    active.ep.connect({ address: RIGHT, connQual: this.connQual });
    let request: DatEvent | undefined;
    await this.fabric.run({ until: () => (request = this.requests.dequeue()) !== undefined });
    assert.ok(request?.type === 'connection-request');
    request.cr.accept(passive.ep);
    psp.free();
    await this.fabric.run({ until: () => passive.ep.state === 'CONNECTED' });
  }

  post(known: Known): void {
    const { ep, posted } = known;
    if (known.freed) return;
    const connected = ep.state === 'CONNECTED' || ep.state === 'DISCONNECTED';
    if (connected && ep.requestsFree > 0 && this.random.below(2) === 0) {
      ep.postSend([], ++this.cookie);
      posted.request.push(this.cookie);
    } else if (ep.receivesFree > 0 && ep.state !== 'UNCONNECTED') {
      ep.postRecv([], ++this.cookie);
      posted.receive.push(this.cookie);
    }
  }

  /** Takes a few events, in one of the ways there are. */
  take(evd: Evd, most: number): void {
    if (this.random.below(2) === 0) {
      for (let i = 0; i < most; i++) {
        const event = evd.dequeue();
        if (event === undefined) return;
        this.seen(event);
      }
      return;
    }
    const { batch } = this;
    evd.dequeueInto(batch, Math.min(most, batch.capacity));
    for (let i = 0; i < batch.count; i++) {
      const event = batch.events[i];
      if (event !== undefined) this.seen(event);
      else this.completed(batch.eps[i], batch.cookies[i]!);
    }
  }

  private seen(event: DatEvent): void {
    if (event.type === 'dto') {
      assert.ok(event.status <= DatDtoStatus.FLUSHED);
      this.completed(event.ep, event.cookie);
    } else if (event.type === 'connection' && event.number !== ESTABLISHED) {
      assert.ok(event.number === DISCONNECTED || event.number === BROKEN);
      const known = this.of(event.ep);
      known.ends++;
    }
  }

  private of(ep: unknown): Known {
    const known = this.sides.find((side) => side.ep === ep);
    assert.ok(known !== undefined, 'the event names one of the endpoints');
    return known;
  }

  private completed(ep: unknown, cookie: number): void {
    const known = this.of(ep);
    assert.equal(known.freed, false, `cookie ${cookie} of an endpoint that was freed`);
    const queues = Object.values(known.posted);
    assert.ok(
      queues.some((queue) => queue[0] === cookie && queue.shift() !== undefined),
      `cookie ${cookie} is not the oldest of ${JSON.stringify(known.posted)}`,
    );
  }

  /** Frees an endpoint; what it has not been told of is lost, and nothing else. */
  free(known: Known): void {
    if (known.freed || this.sides.filter(({ freed }) => freed).length > PAIRS) return;
    const { posted } = known;
    const before = this.dropped();
    const waiting = this.waiting();
    known.ep.free();
    const dropped = this.dropped() - before;
    // Nothing of others went, and all that went is counted.
    assert.ok(dropped <= posted.receive.length + posted.request.length);
    assert.ok(waiting - this.waiting() <= dropped);
    this.lost += posted.receive.length + posted.request.length;
    known.freed = true;
  }

  dropped(): number {
    return this.evds.reduce((sum, evd) => sum + evd.query().dropped, 0);
  }

  waiting(): number {
    return this.evds.reduce((sum, evd) => sum + evd.query().pending, 0);
  }

  /** Everything is over: who is still there has been told of all that it posted. */
  async finish(): Promise<void> {
    for (const { ep, freed } of this.sides) {
      if (!freed && ep.state === 'CONNECTED') ep.disconnect();
    }
    await this.fabric.run({ forUs: 100_000 });
    for (const evd of this.evds) while (evd.query().pending > 0) this.take(evd, 4);
    for (const { freed, posted } of this.sides) {
      if (!freed) assert.deepEqual(posted, { receive: [], request: [] });
    }
    assert.equal(this.dropped(), this.lost);
    const { owners } = this.ias[0]!.core;
    assert.equal(owners.size, this.sides.filter(({ freed }, i) => !freed && i % 2 === 0).length);
  }
}

/** One run: returns how often an endpoint was reset or freed while something of it waited. */
async function run(seed: number): Promise<{ resets: number; frees: number }> {
  const scene = await Scene.open(seed);
  const { random, fabric } = scene;
  const seen = { resets: 0, frees: 0 };
  for (let step = 0; step < STEPS; step++) {
    const known = scene.sides[random.below(scene.sides.length)]!;
    const { ep, posted } = known;
    const waits = posted.receive.length + posted.request.length > 0;
    const what = random.below(20);
    if (what < 9) scene.post(known);
    else if (what < 12) await fabric.run({ forUs: random.below(40) });
    else if (what < 15) scene.take(scene.evds[random.below(4)]!, 1 + random.below(4));
    else if (what === 15) scene.evds[random.below(4)]!.query();
    else if (what === 16 && !known.freed && ep.state === 'CONNECTED') ep.disconnect();
    else if (what < 19 && !known.freed && ep.state === 'DISCONNECTED') {
      ep.reset();
      if (waits) seen.resets++;
    } else if (what === 18) await scene.connect(random.below(PAIRS));
    else if (what === 19 && random.below(3) === 0) {
      scene.free(known);
      if (waits) seen.frees++;
    }
  }
  await scene.finish();
  return seen;
}

describe('receives of a shared queue', () => {
  it('are held by the endpoint from the first packet of a message to the last', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const [one, other] = [
      await openIa(mock({ fabric, address: LEFT })),
      await openIa(mock({ fabric, address: RIGHT })),
    ];
    const requests = other.createEvd({ qlen: 4 });
    const pz = other.createPz();
    const srq = other.createSrq({ pz, maxRecvDtos: 4 });
    const there = other.allocate(1 << 16, { pz, privileges: MemPrivileges.ALL });
    const taker = other.createEndpoint({ pz, srq });
    const here = one.createPz();
    const sender = one.createEndpoint({ pz: here });
    const memory = one.allocate(1 << 16, { pz: here });
    other.createPsp({ connQual: 7471, evd: requests });
    sender.connect({ address: RIGHT, connQual: 7471 });
    await fabric.run({ until: () => requests.query().pending > 0 });
    const request = requests.dequeue();
    assert.ok(request?.type === 'connection-request');
    request.cr.accept(taker);
    await fabric.run({ until: () => sender.state === 'CONNECTED' });
    for (let i = 0; i < 4; i++) srq.postRecv(there.segment(), i);
    sender.postSend(memory.segment());
    const held: unknown[] = [taker.recvQuery().buffersAllocated];
    for (let us = 0; us < 200; us++) {
      await fabric.run({ forUs: 1 });
      const { buffersAllocated, bufferSpan } = taker.recvQuery();
      assert.equal(bufferSpan, buffersAllocated);
      assert.equal(taker.getStatus().recvIdle, buffersAllocated === 0);
      if (buffersAllocated !== held.at(-1)) held.push(buffersAllocated);
    }
    assert.deepEqual(held, [0, 1, 0]);
  });
});

describe('an endpoint that is reset or freed', () => {
  it('leaves what others have; a reset leaves its own, too, a free counts it', async () => {
    const sum = { resets: 0, frees: 0 };
    for (let seed = 1; seed <= 40; seed++) {
      const seen = await run(seed).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
      sum.resets += seen.resets;
      sum.frees += seen.frees;
    }
    assert.ok(sum.resets > 15 && sum.frees > 15, JSON.stringify(sum));
  });
});
