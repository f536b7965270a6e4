/** Shared receive queues: one pool of receives for many endpoints. */
import assert from 'node:assert/strict';
import { AsyncErrorReason, type DatEvent, type Ep, MemPrivileges, type Srq } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { join, meet, type Peers, refuses, settle, textOf, until, waiting } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

interface Scene extends Peers {
  readonly srq: Srq;
  /** Endpoints of the passive side on the SRQ, each connected to one of `senders`. */
  readonly receivers: readonly Ep[];
  readonly senders: readonly Ep[];
}

const SLOT_BYTES = 64;
/** 1.28 ms (IBTA table 45), to keep waits short. */
const PATIENT = { transport: { minRnrTimer: 14, rnrRetryCount: 7 } };

async function scene(pair: CompliancePair, endpoints: number, maxRecvDtos = 16): Promise<Scene> {
  const peers = meet(pair, { attributes: PATIENT });
  const { active, passive } = peers;
  const srq = passive.ia.createSrq({ pz: passive.pz, maxRecvDtos });
  const receivers: Ep[] = [];
  const senders: Ep[] = [];
  for (let i = 0; i < endpoints; i++) {
    receivers.push(passive.endpoint(passive.evd, { srq }));
    senders.push(active.endpoint());
    await join(peers, senders[i] as Ep, receivers[i] as Ep);
  }
  return { ...peers, srq, receivers, senders };
}

/** Posts receives with these cookies, each with memory of its own. */
function post({ srq, passive }: Scene, ...cookies: readonly number[]): void {
  for (const cookie of cookies) {
    srq.postRecv(passive.lmr.segment(cookie * SLOT_BYTES, SLOT_BYTES), cookie);
  }
}

/** Sends one byte. */
function send({ active, senders }: Scene, from: number, byte: number): void {
  active.lmr.bytes[byte] = byte;
  (senders[from] as Ep).postSend(active.lmr.segment(byte, 1), byte);
}

/** The byte that arrived in this receive. */
function arrived({ passive }: Scene, event: DatEvent | undefined): number | undefined {
  assert.ok(event?.type === 'dto');
  return passive.lmr.bytes[event.cookie * SLOT_BYTES];
}

const NEEDS = ['shared-receive-queue'] as const;

export const sharingReceives = group('Sharing receives', (claim) => {
  const shared: Claim = (name, run) => claim(name, run, NEEDS);
  delivering(shared);
  counting(shared);
  ending(shared);
  refusing(shared);
});

function delivering(claim: Claim): void {
  claim('an SRQ shared by two endpoints hands each message to one receive', async (pair) => {
    const here = await scene(pair, 2);
    post(here, 1, 2, 3, 4);
    for (const [from, byte] of [
      [0, 101],
      [1, 102],
      [0, 103],
      [1, 104],
    ] as const) {
      send(here, from, byte);
    }
    const seen = new Map<number, Ep>();
    for (let i = 0; i < 4; i++) {
      const event = await here.passive.next();
      assert.ok(event.type === 'dto' && event.status === 0, textOf(event));
      seen.set(arrived(here, event) ?? 0, event.ep);
    }
    assert.deepEqual([...seen.keys()].sort(), [101, 102, 103, 104]);
    for (const [byte, ep] of seen) assert.equal(ep, here.receivers[(byte + 1) % 2]);
    assert.equal(here.srq.query().outstandingDtos, 0);
  });

  claim('messages of one endpoint take the receives of an SRQ in their order', async (pair) => {
    const here = await scene(pair, 1);
    post(here, 3, 1, 2);
    for (const byte of [101, 102, 103]) send(here, 0, byte);
    const events = await here.passive.expect('dto 3 SUCCESS', 'dto 1 SUCCESS', 'dto 2 SUCCESS');
    assert.deepEqual(
      events.map((event) => arrived(here, event)),
      [101, 102, 103],
    );
  });

  claim('completions of an SRQ come on the EVD of the endpoint that took them', async (pair) => {
    const here = await scene(pair, 1);
    const { passive, srq, active } = here;
    const evd = passive.ia.createEvd({ qlen: 64 });
    const other = passive.endpoint(passive.evd, { srq, recvEvd: evd });
    const sender = active.endpoint();
    await join(here, sender, other);
    post(here, 1, 2);
    sender.postSend(active.lmr.segment(0, 1), 5);
    await active.expect('dto 5 SUCCESS');
    send(here, 0, 101);
    const event = (await evd.wait({ timeoutMs: PATIENCE_MS })).event;
    assert.ok(event.type === 'dto' && event.ep === other && event.cookie === 1);
    await passive.expect('dto 2 SUCCESS');
  });

  claim('an empty SRQ makes the sender wait until a receive is posted', async (pair) => {
    const here = await scene(pair, 2);
    send(here, 0, 101);
    send(here, 1, 102);
    await settle(pair);
    assert.deepEqual(here.passive.drain(), []);
    post(here, 1, 2);
    const events = [await here.passive.next(), await here.passive.next()];
    assert.deepEqual(events.map((event) => arrived(here, event)).sort(), [101, 102]);
  });

  claim('receives of an SRQ are posted again and again, in a burst too', async (pair) => {
    const here = await scene(pair, 2, 4);
    for (let round = 0; round < 20; round++) {
      here.srq.burst(() => post(here, 1, 2, 3, 4));
      for (const byte of [101, 102, 103, 104]) send(here, byte % 2, byte);
      const got: (number | undefined)[] = [];
      for (let i = 0; i < 4; i++) got.push(arrived(here, await here.passive.next()));
      assert.deepEqual(got.sort(), [101, 102, 103, 104]);
    }
  });

  claim('data on an SRQ establishes an endpoint before its receive shows', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const srq = passive.ia.createSrq({ pz: passive.pz, maxRecvDtos: 4 });
    srq.postRecv(passive.lmr.segment(0, 8), 9);
    const to = passive.endpoint(passive.evd, { srq });
    const psp = passive.ia.createPsp({ connQual: 7471, evd: passive.evd });
    active.ep.connect({ address: pair.passiveAddress, connQual: 7471 });
    (await passive.request()).accept(to);
    psp.free();
    await active.expect('ESTABLISHED');
    active.ep.postSend(active.lmr.segment(0, 8), 1);
    await passive.expect('ESTABLISHED', 'dto 9 SUCCESS');
  });
}

