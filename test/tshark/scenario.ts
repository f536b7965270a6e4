/**
 * Everything that two programs can make an adapter say: connections of all endings, every operation
 * in every length class, refusals of the data path, datagrams and their services.
 */
import assert from 'node:assert/strict';
import {
  type Cr,
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  type Pz,
  RemoteSegment,
} from 'dapl';
import { patience } from '../support/patience.js';

const WAIT_MS = patience(30_000);
const CONN_QUAL = 7471;
const REGION_BYTES = 1 << 16;
/** REQ is repeated before that, and answered by MRA. */
const SLOW_ANSWER_MS = 700;

export interface Stage {
  readonly active: Ia;
  readonly passive: Ia;
  readonly passiveAddress: string;
  /** Lets time pass. */
  pause(ms: number): Promise<void>;
}

export interface Side {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly evd: Evd;
  readonly lmr: Lmr;
}

export function sideOf(ia: Ia): Side {
  const pz = ia.createPz();
  const privileges = MemPrivileges.ALL | MemPrivileges.REMOTE_ATOMIC;
  const lmr = ia.allocate(REGION_BYTES, { pz, privileges });
  return { ia, pz, evd: ia.createEvd({ qlen: 1024 }), lmr };
}

function endpoint({ ia, pz, evd }: Side): Ep {
  // A receiver that is not ready says so, and is asked again for as long as it takes.
  const transport = { minRnrTimer: 12, rnrRetryCount: 7, pathMtuBytes: 1024 };
  const attributes = { transport };
  return ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd, attributes });
}

export async function next({ evd }: Side): Promise<DatEvent> {
  return (await evd.wait({ timeoutMs: WAIT_MS })).event;
}

/** Takes events up to one with that number. */
export async function until(side: Side, number: DatEventNumber): Promise<DatEvent> {
  for (;;) {
    const event = await next(side);
    if (event.number === number) return event;
  }
}

export async function request(side: Side): Promise<Cr> {
  const event = await until(side, DatEventNumber.CONNECTION_REQUEST);
  assert.ok(event.type === 'connection-request');
  return event.cr;
}

/** Takes completions up to one with that cookie. */
export async function completion(side: Side, cookie: number): Promise<void> {
  for (;;) {
    const event = await next(side);
    if (event.type !== 'dto' || event.cookie !== cookie) continue;
    assert.equal(event.status, 0, `completion ${cookie}`);
    return;
  }
}

/** Runs it all; both adapters are left open. */
export async function playAll(stage: Stage): Promise<void> {
  const [active, passive] = [sideOf(stage.active), sideOf(stage.passive)];
  await refusals(stage, active, passive);
  await transfers(stage, active, passive);
  for (const bytes of [100, 5000]) await invalidation(stage, active, passive, bytes);
  await datagrams(stage, active, passive);
}

/** REJ of the CM and of the consumer; MRA. */
async function refusals(stage: Stage, active: Side, passive: Side): Promise<void> {
  const { passiveAddress: address } = stage;
  const ep = endpoint(active);
  ep.connect({ address, connQual: CONN_QUAL });
  await until(active, DatEventNumber.NON_PEER_REJECTED);
  ep.reset();
  const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
  ep.connect({ address, connQual: CONN_QUAL, privateData: Buffer.from('may I?') });
  const cr = await request(passive);
  await stage.pause(SLOW_ANSWER_MS);
  cr.reject({ privateData: Buffer.from('no') });
  await until(active, DatEventNumber.PEER_REJECTED);
  ep.free();
  psp.free();
}

async function transfers(stage: Stage, active: Side, passive: Side): Promise<void> {
  const { passiveAddress: address } = stage;
  const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
  const [from, to] = [endpoint(active), endpoint(passive)];
  from.connect({ address, connQual: CONN_QUAL, privateData: Buffer.from('hello') });
  (await request(passive)).accept(to, { privateData: Buffer.from('welcome') });
  await until(active, DatEventNumber.ESTABLISHED);
  await until(passive, DatEventNumber.ESTABLISHED);
  const { address: base, rmrContext } = passive.lmr;
  assert.ok(rmrContext !== undefined);
  const remote = new RemoteSegment({ address: base, rmrContext });
  let cookie = 0;
  for (const bytes of [0, 100, 1024, 5000]) {
    const segment = active.lmr.segment(0, bytes);
    const receive = (): void => to.postRecv(passive.lmr.segment(0, 8192), 1000 + cookie);
    const done = (): Promise<void> => completion(active, cookie);
    receive();
    from.postSend(segment, ++cookie);
    await done();
    receive();
    from.postSendWithImmediate(segment, ++cookie, 0x01020304);
    await done();
    from.postRdmaWrite(segment, ++cookie, remote);
    await done();
    receive();
    from.postRdmaWriteWithImmediate(segment, ++cookie, remote, 0x05060708);
    await done();
    from.postRdmaRead(segment, ++cookie, remote);
    await done();
  }
  const result = active.lmr.segment(0, 8);
  from.postFetchAdd(result, ++cookie, remote, 5n);
  await completion(active, cookie);
  from.postCompareSwap(result, ++cookie, remote, 1n, 2n);
  await completion(active, cookie);
  // Nobody has posted a receive: RNR NAK, until somebody has.
  from.postSend(active.lmr.segment(0, 4), ++cookie);
  await stage.pause(20);
  to.postRecv(passive.lmr.segment(0, 64), 2000);
  await completion(active, cookie);
  from.disconnect();
  await until(active, DatEventNumber.DISCONNECTED);
  await until(passive, DatEventNumber.DISCONNECTED);
  psp.free();
  from.free();
  to.free();
}

/** Sends that name a context to invalidate; whether the peer has it is no matter here. */
async function invalidation(
  stage: Stage,
  active: Side,
  passive: Side,
  bytes: number,
): Promise<void> {
  const { passiveAddress: address } = stage;
  const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
  const [from, to] = [endpoint(active), endpoint(passive)];
  from.connect({ address, connQual: CONN_QUAL });
  (await request(passive)).accept(to);
  await until(active, DatEventNumber.ESTABLISHED);
  await until(passive, DatEventNumber.ESTABLISHED);
  to.postRecv(passive.lmr.segment(0, 8192), 1);
  from.postSendWithInvalidate(active.lmr.segment(0, bytes), 2, 0x1234);
  let event: DatEvent;
  do event = await next(active);
  while (event.type !== 'dto');
  psp.free();
  from.free();
  to.free();
}

async function datagrams(stage: Stage, active: Side, passive: Side): Promise<void> {
  const { passiveAddress: address } = stage;
  const make = ({ ia, pz, evd }: Side) =>
    ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd });
  const [from, to] = [make(active), make(passive)];
  await assert.rejects(from.resolve({ address, connQual: CONN_QUAL }));
  to.serve({ connQual: CONN_QUAL, answer: () => ({ privateData: Buffer.from('here') }) });
  const there = await from.resolve({
    address,
    connQual: CONN_QUAL,
    privateData: Buffer.from('where?'),
  });
  for (const bytes of [0, 3, 1024]) {
    for (let i = 0; i < 2; i++) to.postRecv(passive.lmr.segment(0, 2048), 1);
    from.postSendUd(active.lmr.segment(0, bytes), there, 2);
    from.postSendUdWithImmediate(active.lmr.segment(0, bytes), there, 3, 0xdeadbeef);
    for (let i = 0; i < 2; i++) await until(passive, DatEventNumber.IB_DTO);
  }
}
