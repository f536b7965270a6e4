import assert from 'node:assert/strict';
import type { SdpOptions, TapEvent } from '../../../../../samples/ulp/sdp/index.js';
import type { Ia } from '../../../../../core/index.js';
import { emitHello, emitHelloAck, VERSION } from '../../../../../samples/ulp/sdp/wire/index.js';
import { StreamError } from '../../../../../samples/ulp/socket/index.js';
import { type End, NOTHING_LEFT, pattern, PORT, Scene, SERVER, timeOf } from './scene.js';

async function failureOf(promise: Promise<unknown>): Promise<StreamError> {
  const error = await promise.then(
    (value) => assert.fail(`resolved with ${String(value)}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StreamError, String(error));
  return error;
}

const MODES: readonly SdpOptions[] = [
  { zeroCopy: 'BUFFERED' },
  { zeroCopy: 'COMBINED', zeroCopyBytes: 1000, areaBytes: 4096 },
  { zeroCopy: 'PIPELINED', zeroCopyBytes: 1000, areaBytes: 4096, advertBytes: 4096 },
  {
    zeroCopy: 'PIPELINED',
    zeroCopyBytes: 1000,
    areaBytes: 4096,
    advertBytes: 4096,
    offersSink: true,
  },
];
const MEGABYTE = 2 ** 20;

async function exchange(near: End, far: End, bytes: number): Promise<void> {
  const sent = [pattern(bytes), pattern(bytes, 99)] as const;
  await Promise.all([near.write(sent[0]), far.write(sent[1])]);
  await Promise.all([near.shutdown(), far.shutdown(), near.ended(), far.ended()]);
  assert.deepEqual(Buffer.from(far.received), Buffer.from(sent[0]));
  assert.deepEqual(Buffer.from(near.received), Buffer.from(sent[1]));
}

describe('sdp: a connection', () => {
  let scene: Scene;

  afterEach(() => scene.close());

  for (const options of MODES) {
    const { zeroCopy, offersSink = false } = options;
    it(`carries bytes both ways: ${zeroCopy}${offersSink ? ', SinkAvail' : ''}`, async () => {
      scene = await Scene.make(options);
      const [near, far] = await scene.pair();
      await exchange(near, far, MEGABYTE / 4);
      near.stream.close();
      far.stream.close();
      assert.deepEqual(await Promise.all([near.closed, far.closed]), [undefined, undefined]);
      await scene.listener.close();
      await scene.pass(1);
      assert.equal(scene.left, NOTHING_LEFT);
    });
  }

  it('its adapters may be closed right after its end, whatever is left to do then', async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown): void => void unhandled.push(error);
    const listeners = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', onUnhandled);
    try {
      for (let turns = 0; turns < 8; turns++) {
        scene = await Scene.make();
        const [near, far] = await scene.pair();
        await exchange(near, far, 100);
        for (let i = 0; i < turns; i++) await Promise.resolve();
        if (turns % 2 === 1) near.stream.close();
        await Promise.all([scene.here.close('abrupt'), scene.there.close('abrupt')]);
        await new Promise(setImmediate);
      }
    } finally {
      process.off('unhandledRejection', onUnhandled);
      for (const listener of listeners) process.on('unhandledRejection', listener);
    }
    assert.deepEqual(unhandled, []);
  });

  it('knows its addresses, and ports of their own are told by the Hello', async () => {
    scene = await Scene.make();
    await scene.listen();
    const { stream } = await scene.connect();
    const { stream: other } = await scene.accept();
    assert.deepEqual(other.remote, stream.local);
    assert.deepEqual(other.local, { address: SERVER, port: PORT });
    const where = { address: SERVER, port: PORT };
    const taken = scene.client.connect({ ...where, localPort: stream.local.port });
    assert.equal((await failureOf(taken)).code, 'EADDRINUSE');
    const abroad = scene.client.connect({ ...where, localAddress: '192.0.2.77' });
    assert.equal((await failureOf(abroad)).code, 'EADDRNOTAVAIL');
  });

  it('half closed: the other half goes on', async () => {
    scene = await Scene.make();
    const [near, far] = await scene.pair();
    await near.write(pattern(10));
    await near.shutdown();
    await far.ended();
    await far.write(pattern(100_000));
    await near.got(100_000);
    assert.equal((await failureOf(near.write(pattern(1)))).code, 'EPIPE');
    await far.shutdown();
    await near.ended();
    near.stream.close();
    assert.equal(await near.closed, undefined);
  });

  it('aborted: the peer reads ECONNRESET, behind what had come', async () => {
    scene = await Scene.make();
    const [near, far] = await scene.pair();
    far.isReading = false;
    await near.write(pattern(10));
    near.stream.abort();
    assert.equal(await near.closed, undefined);
    assert.equal((await far.closed)?.code, 'ECONNRESET');
    far.isReading = true;
    far.read();
    assert.equal(far.received.length, 10);
    assert.equal(far.hasEnded, false);
    assert.equal((await failureOf(far.write(pattern(1)))).code, 'ECONNRESET');
  });

  it('closed by one side: what it took is sent; what the other writes then resets it', async () => {
    scene = await Scene.make({ zeroCopy: 'BUFFERED' });
    const [near, far] = await scene.pair();
    await near.write(pattern(50_000));
    near.stream.close();
    await far.ended();
    assert.equal(far.received.length, 50_000);
    far.stream.write([pattern(10)], () => undefined);
    assert.equal((await far.closed)?.code, 'ECONNRESET');
    assert.equal(await near.closed, undefined);
  });

  it('closed, and the peer says nothing: over after closeTimeoutMs', async () => {
    scene = await Scene.make({ closeTimeoutMs: 700 });
    const [near] = await scene.pair();
    const before = scene.fabric.clock.now();
    near.stream.close();
    assert.equal(await near.closed, undefined);
    const ms = (scene.fabric.clock.now() - before) / 1000;
    assert.ok(ms >= 700 && ms < 1500, `${ms} ms`);
  });

  it('urgent bytes come out of band, in the order of the stream', async () => {
    scene = await Scene.make({ zeroCopyBytes: 1000 });
    const [near, far] = await scene.pair();
    await near.write(pattern(5000));
    near.stream.sendUrgent(0x21);
    await near.write(pattern(5000));
    await near.shutdown();
    await far.ended();
    assert.deepEqual(far.urgent, [0x21]);
    assert.equal(far.received.length, 10_000);
    assert.throws(() => near.stream.sendUrgent(256), /byte is 256, must be an integer 0 to 255/);
    assert.throws(() => near.stream.sendUrgent(1), { code: 'EPIPE' });
  });

  it('a reader that does not read holds the writer back, and its memory is bounded', async () => {
    const bytes = { receiveBytes: 4096, desiredPeerBytes: 4096 };
    scene = await Scene.make({ ...bytes, receives: 8, zeroCopy: 'BUFFERED' });
    const [near, far] = await scene.pair(false);
    let isTaken = false;
    const written = near.write(pattern(MEGABYTE)).then(() => (isTaken = true));
    await scene.pass(10_000);
    assert.equal(isTaken, false);
    // Two credits are kept back.
    assert.equal(near.stream.takenBytes, 6 * (4096 - 16));
    far.isReading = true;
    far.read();
    await written;
    await far.got(MEGABYTE);
  });

  it('a SrcAvail that nothing reads is cancelled, and goes on as copies', async () => {
    const mids = new Set<number>();
    const tap = (phase: string, event: TapEvent): void => {
      if (event.kind === 'message') mids.add(event.bytes[0] as number);
    };
    const options = { tap, zeroCopyBytes: 1000, areas: 1, areaBytes: 4096, advertMs: 500 };
    scene = await Scene.make(options);
    const [near, far] = await scene.pair(false);
    const written = near.write(pattern(MEGABYTE));
    await scene.pass(5000);
    assert.ok(mids.has(0x08), 'SrcAvailCancel');
    assert.ok(mids.has(0x06), 'RdmaRdCompl of what was read');
    far.isReading = true;
    far.read();
    await written;
    await far.got(MEGABYTE);
    assert.deepEqual(Buffer.from(far.received), Buffer.from(pattern(MEGABYTE)));
  });

  it('receives are enlarged for a writer that copies much', async () => {
    const lengths: number[] = [];
    const asked: string[] = [];
    const tap = (phase: string, event: TapEvent, local: string): void => {
      if (phase !== 'sent' || event.kind !== 'message' || !local.startsWith(SERVER)) return;
      if (event.bytes[0] === 0xff) lengths.push(event.bytes.length);
      if (event.bytes[0] === 0x0b) asked.push(local);
    };
    // What the side that connects wants is in its Hello; the other asks when it has much to say.
    const bytes = { receiveBytes: 2048, desiredPeerBytes: 8192, maxReceiveBytes: 8192 };
    scene = await Scene.make({ ...bytes, tap, zeroCopy: 'BUFFERED', receives: 8 });
    const [near, far] = await scene.pair();
    await exchange(near, far, MEGABYTE / 4);
    assert.equal(lengths[0], 2048);
    assert.equal(Math.max(...lengths), 8192);
    assert.equal(asked.length, 1);
  });

  it('cut off: ECONNRESET, and others connect when the way is open again', async () => {
    scene = await Scene.make();
    const [near, far] = await scene.pair();
    near.stream.setKeepAlive(1000);
    scene.fabric.partition([SERVER], ['192.0.2.2']);
    assert.equal((await near.closed)?.code, 'ECONNRESET');
    scene.fabric.heal();
    far.stream.abort();
    await far.closed;
    const [again, other] = await Promise.all([scene.connect(), scene.accept()]);
    await exchange(again, other, 1000);
  });

  it('its adapter is closed: ECONNABORTED, and memory goes', async () => {
    scene = await Scene.make();
    const [near, far] = await scene.pair();
    await scene.here.close();
    assert.equal((await near.closed)?.code, 'ECONNABORTED');
    assert.equal((await far.closed)?.code, 'ECONNRESET');
  });

  it('the passive side receives and answers in RTR: the RTU never comes', async () => {
    // The case of June 2006: the RTU is lost, so nothing but the first message says that there is a
    // connection.
    const sent: string[] = [];
    const tap = (phase: string, event: TapEvent, local: string): void => {
      if (phase !== 'sent' || event.kind !== 'message') return;
      sent.push(`${local.startsWith(SERVER) ? 'server' : 'client'} ${event.bytes[0]}`);
    };
    scene = await Scene.make({ tap });
    await scene.listen();
    const rtu = scene.fabric.faults.add({
      match: { mad: { attributeId: 0x0014 }, count: Infinity },
      action: { type: 'drop' },
    });
    const near = await scene.connect();
    // Established here, not there: nothing has come from this side but the RTU that is lost.
    await scene.pass(20);
    assert.equal(scene.accepted.length, 0);
    assert.ok(rtu.hits > 0);
    await near.write(pattern(100));
    const far = await scene.accept();
    await far.got(100);
    await far.write(pattern(200));
    await near.got(200);
    assert.deepEqual(sent.slice(0, 4), ['client 0', 'server 1', 'client 255', 'server 255']);
  });

  it('a stranger that is no SDP is refused; the listener goes on', async () => {
    scene = await Scene.make();
    await scene.listen();
    const refusals: (number | undefined)[] = [];
    for (const privateData of strangers()) {
      refusals.push(await knock(scene.here, privateData));
    }
    assert.deepEqual(new Set(refusals), new Set([28]));
    await exchange(await scene.connect(), await scene.accept(), 10);
  });

  it('of another version: EPROTONOSUPPORT, whichever side is asked', async () => {
    scene = await Scene.make();
    const psp = scene.there.createPsp({ serviceId: 0x1_0000n + BigInt(PORT) });
    const pz = scene.there.createPz();
    let answer = 0;
    psp.requests$.subscribe(({ cr }) => {
      const ack = emitHelloAck({ ...PEER, version: 0x33, actualBytes: 4096 });
      if (answer++ === 0) cr.reject({ privateData: ack.subarray(0, 148) });
      else cr.accept(scene.there.createEndpoint({ pz }), { privateData: ack });
    });
    for (let i = 0; i < 2; i++) {
      const error = await failureOf(scene.connect());
      assert.equal(error.code, 'EPROTONOSUPPORT');
      assert.match(error.message, /the peer speaks version 3.3: it is 2.2 here/);
    }
  });

  it('refused: nothing listens, not admitted, no room; given up by its signal', async () => {
    scene = await Scene.make();
    assert.equal((await failureOf(scene.connect())).code, 'ECONNREFUSED');
    await scene.listen({ admit: () => false });
    assert.equal((await failureOf(scene.connect())).code, 'ECONNREFUSED');
    const more = scene.server.listen({ ...LISTEN, port: PORT });
    assert.equal((await failureOf(more)).code, 'EADDRINUSE');
    const any = await scene.server.listen({ ...LISTEN, port: 0 });
    assert.ok(any.local.port >= 49_152);
    await any.close();
    scene.fabric.partition([SERVER], ['192.0.2.2']);
    const controller = new AbortController();
    const dialling = scene.connect(true, controller.signal);
    controller.abort(new Error('enough'));
    await assert.rejects(dialling, /enough/);
    assert.match(scene.left, /^eps 0 /);
  });

  it('options that cannot be are refused with value and limits', async () => {
    scene = await Scene.make();
    await assert.rejects(
      Scene.make({ receives: 3 }),
      /receives is 3, must be an integer 4 to 1024/,
    );
    await assert.rejects(Scene.make({ zeroCopy: 'NONE' as never }), /zeroCopy is NONE, must be/);
    assert.ok(timeOf(scene.fabric).now() >= 0);
  });
});

const LISTEN = {
  backlog: 1,
  admit: (): boolean => true,
  onStream: (): void => undefined,
  onError: (): void => undefined,
};
const PEER = { bufs: 8, isIpv6: false, maxAdverts: 1 };
const ZEROS = new Uint8Array(16);
const HELLO = {
  ...PEER,
  version: VERSION,
  desiredRemoteBytes: 4096,
  localBytes: 4096,
  localPort: 9,
  source: ZEROS,
  destination: ZEROS,
};

/** Private data that is no Hello to be answered. */
function strangers(): Uint8Array[] {
  const good = emitHello(HELLO);
  const other = (at: number, value: number): Uint8Array => {
    const bytes = good.slice();
    bytes[at] = value;
    return bytes;
  };
  return [
    new Uint8Array(0),
    other(0, 1),
    other(7, 75),
    other(8, 1),
    other(16, 0x12),
    other(17, 0x50),
    other(19, 0),
    emitHello({ ...HELLO, bufs: 2 }),
    emitHello({ ...HELLO, localBytes: 36 }),
  ];
}

/** @returns the reason of the rejection */
async function knock(ia: Ia, privateData: Uint8Array): Promise<number | undefined> {
  const pz = ia.createPz();
  const ep = ia.createEndpoint({ pz });
  const outcome = new Promise<number | undefined>((resolve) => {
    ep.connection$.subscribe(({ rejectReason }) => resolve(rejectReason));
  });
  ep.connect({ address: SERVER, serviceId: 0x1_0000n + BigInt(PORT), privateData });
  const reason = await outcome;
  ep.free();
  pz.free();
  return reason;
}