function counting(claim: Claim): void {
  claim('an SRQ reports its low watermark once for each arming', async (pair) => {
    const here = await scene(pair, 1);
    const { srq, passive } = here;
    const events: DatEvent[] = [];
    passive.ia.async$.subscribe((event) => events.push(event));
    post(here, 1, 2, 3, 4);
    srq.setLowWatermark(3);
    assert.equal(srq.query().lowWatermark, 3);
    for (const byte of [101, 102, 103]) send(here, 0, byte);
    for (let i = 0; i < 3; i++) await passive.next();
    await until(
      pair,
      () => events.length > 0,
      () => 'nothing tells of the watermark',
    );
    assert.equal(events.length, 1);
    const [event] = events;
    assert.ok(event?.type === 'async-error' && event.object === srq);
    assert.equal(event.reason, AsyncErrorReason.SRQ.LOW_WATERMARK);
    assert.equal(srq.query().lowWatermark, 0);
    srq.setLowWatermark(2);
    send(here, 0, 104);
    await passive.next();
    await until(
      pair,
      () => events.length > 1,
      () => 'fewer than that were left already: with the next at the latest',
    );
    assert.equal(events.length, 2);
    post(here, 5, 6);
    srq.setLowWatermark(1);
    srq.setLowWatermark(0);
    for (const byte of [105, 106]) send(here, 0, byte);
    for (let i = 0; i < 2; i++) await passive.next();
    await settle(pair);
    assert.equal(events.length, 2, 'it had been disarmed');
  });

  claim('an SRQ is resized under way without losing a receive', async (pair) => {
    const here = await scene(pair, 1, 3);
    const { srq } = here;
    post(here, 1, 2, 3);
    refuses(() => post(here, 4), 'DAT_RESOURCE_CREDITS');
    srq.resize(40);
    assert.equal(srq.maxRecvDtos, 40);
    const more = Array.from({ length: 37 }, (_, i) => i + 4);
    post(here, ...more);
    refuses(() => post(here, 41), 'DAT_RESOURCE_CREDITS');
    refuses(() => srq.resize(39), 'DAT_INVALID_STATE');
    for (let i = 1; i <= 40; i++) {
      send(here, 0, 100 + i);
      const [event] = await here.passive.expect(`dto ${i} SUCCESS`);
      assert.equal(arrived(here, event), 100 + i);
    }
    srq.resize(2);
    post(here, 1, 2);
    refuses(() => post(here, 3), 'DAT_RESOURCE_CREDITS');
    refuses(() => srq.resize(1), 'DAT_INVALID_STATE');
    send(here, 0, 101);
    send(here, 0, 102);
    await here.passive.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
  });

  claim('an SRQ is not resized below its low watermark', async (pair) => {
    const { srq } = await scene(pair, 0, 8);
    srq.setLowWatermark(0);
    refuses(() => srq.setLowWatermark(9), 'DAT_INVALID_PARAMETER');
    refuses(() => srq.setLowWatermark(-1), 'DAT_INVALID_PARAMETER');
    srq.resize(4);
    refuses(() => srq.resize(0), 'DAT_INVALID_PARAMETER');
  });

  claim('an SRQ tells what is posted and how many endpoints it has', async (pair) => {
    const here = await scene(pair, 2, 8);
    const { srq, passive } = here;
    post(here, 1, 2, 3);
    const query = srq.query();
    assert.equal(query.ia, passive.ia);
    assert.equal(query.pz, passive.pz);
    assert.equal(query.state, 'OPERATIONAL');
    assert.equal(query.maxRecvDtos, 8);
    assert.equal(query.outstandingDtos, 3);
    assert.ok(query.availableDtos === undefined || query.availableDtos === 3);
    assert.equal(query.endpoints, 2);
    assert.equal(here.receivers[0]?.query().srq, srq);
  });
}

