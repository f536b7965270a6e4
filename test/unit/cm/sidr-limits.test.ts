/** Resolving datagram services: what is too much, too long or too wrong. */
import assert from 'node:assert/strict';
import { SpiError, gidFromIp } from '../../../core/spi/index.js';
import { emitCmMad } from '../../../plugins/cm/wire/message.js';
import { messageName } from '../../support/cm-pair.js';
import { SidrPair, withQpn } from '../../support/sidr-pair.js';

const NONE = new Uint8Array(0);
const withCode = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);

async function assertNothingHeld(pair: SidrPair): Promise<void> {
  await pair.world.run();
  assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  assert.equal(pair.world.activeTimers, 0);
}

describe('CM: limits of resolving', () => {
  it('drops questions beyond the backlog; they are repeated and get in', async () => {
    const pair = new SidrPair();
    pair.serve(undefined, { backlog: 2 });
    const asking = [1, 2, 3].map(() => pair.ask());
    await pair.world.runFor(1_000);
    assert.equal(pair.inquiries.length, 2);
    assert.equal(pair.b.cm.counters.requestsDropped, 1);
    pair.inquiries.forEach(withQpn(5));
    await pair.world.runFor(600_000);
    assert.equal(pair.inquiries.length, 3);
    pair.inquiries.slice(2).forEach(withQpn(5));
    await pair.world.runFor(1_000);
    for (const { results } of asking) assert.equal(results[0]?.qpn, 5);
  });

  it('caps what waits over all listeners, and the rate', async () => {
    const cm = { maxHalfOpen: 5, requestsPerSecond: 10, requestBurst: 5 };
    const pair = new SidrPair({ b: { cm } });
    pair.serve(undefined, { backlog: 100 });
    for (let i = 0; i < 10; i++) pair.ask();
    await pair.world.runFor(1_000);
    assert.equal(pair.inquiries.length, 3);
    const { requestsDropped, overShare, overRate } = pair.b.cm.counters;
    assert.deepEqual(
      { requestsDropped, overShare, overRate },
      {
        requestsDropped: 2,
        overShare: 2,
        overRate: 5,
      },
    );
  });

  it('keeps no more answers than that, the newest', async () => {
    const pair = new SidrPair({ b: { cm: { maxHalfOpen: 3 } } });
    pair.serve(withQpn(9));
    for (let i = 0; i < 6; i++) {
      pair.ask();
      await pair.world.runFor(1_000);
    }
    const reqs = pair.bodies('SIDR_REQ');
    for (const body of reqs.slice(3)) pair.inject(pair.b, { name: 'SIDR_REQ', body });
    await pair.world.runFor(1_000);
    assert.equal(pair.inquiries.length, 6);
    const [first] = reqs;
    if (first) pair.inject(pair.b, { name: 'SIDR_REQ', body: first });
    await pair.world.runFor(1_000);
    assert.equal(pair.inquiries.length, 7);
    await assertNothingHeld(pair);
  });

  it('forgets a question that nobody answers, and gives its place back', async () => {
    const pair = new SidrPair();
    pair.serve(undefined, { backlog: 1 });
    const { resolution } = pair.ask();
    await pair.world.runFor(1_000);
    resolution.cancel();
    await pair.world.run();
    assert.ok(pair.b.cm.isIdle);
    const [inquiry] = pair.inquiries;
    assert.ok(inquiry);
    assert.throws(() => withQpn(5)(inquiry), withCode('ENOTCONN', /gone/));
    pair.ask();
    await pair.world.runFor(1_000);
    assert.equal(pair.inquiries.length, 2);
  });

  it('has one answer to a question', async () => {
    const pair = new SidrPair();
    pair.serve();
    pair.ask();
    await pair.world.runFor(1_000);
    const [inquiry] = pair.inquiries;
    assert.ok(inquiry);
    withQpn(5)(inquiry);
    assert.throws(() => withQpn(5)(inquiry), withCode('ENOTCONN', /gone/));
    const reject = { status: 2, privateData: NONE };
    assert.throws(() => inquiry.reject(reject), withCode('ENOTCONN', /gone/));
  });

  it('names what is wrong with a question or an answer', async () => {
    const pair = new SidrPair();
    const ask = (overrides: Parameters<SidrPair['ask']>[0]) => () => pair.ask(overrides);
    const long = new Uint8Array(181);
    assert.throws(
      ask({ privateData: long }),
      withCode('EINVAL', /data of SIDR_REQ is 181; .* 0 to 180/),
    );
    assert.throws(ask({ timeoutUs: 0 }), withCode('EINVAL', /timeoutUs is 0;/));
    assert.throws(
      ask({ remoteGid: new Uint8Array(4) }),
      withCode('EINVAL', /length of remoteGid is 4;/),
    );
    assert.throws(ask({ remoteGid: gidFromIp('fd00::9') }), withCode('ENETUNREACH', /IPv6/));
    assert.deepEqual(pair.messages, []);
    assert.ok(pair.a.cm.isIdle);
    pair.serve();
    pair.ask();
    await pair.world.runFor(1_000);
    const [inquiry] = pair.inquiries;
    assert.ok(inquiry);
    const good = { qpn: 5, qkey: 1, privateData: NONE };
    const big = new Uint8Array(137);
    const wrong = [
      [{ ...good, privateData: big }, /data of SIDR_REP is 137; .* 0 to 136/],
      [{ ...good, qpn: 1 }, /qpn is 1; it must be an integer from 2 to/],
      [{ ...good, qpn: 2 ** 24 }, /qpn is 16777216;/],
      [{ ...good, qkey: 2 ** 32 }, /qkey is 4294967296;/],
    ] as const;
    for (const [options, message] of wrong) {
      assert.throws(() => inquiry.accept(options), withCode('EINVAL', message));
    }
    const ok = { status: 0, privateData: NONE };
    assert.throws(
      () => inquiry.reject(ok),
      withCode('EINVAL', /status is 0; it must be an integer from 1 to 255/),
    );
    inquiry.accept(good);
  });

  it('ends with the module: what waits is refused, what is asked has no result', async () => {
    const pair = new SidrPair();
    pair.serve();
    const { results } = pair.ask();
    await pair.world.runFor(1_000);
    void pair.b.close();
    await pair.world.runFor(10_000);
    assert.equal(results[0]?.status, 2);
    const late = pair.ask();
    void pair.a.close();
    await pair.world.run();
    assert.deepEqual(late.results, []);
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
    assert.equal(pair.world.activeTimers, 0);
    assert.throws(() => pair.ask(), /closed/);
  });

  it('takes no harm from random questions and answers', async () => {
    const pair = new SidrPair({ b: { cm: { maxHalfOpen: 50 } } });
    pair.serve();
    pair.ask();
    const [req] = pair.bodies('SIDR_REQ');
    assert.ok(req);
    const ids = { transactionIdHi: 1, transactionIdLo: 2, attributeModifier: 0 };
    const sample = emitCmMad({ ...ids, message: { name: 'SIDR_REQ', body: req } });
    let state = 1;
    const random = (): number => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 8;
    for (let i = 0; i < 5_000; i++) {
      const mad = sample.slice();
      mad[17] = 0x17 + (random() & 1);
      for (let c = 0; c < 4; c++) mad[24 + (random() % 232)] = random();
      pair.b.device.receive(mad, gidFromIp('10.0.0.1'), gidFromIp('10.0.0.2'));
      if (i % 128 === 0) await pair.world.runFor(1);
    }
    await assertNothingHeld(pair);
    assert.ok(pair.network.carried.every((parcel) => messageName(parcel).startsWith('SIDR')));
  });
});
