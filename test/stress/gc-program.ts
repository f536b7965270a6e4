/**
 * A program for gc.long.test.ts, under V8's flags of stress: what is sent and what peers read lies
 * in memory that only the library refers to, and goes when the adapters are closed.
 *
 *   node --expose-gc … gc-program.js native|dgram
 */
import assert from 'node:assert/strict';
import {
  type DatEvent,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  openIa,
  type Pz,
  RemoteSegment,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { loopback, testPort } from '../support/loopback.js';
import { patience } from '../support/patience.js';

const ADDRESSES = [loopback(0, 65), loopback(0, 66)] as const;
const UDP_PORT = testPort(38);
const BYTES = 20_000;
const ROUNDS = 10;
const port = process.argv[2] === 'dgram' ? 'dgram' : 'native';
const collect = (globalThis as { gc?: () => void }).gc;
assert.ok(collect !== undefined, 'wants --expose-gc');

/** Buffers and adapters that should be gone in the end. */
const watched: WeakRef<object>[] = [];

function pattern(seed: number): Uint8Array {
  const bytes = new Uint8Array(BYTES);
  for (let i = 0; i < BYTES; i++) bytes[i] = (i * 31 + seed) & 0xff;
  return bytes;
}

function watch<T extends object>(value: T): T {
  watched.push(new WeakRef(value));
  return value;
}

/** Memory with a pattern; the caller keeps the region at most. */
function register(ia: Ia, pz: Pz, seed: number): Lmr {
  const bytes = watch(new ArrayBuffer(BYTES));
  new Uint8Array(bytes).set(pattern(seed));
  return ia.createLmr(bytes, { pz, privileges: MemPrivileges.ALL });
}

function litter(): void {
  for (let i = 0; i < 8; i++) new Uint8Array(BYTES).fill(0xee);
  collect?.();
}

async function next(evd: Evd): Promise<DatEvent> {
  return (await evd.wait({ timeoutMs: patience(60_000) })).event;
}

async function completed(evd: Evd, ...cookies: number[]): Promise<void> {
  const left = new Set(cookies);
  while (left.size > 0) {
    const event = await next(evd);
    assert.ok(event.type === 'dto' && event.status === 0, 'a request succeeds');
    assert.ok(left.delete(event.cookie));
  }
}

interface Side {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly evd: Evd;
  readonly ep: ReturnType<Ia['createEndpoint']>;
}

async function side(address: string): Promise<Side> {
  const ia = watch(
    await openIa(softroce({ addresses: [address], udpPort: UDP_PORT, port, shm: false })),
  );
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
  return { ia, pz, evd, ep: watch(ep) };
}

async function transfer(): Promise<void> {
  const [here, there] = [await side(ADDRESSES[0]), await side(ADDRESSES[1])];
  there.ia.createPsp({ connQual: 7471, evd: there.evd });
  here.ep.connect({ address: ADDRESSES[1], connQual: 7471 });
  const request = await next(there.evd);
  assert.ok(request.type === 'connection-request');
  request.cr.accept(there.ep);
  await Promise.all([next(here.evd), next(there.evd)]);
  for (let round = 0; round < ROUNDS; round++) {
    // One segment is all that is left of the receive's memory here, none of the send's.
    const into = register(there.ia, there.pz, 0).segment();
    there.ep.postRecv(into, 1);
    here.ep.postSend(register(here.ia, here.pz, round).segment(), 2);
    litter();
    await Promise.all([completed(here.evd, 2), completed(there.evd, 1)]);
    assert.equal(Buffer.compare(into.bytes, pattern(round)), 0, 'what was sent');
    const { address, rmrContext = 0 } = register(there.ia, there.pz, round + 7);
    const sink = register(here.ia, here.pz, 0).segment();
    litter();
    here.ep.postRdmaRead(sink, 3, new RemoteSegment({ address, rmrContext }));
    litter();
    await completed(here.evd, 3);
    assert.equal(Buffer.compare(sink.bytes, pattern(round + 7)), 0, 'what was read');
  }
  await Promise.all([here.ia.close(), there.ia.close()]);
}

await transfer();
for (let i = 0; i < 10; i++) {
  litter();
  await new Promise((resolve) => setTimeout(resolve, 10));
}
const alive = watched.filter((reference) => reference.deref() !== undefined).length;
process.stdout.write(`${watched.length} made, ${alive} left\n`);