function ending(claim: Claim): void {
  claim('when an endpoint breaks, the receives of its SRQ stay for the others', async (pair) => {
    const here = await scene(pair, 2);
    const { active, passive, srq } = here;
    post(here, 1, 2, 3);
    send(here, 0, 101);
    await passive.expect('dto 1 SUCCESS');
    await active.expect('dto 101 SUCCESS');
    const wrong = { address: 0n, rmrContext: 1 };
    here.senders[0]?.postRdmaWrite(active.lmr.segment(0, 8), 7, wrong);
    await active.expect('dto 7 REMOTE_ACCESS', 'BROKEN');
    await passive.expect('BROKEN');
    await settle(pair);
    assert.deepEqual(passive.drain(), [], 'nothing is flushed');
    assert.equal(srq.query().outstandingDtos, 2);
    send(here, 1, 102);
    send(here, 1, 103);
    const events = await passive.expect('dto 2 SUCCESS', 'dto 3 SUCCESS');
    assert.deepEqual(
      events.map((event) => arrived(here, event)),
      [102, 103],
    );
  });

  claim('DISCONNECTED comes behind the receives that an endpoint took of its SRQ', async (pair) => {
    const here = await scene(pair, 1);
    post(here, 1, 2, 3, 4);
    for (const byte of [101, 102, 103]) send(here, 0, byte);
    here.senders[0]?.disconnect('graceful');
    const seen = await here.passive.until('DISCONNECTED');
    const receives = ['dto 1 SUCCESS', 'dto 2 SUCCESS', 'dto 3 SUCCESS'];
    assert.deepEqual(seen, [...receives, 'DISCONNECTED']);
    assert.equal(here.srq.query().outstandingDtos, 1);
  });

  claim('an endpoint on an SRQ resets, connects again and receives', async (pair) => {
    const here = await scene(pair, 1);
    post(here, 1, 2);
    here.senders[0]?.disconnect();
    await here.active.until('DISCONNECTED');
    await here.passive.until('DISCONNECTED');
    here.senders[0]?.reset();
    here.receivers[0]?.reset();
    await join(here, here.senders[0] as Ep, here.receivers[0] as Ep);
    send(here, 0, 101);
    const [event] = await here.passive.expect('dto 1 SUCCESS');
    assert.equal(arrived(here, event), 101);
    assert.equal(here.srq.query().outstandingDtos, 1);
  });

  claim(
    'receives that nobody took of an endpoint that is freed leave the SRQ usable',
    async (p) => {
      const here = await scene(p, 1, 4);
      const { srq, passive, active } = here;
      post(here, 1, 2, 3, 4);
      for (const byte of [101, 102]) send(here, 0, byte);
      await active.expect('dto 101 SUCCESS', 'dto 102 SUCCESS');
      here.receivers[0]?.free();
      assert.equal(
        srq.query().outstandingDtos,
        2,
        'completions that nobody saw give their slots back',
      );
      post(here, 5, 6);
      srq.free();
      passive.lmr.free();
    },
  );

  claim('an SRQ is not freed while an endpoint receives from it: DAT_INVALID_STATE', async (p) => {
    const { srq, receivers, passive } = await scene(p, 1);
    refuses(() => srq.free(), 'DAT_INVALID_STATE_SRQ_IN_USE');
    refuses(() => passive.pz.free(), 'DAT_INVALID_STATE_PZ_IN_USE');
    receivers[0]?.free();
    srq.free();
    assert.equal(srq.isFreed, true);
    refuses(() => srq.free(), 'DAT_INVALID_HANDLE_SRQ');
    refuses(() => srq.query(), 'DAT_INVALID_HANDLE_SRQ');
    refuses(() => passive.endpoint(passive.evd, { srq }), 'DAT_INVALID_HANDLE_SRQ');
  });

  claim('an adapter closes with receives of an SRQ outstanding', async (pair) => {
    const here = await scene(pair, 2);
    post(here, 1, 2, 3);
    await here.passive.ia.close();
    assert.equal(here.srq.isFreed, true);
    await here.active.until('DISCONNECTED');
  });
}

