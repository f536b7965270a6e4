/** Rejections of either side, and what the module refuses its consumers. */
import assert from 'node:assert/strict';
import {
  type CmConnectOptions,
  type CmEvent,
  type CmRequest,
  gidFromIp,
  PortSpace,
  QpState,
  serviceIdOf,
  SpiError,
} from '../../../core/spi/index.js';
import { CmPair, messageName, text, textOf, typesOf } from '../../support/cm-pair.js';

const withCode = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);

describe('CM: refusals', () => {
  it('rejects a request for which nobody listens: reason 8', async () => {
    const pair = new CmPair();
    const { events, connection } = pair.connect();
    await pair.world.run();
    assert.equal(events.length, 1);
    const [event] = events;
    assert.ok(event?.type === 'rejected' && event.reason === 8 && !event.consumer);
    assert.equal(connection.state, 'IDLE');
    assert.deepEqual(pair.messages, ['REQ', 'REJ']);
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  });

  it('carries the consumer’s refusal with its private data: reason 28', async () => {
    const pair = new CmPair();
    pair.listen((request) => request.reject({ reason: 28, privateData: text('not today') }));
    const { events, qp } = pair.connect();
    await pair.world.run();
    const [event] = events;
    assert.ok(event?.type === 'rejected' && event.reason === 28 && event.consumer);
    assert.equal(textOf(event.privateData), 'not today');
    assert.equal(event.privateData.length, 148);
    assert.equal(qp.state, QpState.INIT);
    const [rej] = pair.bodies('REJ');
    const [req] = pair.bodies('REQ');
    assert.equal(rej?.messageRejected, 0);
    assert.equal(rej.localCommId, 0);
    assert.equal(rej.remoteCommId, req?.localCommId);
    assert.equal(pair.world.activeTimers, 0);
  });

  it('refuses after the listener has closed, but keeps what was handed out', async () => {
    const pair = new CmPair();
    let request: CmRequest | undefined;
    const listener = pair.listen((r) => (request = r));
    const first = pair.connect();
    await pair.world.runFor(1_000);
    listener.close();
    const second = pair.connect();
    assert.ok(request);
    pair.accept(request);
    await pair.world.runFor(1_000);
    assert.deepEqual(typesOf(first.events), ['established']);
    assert.deepEqual(typesOf(second.events), ['rejected']);
    pair.listen(() => undefined);
  });

  it('drops requests beyond the backlog; their peers retry and get in', async () => {
    const pair = new CmPair();
    const waiting: CmRequest[] = [];
    pair.listen((request) => void waiting.push(request), 2);
    const sides = [1, 2, 3, 4].map(() => pair.connect());
    await pair.world.runFor(100_000);
    assert.equal(waiting.length, 2);
    assert.equal(pair.b.cm.counters.requestsDropped, 2);
    for (const request of waiting.splice(0)) pair.accept(request);
    await pair.world.runFor(600_000);
    assert.equal(waiting.length, 2);
    for (const request of waiting) pair.accept(request);
    await pair.world.runFor(100_000);
    for (const { events } of sides) assert.deepEqual(typesOf(events), ['established']);
  });

  it('caps half-open connections over all listeners: one address has half of them', async () => {
    const pair = new CmPair({ b: { cm: { maxHalfOpen: 5 } } });
    pair.listen(() => undefined, 100);
    for (let i = 0; i < 5; i++) pair.connect();
    await pair.world.runFor(1_000);
    assert.equal(pair.requests.length, 3);
    assert.equal(pair.b.cm.counters.requestsDropped, 2);
  });

  it('bounds the rate of requests', async () => {
    const pair = new CmPair({ b: { cm: { requestsPerSecond: 10, requestBurst: 5 } } });
    for (let i = 0; i < 20; i++) pair.connect();
    await pair.world.runFor(1_000);
    assert.equal(pair.b.cm.counters.requestsRejected, 5);
    assert.equal(pair.b.cm.counters.overRate, 15);
    // They are repeated, and some get through in each round.
    await pair.world.runFor(2_000_000);
    assert.ok(pair.b.cm.counters.requestsRejected > 10);
  });

  it('asks the peer to wait when the consumer is slow: MRA', async () => {
    const pair = new CmPair();
    let request: CmRequest | undefined;
    pair.listen((r) => (request = r));
    const { events } = pair.connect();
    await pair.world.runFor(15_000_000);
    assert.deepEqual(pair.messages, ['REQ', 'REQ', 'MRA']);
    assert.ok(request);
    pair.accept(request);
    await pair.world.runFor(1_000);
    assert.deepEqual(typesOf(events), ['established']);
    assert.equal(pair.requests.length, 1);
  });

  it('rejects with its own id after MRA', async () => {
    const pair = new CmPair();
    let request: CmRequest | undefined;
    pair.listen((r) => (request = r));
    const { events } = pair.connect();
    await pair.world.runFor(600_000);
    request?.reject({ reason: 28, privateData: new Uint8Array(0) });
    await pair.world.run();
    assert.deepEqual(typesOf(events), ['rejected']);
    assert.equal(pair.bodies('REJ')[0]?.localCommId, pair.bodies('MRA')[0]?.localCommId);
    assert.notEqual(pair.bodies('REJ')[0]?.localCommId, 0);
  });

  it('has an answer for a request only once, and none when the peer has given up', async () => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    const { connection } = pair.connect();
    pair.connect();
    await pair.world.runFor(1_000);
    connection.abandon();
    await pair.world.runFor(1_000);
    const [gone, present] = pair.requests;
    assert.ok(gone && present);
    assert.throws(() => pair.accept(gone), withCode('ENOTCONN', /gone/));
    present.reject({ reason: 28, privateData: new Uint8Array(0) });
    assert.throws(() => pair.accept(present), withCode('ENOTCONN', /gone/));
    const again = { reason: 28, privateData: new Uint8Array(0) };
    assert.throws(() => present.reject(again), withCode('ENOTCONN', /gone/));
  });

  it('names what is wrong with a connect', () => {
    const pair = new CmPair();
    const wrong: [Partial<CmConnectOptions>, string, RegExp][] = [
      [{ privateData: new Uint8Array(57) }, 'EINVAL', /data of REQ is 57; it must be .* 0 to 56/],
      [{ retryCount: 8 }, 'EINVAL', /retryCount is 8; it must be an integer from 0 to 7/],
      [{ minRnrTimer: 32 }, 'EINVAL', /minRnrTimer is 32;/],
      [{ responderResources: 256 }, 'EINVAL', /responderResources is 256;/],
      [{ ackTimeout: 0 }, 'EINVAL', /ackTimeout is 0;/],
      [{ timeoutUs: 0 }, 'EINVAL', /timeoutUs is 0;/],
      [{ pathMtuBytes: 1500 }, 'EINVAL', /pathMtuBytes is 1500; it must be one of 256, 512/],
      [{ remoteGid: new Uint8Array(4) }, 'EINVAL', /length of remoteGid is 4; it must be 16/],
      [{ remoteGid: gidFromIp('fd00::9') }, 'ENETUNREACH', /IPv6/],
    ];
    for (const [override, code, message] of wrong) {
      assert.throws(() => pair.connect(override), withCode(code, message));
    }
    const qp = pair.a.device.connectableQp();
    qp.modify({ state: QpState.RTR });
    assert.throws(() => pair.connect({ qp }), withCode('EINVAL', /RTR: must be INIT/));
    assert.ok(pair.a.cm.isIdle);
    assert.deepEqual(pair.messages, []);
  });

  it('names what is wrong with a listen, an accept and a reject', async () => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    assert.throws(() => pair.listen(() => undefined), withCode('EADDRINUSE', /0x1061d2f/));
    const other = serviceIdOf(PortSpace.TCP, 1);
    const options = { serviceId: other, backlog: 0, onRequest: () => undefined };
    assert.throws(() => pair.b.cm.listen(options), withCode('EINVAL', /backlog is 0;/));
    pair.connect();
    await pair.world.runFor(1_000);
    const [request] = pair.requests;
    assert.ok(request);
    const long = (bytes: number): { privateData: Uint8Array } => ({
      privateData: new Uint8Array(bytes),
    });
    assert.throws(
      () => pair.accept(request, long(197)),
      withCode('EINVAL', /data of REP is 197; .* 0 to 196/),
    );
    const reject = { reason: 28, ...long(149) };
    assert.throws(
      () => request.reject(reject),
      withCode('EINVAL', /data of REJ is 149; .* 0 to 148/),
    );
    assert.throws(
      () => request.reject({ reason: 0, privateData: new Uint8Array(0) }),
      withCode('EINVAL', /reason is 0;/),
    );
    pair.accept(request);
  });

  it('lets the consumer think again when its queue pair does not become ready', async () => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    const { events } = pair.connect();
    await pair.world.runFor(1_000);
    const [request] = pair.requests;
    assert.ok(request);
    const qp = pair.b.device.connectableQp();
    qp.refuse = QpState.RTR;
    const before = qp.eventHandler;
    assert.throws(() => pair.accept(request, { qp }), withCode('EINVAL', /refuses RTR/));
    assert.equal(qp.eventHandler, before);
    request.reject({ reason: 28, privateData: new Uint8Array(0) });
    await pair.world.run();
    assert.deepEqual(typesOf(events), ['rejected']);
  });

  it('rejects REP when the active queue pair cannot follow it', async () => {
    for (const refuse of [QpState.RTR, QpState.RTS]) {
      const pair = new CmPair();
      let passive: { events: CmEvent[] } | undefined;
      pair.listen((request) => (passive = pair.accept(request)));
      const qp = pair.a.device.connectableQp();
      qp.refuse = refuse;
      const { events } = pair.connect({ qp });
      await pair.world.run();
      assert.deepEqual(typesOf(events), ['unreachable']);
      assert.equal(qp.state, QpState.ERR);
      assert.deepEqual(typesOf(passive?.events ?? []), ['accept-failed']);
      assert.deepEqual(pair.messages, ['REQ', 'REP', 'REJ']);
      assert.equal(pair.bodies('REJ')[0]?.messageRejected, 1);
      assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
    }
  });

  it('ends a connection whose passive queue pair cannot send', async () => {
    const pair = new CmPair();
    let passive: { events: CmEvent[] } | undefined;
    const qp = pair.b.device.connectableQp();
    qp.refuse = QpState.RTS;
    pair.listen((request) => (passive = pair.accept(request, { qp })));
    const { events } = pair.connect();
    await pair.world.run();
    assert.deepEqual(typesOf(passive?.events ?? []), ['accept-failed', 'timewait-exit']);
    assert.deepEqual(typesOf(events), ['established', 'disconnected', 'timewait-exit']);
    assert.ok(pair.b.cm.isIdle);
  });

  it('repeats its DREQ then, with the queue pair in ERR', async () => {
    const pair = new CmPair();
    const qp = pair.b.device.connectableQp();
    qp.refuse = QpState.RTS;
    const states: number[] = [];
    const usual = pair.network.fate;
    pair.network.fate = (parcel) => {
      if (messageName(parcel) !== 'DREQ') return usual(parcel);
      states.push(qp.state);
      return states.length < 3 ? [] : usual(parcel);
    };
    let state = (): string => '';
    pair.listen((request) => {
      const { connection } = pair.accept(request, { qp });
      state = () => connection.state;
    });
    pair.connect();
    await pair.world.runFor(1_000);
    assert.equal(state(), 'DREQ_SENT');
    assert.deepEqual(states, [QpState.ERR]);
    await pair.world.run();
    assert.equal(states.length, 3);
    assert.ok(pair.b.cm.isIdle);
  });
});
