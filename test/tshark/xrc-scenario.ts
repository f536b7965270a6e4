/** Every operation that an XRC initiator can make, in every length class, and its refusals. */
import { DatEventNumber, type Lmr, RemoteSegment, type XrcInitiator, type XrcSrq } from 'dapl';
import { completion, next, request, type Side, sideOf, type Stage, until } from './scenario.js';

const CONN_QUAL = 7472;
const RECEIVE_BYTES = 8192;
/** Less than a packet, a packet, several. */
const LENGTHS = [0, 100, 1024, 5000];

interface Reached {
  readonly from: XrcInitiator;
  readonly srq: XrcSrq;
}

/** Runs it all; both adapters are left open. */
export async function playXrc(stage: Stage): Promise<void> {
  const [active, passive] = [sideOf(stage.active), sideOf(stage.passive)];
  const reached = await reach(stage, active, passive);
  let cookie = await transfers(active, passive, reached);
  cookie = await atomics(active, passive, reached, cookie);
  await notReady(stage, active, passive, reached, cookie);
  reached.from.disconnect();
  await until(active, DatEventNumber.DISCONNECTED);
  for (const bytes of [100, 5000]) await invalidation(stage, active, passive, bytes);
}

/** A connection, and a queue behind it. */
async function reach(stage: Stage, active: Side, passive: Side): Promise<Reached> {
  const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd, xrc: true });
  const { pz, evd } = passive;
  const behind = await passive.ia.openXrcDomain();
  const srq = behind.createSrq({ pz, recvEvd: evd, maxRecvDtos: 64 });
  const own = await active.ia.openXrcDomain();
  const from = own.createInitiator({
    pz: active.pz,
    requestEvd: active.evd,
    connectEvd: active.evd,
    attributes: { transport: { rnrRetryCount: 7, pathMtuBytes: 1024 } },
  });
  from.connect({ address: stage.passiveAddress, connQual: CONN_QUAL });
  behind.accept(await request(passive), {
    attributes: { transport: { minRnrTimer: 12, rnrRetryCount: 7 } },
  });
  await until(active, DatEventNumber.ESTABLISHED);
  psp.free();
  from.toSrq(srq.srqn);
  return { from, srq };
}

async function transfers(active: Side, passive: Side, { from, srq }: Reached): Promise<number> {
  const remote = remoteOf(passive.lmr);
  let cookie = 0;
  const done = (): Promise<void> => completion(active, cookie);
  for (const bytes of LENGTHS) {
    const segment = active.lmr.segment(0, bytes);
    const receive = (): void => srq.postRecv(passive.lmr.segment(0, RECEIVE_BYTES), 1000);
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
  return cookie;
}

async function atomics(
  active: Side,
  passive: Side,
  { from }: Reached,
  before: number,
): Promise<number> {
  const result = active.lmr.segment(0, 8);
  const remote = remoteOf(passive.lmr);
  from.postFetchAdd(result, before + 1, remote, 5n);
  await completion(active, before + 1);
  from.postCompareSwap(result, before + 2, remote, 1n, 2n);
  await completion(active, before + 2);
  return before + 2;
}

/** The queue is empty: RNR NAK, until it is not. */
async function notReady(
  stage: Stage,
  active: Side,
  passive: Side,
  { from, srq }: Reached,
  before: number,
): Promise<void> {
  from.postSend(active.lmr.segment(0, 4), before + 1);
  await stage.pause(20);
  srq.postRecv(passive.lmr.segment(0, 64), 2000);
  await completion(active, before + 1);
}

/** A target has no keys that a peer may take back: it is refused when it has arrived. */
async function invalidation(
  stage: Stage,
  active: Side,
  passive: Side,
  bytes: number,
): Promise<void> {
  const { from, srq } = await reach(stage, active, passive);
  srq.postRecv(passive.lmr.segment(0, RECEIVE_BYTES), 1);
  from.postSendWithInvalidate(active.lmr.segment(0, bytes), 2, 0x1234);
  while ((await next(active)).type !== 'dto');
  from.free();
}

function remoteOf({ address, rmrContext }: Lmr): RemoteSegment {
  if (rmrContext === undefined) throw new Error('the region is not open to peers');
  return new RemoteSegment({ address, rmrContext });
}