function refusing(claim: Claim): void {
  claim('memory posted to an SRQ is not freed: DAT_INVALID_STATE_LMR_IN_USE', async (pair) => {
    const here = await scene(pair, 1);
    const { passive, srq } = here;
    post(here, 1);
    refuses(() => passive.lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
    send(here, 0, 101);
    await passive.expect('dto 1 SUCCESS');
    const lmr = passive.ia.allocate(8, { pz: passive.pz });
    srq.postRecv(lmr.segment(), 2);
    refuses(() => lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
    send(here, 0, 102);
    await here.active.expect('dto 101 SUCCESS', 'dto 102 SUCCESS');
    await waiting(pair, passive, 1);
    lmr.free();
  });

  claim('an SRQ takes memory of its own zone only, and writable', async (pair) => {
    const { srq, passive } = await scene(pair, 0);
    const { ia, pz } = passive;
    const foreign = ia.allocate(64, { pz: ia.createPz() });
    const readable = ia.allocate(64, { pz, privileges: MemPrivileges.LOCAL_READ });
    refuses(() => srq.postRecv(foreign.segment()), 'DAT_PROTECTION_VIOLATION');
    refuses(() => srq.postRecv(readable.segment()), 'DAT_PRIVILEGES_VIOLATION');
    const segments = Array.from({ length: srq.maxRecvIov + 1 }, () => passive.lmr.segment(0, 1));
    refuses(() => srq.postRecv(segments), 'DAT_INVALID_PARAMETER');
    refuses(() => srq.postRecv(passive.lmr.segment(), -1), 'DAT_INVALID_PARAMETER');
    assert.equal(srq.query().outstandingDtos, 0);
  });

  claim('an SRQ may be of another zone than its endpoints', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const pz = passive.ia.createPz();
    const srq = passive.ia.createSrq({ pz, maxRecvDtos: 4 });
    const lmr = passive.ia.allocate(8, { pz });
    srq.postRecv(lmr.segment(), 1);
    const ep = passive.endpoint(passive.evd, { srq });
    await join(peers, active.ep, ep);
    active.lmr.bytes[0] = 77;
    active.ep.postSend(active.lmr.segment(0, 1), 2);
    await passive.expect('dto 1 SUCCESS');
    assert.equal(lmr.bytes[0], 77);
  });

  claim('an endpoint with an SRQ takes no receives of its own', async (pair) => {
    const { receivers, passive } = await scene(pair, 1);
    const post = (): void => receivers[0]?.postRecv(passive.lmr.segment());
    refuses(post, 'DAT_INVALID_STATE_SRQ_IN_USE');
    assert.equal(receivers[0]?.receivesFree, 0);
  });

  claim('an SRQ starts without a low watermark: DAT_INVALID_PARAMETER', async (pair) => {
    const { ia, pz } = meet(pair).passive;
    const make = (lowWatermark: number): Srq => ia.createSrq({ pz, maxRecvDtos: 8, lowWatermark });
    refuses(() => make(1), 'DAT_INVALID_ARG3');
    assert.equal(make(0).query().lowWatermark, 0);
    refuses(() => ia.createSrq({ pz, maxRecvDtos: 0 }), 'DAT_INVALID_PARAMETER');
    const { maxRecvPerSrq } = ia.query().ia;
    refuses(() => ia.createSrq({ pz, maxRecvDtos: maxRecvPerSrq + 1 }), 'DAT_INVALID_PARAMETER');
    refuses(() => ia.createSrq({ pz, maxRecvDtos: 1, maxRecvIov: 0 }), 'DAT_INVALID_PARAMETER');
  });
}
