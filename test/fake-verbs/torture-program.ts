/** The cases of test/unit/verbs/torture: `node --expose-gc torture-program.js <case>`. */
import assert from 'node:assert/strict';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type Ep, type Evd, type Ia, type Lmr, MemPrivileges, RemoteSegment } from 'dapl';
import { leftovers, LIFE_ADDRESSES, live, openLifeDevice } from './life.js';
import { patience } from '../support/patience.js';

const CONN_QUAL = 7701;
const PIECE = 4096;
const PATIENCE_MS = patience(60_000);
const collect = (): void => (globalThis as unknown as { gc(): void }).gc();
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Side {
  readonly ia: Ia;
  readonly evd: Evd;
  readonly ep: Ep;
}

async function side(device: 'fake0' | 'fake1'): Promise<Side> {
  const ia = await openLifeDevice(device);
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  return { ia, evd, ep: ia.createEndpoint({ pz, ...evds }) };
}

async function pair(): Promise<[Side, Side]> {
  const [here, there] = [await side('fake0'), await side('fake1')];
  const psp = there.ia.createPsp({ connQual: CONN_QUAL, evd: there.evd });
  here.ep.connect({ address: LIFE_ADDRESSES[1], connQual: CONN_QUAL });
  const { event } = await there.evd.wait({ timeoutMs: PATIENCE_MS });
  assert.ok(event.type === 'connection-request');
  event.cr.accept(there.ep);
  await here.evd.wait({ timeoutMs: PATIENCE_MS });
  await there.evd.wait({ timeoutMs: PATIENCE_MS });
  psp.free();
  return [here, there];
}

function region({ ia, ep }: Side, memory: Uint8Array): Lmr {
  return ia.createLmr(memory, { pz: ep.pz, privileges: MemPrivileges.ALL });
}

function remoteOf({ address, rmrContext = 0 }: Lmr): RemoteSegment {
  return new RemoteSegment({ address, rmrContext });
}

/** Writes a region of the one side into a region of the other, and looks. */
async function writeAll([here, there]: readonly [Side, Side], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const from = region(here, new Uint8Array(PIECE).fill(round));
    const to = region(there, new Uint8Array(PIECE));
    for (let i = 0; i < 16; i++) here.ep.postRdmaWrite(from.segment(), i, remoteOf(to));
    // Garbage of the same size, so that memory that was freed too early is used again.
    const garbage = Array.from({ length: 32 }, () => new Uint8Array(PIECE).fill(0xee));
    if (round % 4 === 0) collect();
    for (let i = 0; i < 16; i++) {
      const { event } = await here.evd.wait({ timeoutMs: PATIENCE_MS });
      assert.ok(event.type === 'dto' && event.status === 0);
      if (i % 4 === 0) collect();
    }
    assert.ok(
      to.bytes.every((byte) => byte === (round & 255)),
      `round ${round}`,
    );
    assert.ok(
      garbage.every((bytes) => bytes.every((byte) => byte === 0xee)),
      'written elsewhere',
    );
    from.free();
    to.free();
  }
}

const CASES: Readonly<Record<string, () => Promise<void>>> = {
  /** Only the addresses are kept: the registration is what holds the memory. */
  async dropped() {
    const sides = await pair();
    const [here, there] = sides;
    const remotes = Array.from({ length: 64 }, () =>
      remoteOf(region(there, new Uint8Array(PIECE))),
    );
    const source = region(here, new Uint8Array(PIECE).fill(7));
    const back = region(here, new Uint8Array(PIECE));
    for (const remote of remotes) {
      collect();
      here.ep.postRdmaWrite(source.segment(), 1, remote);
      here.ep.postRdmaRead(back.segment(), 2, remote);
      await here.evd.wait({ timeoutMs: PATIENCE_MS });
      await here.evd.wait({ timeoutMs: PATIENCE_MS });
      assert.ok(back.bytes.every((byte) => byte === 7));
    }
    for (const { ia } of sides) await ia.close();
    collect();
    await turn();
    collect();
    assert.deepEqual(leftovers(), []);
  },

  async collected() {
    const sides = await pair();
    await writeAll(sides, 60);
    for (const { ia } of sides) await ia.close();
    assert.deepEqual(leftovers(), []);
  },

  async forgotten() {
    for (let i = 0; i < 4; i++) {
      const [here] = await pair();
      const memory = region(here, new Uint8Array(PIECE));
      here.ep.postRecv(memory.segment(), 1);
      here.ep.disconnect();
      collect();
    }
    const outcome = await live();
    assert.deepEqual(outcome, { errors: [], events: [] });
    // Nothing is closed: the end of the environment does it, with requests outstanding.
    process.stdout.write('as expected\n');
    process.exit(0);
  },

  async workers() {
    const before = leftovers();
    for (let i = 0; i < 6; i++) {
      const worker = new Worker(new URL(import.meta.url), { workerData: 'transfer' });
      await new Promise((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
      });
      for (let turns = 0; turns < i * 5; turns++) await turn();
      await worker.terminate();
      assert.deepEqual(leftovers(), before, `worker ${i}`);
    }
    assert.deepEqual(await live(), { errors: [], events: [] });
  },
};

/** In a worker: transfers until it is ended. */
async function transferForEver(): Promise<void> {
  const sides = await pair();
  parentPort?.postMessage('transferring');
  await writeAll(sides, Infinity);
}

if (isMainThread) {
  const scene = CASES[process.argv[2] ?? ''];
  assert.ok(scene, `one of ${Object.keys(CASES).join(', ')}`);
  await scene();
  process.stdout.write('as expected\n');
} else if (workerData === 'transfer') {
  await transferForEver();
}
