/** Queries of an endpoint: status, receives, watermarks, counters, streams. */
import assert from 'node:assert/strict';
import { AsyncErrorReason, CompletionFlags, type DatEvent, DatEventNumber } from 'dapl';
import { group } from '../behaviour.js';
import {
  CONN_QUAL,
  connect,
  connected,
  expectQuiet,
  meet,
  type Peer,
  refuses,
  settle,
  textOf,
  until,
  waiting,
} from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const SOFT = AsyncErrorReason.EP.SRQ_SOFT_HIGH_WATERMARK;

export const observing = group('Observing endpoints', (claim) => {
  claim(
    'getStatus: idle when nothing is outstanding, without anybody dequeuing',
    async (pair) => {
      const peers = await connected(pair);
      const { active, passive } = peers;
      const idle = { state: 'CONNECTED', recvIdle: true, requestIdle: true };
      assert.deepEqual(active.ep.getStatus(), idle);
      passive.ep.postRecv([], 1);
      assert.deepEqual(passive.ep.getStatus(), { ...idle, recvIdle: false });
      active.ep.postSend([], 2);
      assert.equal(active.ep.getStatus().requestIdle, false);
      while (!active.ep.getStatus().requestIdle) await settle(pair);
      while (!passive.ep.getStatus().recvIdle) await settle(pair);
      await active.expect('dto 2 SUCCESS');
      await passive.expect('dto 1 SUCCESS');
    },
    ['latency'],
  );

  claim('recvQuery counts the receives that are posted', async (pair) => {
    const { active, passive } = await connected(pair);
    assert.deepEqual(passive.ep.recvQuery(), { buffersAllocated: 0, bufferSpan: 0 });
    for (let i = 0; i < 5; i++) passive.ep.postRecv([], i);
    assert.deepEqual(passive.ep.recvQuery(), { buffersAllocated: 5, bufferSpan: 5 });
    active.ep.postSend([], 1);
    await active.expect('dto 1 SUCCESS');
    while (passive.ep.recvQuery().buffersAllocated === 5) await settle(pair);
    assert.equal(passive.ep.recvQuery().buffersAllocated, 4);
  });

  claim('soft high watermark: one asynchronous event per arming', async (pair) => {
    const { active } = await connected(pair);
    const { ep, ia } = active;
    ep.setWatermark(2);
    assert.equal(ep.query().softWatermark, 2);
    for (let i = 0; i < 2; i++) ep.postRecv([], i);
    assert.equal(ia.asyncEvd.dequeue(), undefined);
    for (let i = 0; i < 3; i++) ep.postRecv([], i);
    const told = ia.asyncEvd.dequeue();
    assert.ok(told?.type === 'async-error');
    assert.equal(told.object, ep);
    assert.equal(told.reason, SOFT);
    assert.match(told.message, /3 receives.*watermark is 2/);
    assert.equal(ia.asyncEvd.dequeue(), undefined);
    assert.equal(ep.query().softWatermark, Infinity);
    // The watermark is passed already, so the event comes at once.
    ep.setWatermark(4);
    const again = ia.asyncEvd.dequeue();
    assert.ok(again?.type === 'async-error' && again.reason === SOFT);
    ep.setWatermark(Infinity);
    ep.postRecv([], 9);
    assert.equal(ia.asyncEvd.dequeue(), undefined);
    assert.equal(ep.state, 'CONNECTED');
  });

  claim('soft high watermark as an attribute, and modified', async (pair) => {
    const { active } = meet(pair, { attributes: { srqSoftHighWatermark: 1 } });
    const { ep, ia } = active;
    ep.postRecv([], 1);
    assert.equal(ia.asyncEvd.dequeue(), undefined);
    ep.postRecv([], 2);
    assert.equal(ia.asyncEvd.dequeue()?.type, 'async-error');
    ep.modify({ attributes: { srqSoftHighWatermark: 2 } });
    ep.postRecv([], 3);
    assert.equal(ia.asyncEvd.dequeue()?.type, 'async-error');
    refuses(() => ep.modify({ attributes: { srqSoftHighWatermark: -1 } }), 'DAT_INVALID_ARG6');
    await settle(pair);
  });

  claim('hard high watermark: the connection is broken, once', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    passive.ep.setWatermark(Infinity, 2);
    for (let i = 0; i < 3; i++) passive.ep.postRecv([], i);
    const events = await passive.expect(
      'dto 0 FLUSHED',
      'dto 1 FLUSHED',
      'dto 2 FLUSHED',
      'BROKEN',
    );
    const broken = events.at(-1);
    assert.ok(broken?.type === 'connection');
    assert.equal(broken.cause, 'WATERMARK');
    assert.match(broken.reason ?? '', /3 receives: the hard high watermark is 2/);
    await active.expect('DISCONNECTED');
    await expectQuiet(peers);
  });

  claim('a hard high watermark that is passed before connecting breaks at once', async (pair) => {
    const { active, passive } = meet(pair);
    passive.ep.setWatermark(Infinity, 0);
    passive.ep.postRecv([], 7);
    assert.equal(passive.ep.state, 'UNCONNECTED');
    passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    (await passive.request()).accept(passive.ep);
    await passive.expect('ESTABLISHED', 'dto 7 FLUSHED', 'BROKEN');
    await active.expect('ESTABLISHED', 'DISCONNECTED');
  });

  claim(
    'with a shared receive queue, a message that comes in holds a receive until it is complete',
    async (pair) => {
      const peers = meet(pair);
      const { active, passive } = peers;
      const { ia, pz, evd } = passive;
      const srq = ia.createSrq({ pz, maxRecvDtos: 20 });
      for (let i = 0; i < 20; i++) srq.postRecv([], i);
      const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
      const ep = ia.createEndpoint({ pz, srq, ...evds });
      const none = ep.recvQuery();
      assert.ok(none.buffersAllocated === 0 || none.buffersAllocated === undefined);
      assert.equal(none.bufferSpan, none.buffersAllocated);
      ep.setWatermark(1, 1);
      await connect({ ...peers, passive: Object.assign(Object.create(passive) as Peer, { ep }) });
      for (let i = 0; i < 3; i++) active.ep.postSend([], i);
      await active.expect('dto 0 SUCCESS', 'dto 1 SUCCESS', 'dto 2 SUCCESS');
      // Completed receives no longer belong to the endpoint, dequeued or not.
      await waiting(pair, passive, 3);
      assert.deepEqual(ep.recvQuery(), none);
      assert.equal(ia.asyncEvd.dequeue(), undefined);
      ep.setWatermark(0);
      active.ep.postSend([], 3);
      // Nobody dequeues from the event dispatcher.
      const { event: told } = await ia.asyncEvd.wait({ timeoutMs: PATIENCE_MS });
      assert.ok(told.type === 'async-error' && told.object === ep && told.reason === SOFT);
      ep.setWatermark(Infinity, 0);
      active.ep.postSend([], 4);
      await active.until('DISCONNECTED');
      assert.equal(ep.state, 'DISCONNECTED');
      const seen = await passive.until('BROKEN');
      assert.equal(seen.length, 6, seen.join());
    },
    ['shared-receive-queue'],
  );

  claim('watermarks that are no counts are refused', async (pair) => {
    const { ep } = meet(pair).active;
    for (const value of [-1, 0.5, NaN, '1', undefined]) {
      refuses(() => ep.setWatermark(value as number), 'DAT_INVALID_ARG2');
    }
    for (const value of [-1, 0.5, NaN, '1', -Infinity]) {
      refuses(() => ep.setWatermark(1, value as number), 'DAT_INVALID_ARG3');
    }
    assert.equal(ep.query().softWatermark, Infinity);
    await settle(pair);
  });

  claim('counters count what was posted and received, in bytes too, until reset', async (pair) => {
    const { active, passive } = await connected(pair);
    for (let i = 0; i < 3; i++) passive.ep.postRecv(passive.lmr.segment(0, 100), i);
    active.ep.postSend(active.lmr.segment(0, 10), 1);
    active.ep.postSendWithImmediate(active.lmr.segment(0, 20), 2, 7);
    active.ep.postRdmaWriteWithImmediate(active.lmr.segment(0, 30), 3, passive.remote(), 7);
    active.ep.postRdmaWrite(active.lmr.segment(0, 40), 4, passive.remote());
    for (let i = 1; i <= 4; i++) await active.expect(`dto ${i} SUCCESS`);
    await passive.expect('dto 0 SUCCESS', 'dto 1 SUCCESS', 'dto 2 SUCCESS');
    const sent = active.ep.counters();
    assert.equal(sent.connect, 1);
    assert.deepEqual([sent.postSend, sent.postSendImmediate, sent.postSendData], [1, 1, 30]);
    assert.deepEqual([sent.postWriteImmediate, sent.postWriteImmediateData], [1, 30]);
    assert.deepEqual([sent.postWrite, sent.postWriteData], [1, 40]);
    const received = passive.ep.counters({ reset: true });
    assert.deepEqual([received.accept, received.postRecv], [1, 3]);
    assert.deepEqual([received.recv, received.recvData], [1, 10]);
    assert.deepEqual([received.recvImmediate, received.recvImmediateData], [1, 20]);
    assert.deepEqual([received.recvRdmaImmediate, received.recvRdmaImmediateData], [1, 30]);
    assert.ok(Object.values(passive.ep.counters()).every((count) => count === 0));
  });

  claim(
    'counters count reads, in bytes too',
    async (pair) => {
      const { active, passive } = await connected(pair);
      active.ep.postRdmaRead(active.lmr.segment(0, 50), 5, passive.remote());
      await active.expect('dto 5 SUCCESS');
      const { postRead, postReadData } = active.ep.counters();
      assert.deepEqual([postRead, postReadData], [1, 50]);
    },
    ['rdma-read'],
  );

  claim('counters of event dispatcher and adapter', async (pair) => {
    const { active, passive } = await connected(pair);
    const { ia, evd, ep } = active;
    evd.counters({ reset: true });
    evd.dequeue();
    ep.postRdmaWrite([], 1, passive.remote());
    await active.expect('dto 1 SUCCESS');
    ep.disconnect();
    await active.expect('DISCONNECTED');
    const { wait, waitBlocked, connectionNotify, dequeue, dequeueNotFound } = evd.counters();
    assert.equal(wait, 2);
    assert.ok(waitBlocked <= 2);
    assert.deepEqual([connectionNotify, dequeue, dequeueNotFound], [1, 1, 1]);
    const { epCreate, epFree, pzCreate, memoryAllocateData } = ia.counters();
    assert.deepEqual([epCreate, epFree, pzCreate], [1, 0, 1]);
    assert.equal(memoryAllocateData, active.lmr.lengthBytes);
    ep.free();
    assert.equal(ia.counters({ reset: true }).epFree, 1);
    assert.ok(Object.values(ia.counters()).every((count) => count === 0));
    const { cr, crAccepted, crRejected } = passive.ia.counters();
    assert.deepEqual([cr, crAccepted, crRejected], [1, 1, 0]);
    for (const object of [ia, evd, passive.ep]) {
      refuses(() => object.counters({ reset: 1 as unknown as boolean }), 'DAT_INVALID_PARAMETER');
    }
  });

  claim('counters of the device, if it has any, go on with what it moves', async (pair) => {
    const { active, passive } = await connected(pair);
    const before = active.ia.deviceCounters();
    active.ep.postRdmaWrite(active.lmr.segment(0, 40), 1, passive.remote());
    await active.expect('dto 1 SUCCESS');
    const names = Object.keys(before);
    const grown = (): boolean => {
      const now = active.ia.deviceCounters();
      assert.deepEqual(Object.keys(now), names);
      assert.ok(names.every((name) => now[name]! >= before[name]!));
      return names.length === 0 || names.some((name) => now[name]! > before[name]!);
    };
    // A driver may return the same values for some milliseconds.
    await until(pair, grown, () => `nothing of ${names.join()} has grown`);
  });

  claim('connection$, completions$ and state$ tell the whole life of an endpoint', async (pair) => {
    const peers = meet(pair);
    const { active, passive } = peers;
    const ep = active.ia.createEndpoint({ pz: active.pz });
    const seen: string[] = [];
    const note = (what: string) => ({
      next: (value: DatEvent | string): void =>
        void seen.push(`${what} ${typeof value === 'string' ? value : textOf(value)}`),
      complete: (): void => void seen.push(`${what} complete`),
    });
    ep.connection$.subscribe(note('connection'));
    ep.completions$.subscribe(note('completions'));
    ep.state$.subscribe(note('state'));
    const comes = async (line: string): Promise<void> => {
      while (!seen.includes(line)) await settle(pair);
    };
    passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    (await passive.request()).accept(passive.ep);
    await comes('connection ESTABLISHED');
    ep.postRdmaWrite([], 1, passive.remote(), CompletionFlags.SUPPRESS);
    ep.postRdmaWrite([], 2, passive.remote());
    await comes('completions dto 2 SUCCESS');
    ep.disconnect();
    await comes('connection DISCONNECTED');
    ep.free();
    await comes('state complete');
    await comes('completions complete');
    const of = (what: string): string[] =>
      seen.filter((line) => line.startsWith(`${what} `)).map((line) => line.slice(what.length + 1));
    assert.deepEqual(of('connection'), ['ESTABLISHED', 'DISCONNECTED', 'complete']);
    assert.deepEqual(of('completions'), ['dto 2 SUCCESS', 'complete']);
    const states = of('state');
    assert.equal(states[0], 'UNCONNECTED');
    assert.deepEqual(states.slice(-2), ['DISCONNECTED', 'complete']);
    assert.ok(states.includes('ACTIVE_CONNECTION_PENDING') && states.includes('CONNECTED'));
  });

  claim('a stream has one subscriber, and what it leaves stays queued', async (pair) => {
    const { active } = meet(pair);
    const ep = active.ia.createEndpoint({ pz: active.pz });
    const first = ep.connection$.subscribe(() => undefined);
    const errors: unknown[] = [];
    ep.connection$.subscribe({ error: (error: unknown) => void errors.push(error) });
    assert.equal(errors.length, 1);
    assert.match(String(errors[0]), /DAT_INVALID_STATE/);
    first.unsubscribe();
    ep.connect({ address: pair.passiveAddress, connQual: 1 });
    const { connectEvd } = ep.query();
    while (connectEvd.query().pending === 0) await settle(pair);
    const seen: number[] = [];
    ep.connection$.subscribe(({ number }) => seen.push(number));
    while (seen.length === 0) await settle(pair);
    assert.deepEqual(seen, [DatEventNumber.NON_PEER_REJECTED]);
  });
});
