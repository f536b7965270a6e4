/** `ia.mad`: agents of an application over the mock provider. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  DatError,
  type Ia,
  MadMethod,
  MadStatus,
  type ManagementAgent,
  type ManagementAgentOptions,
  type ManagementRequest,
  openIa,
} from '../../../core/index.js';
import { Fabric, type LinkOptions, mock } from '../../../providers/mock/index.js';

const SERVER = '192.0.2.1';
const CLIENT = '192.0.2.2';
const VENDOR = { managementClass: 0x30, oui: 0x0d0a0b } as const;
const ATTRIBUTE = 0x20;

interface Pair {
  readonly fabric: Fabric;
  readonly server: Ia;
  readonly client: Ia;
  close(): Promise<void>;
}

async function open(link: Partial<LinkOptions> = {}): Promise<Pair> {
  const fabric = new Fabric({ seed: 7, autoRun: true, link });
  const server = await openIa(mock({ fabric, address: SERVER }));
  const client = await openIa(mock({ fabric, address: CLIENT }));
  const close = async (): Promise<void> => {
    await Promise.all([server.close(), client.close()]);
  };
  return { fabric, server, client, close };
}

/** Answers Get with the data backwards. */
function serve(ia: Ia, options: Partial<ManagementAgentOptions> = {}): ManagementAgent {
  return ia.mad.registerAgent({
    ...VENDOR,
    methods: [MadMethod.GET],
    onRequest: (request) => request.respond({ data: request.data.slice().reverse() }),
    ...options,
  });
}

const rejects = (promise: Promise<unknown>, code: string, text: RegExp): Promise<void> =>
  assert.rejects(promise, (error) => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.ok([error.code, error.subtype as string].includes(code), error.message);
    assert.match(error.message, text);
    return true;
  });

const NO_RESPONSE = new RegExp(
  'GET of attribute 0x0020 \\(class 0x30\\) to 192\\.0\\.2\\.9: ' +
    'no response within 10 ms, sent 2 times',
);

describe('ia.mad', () => {
  it('asks and answers; without RMPP data are padded', async () => {
    const pair = await open();
    serve(pair.server);
    const agent = pair.client.mad.registerAgent(VENDOR);
    const data = Uint8Array.of(1, 2, 3);
    const response = await agent.request({
      address: SERVER,
      attributeId: ATTRIBUTE,
      attributeModifier: 5,
      data,
    });
    const { address, method, status, attributeId, attributeModifier } = response;
    assert.deepEqual(
      { address, method, status, attributeId, attributeModifier },
      { address: SERVER, method: 0x81, status: 0, attributeId: ATTRIBUTE, attributeModifier: 5 },
    );
    assert.equal(response.data.length, 216);
    assert.deepEqual([...response.data.subarray(213)], [3, 2, 1]);
    await pair.close();
  });

  for (const lossPercent of [0, 5, 10]) {
    it(`carries 300 KB both ways by RMPP, ${lossPercent} % lost`, async () => {
      const pair = await open({ lossPercent, reorderPercent: 2, duplicatePercent: 2 });
      serve(pair.server, { rmpp: true });
      const agent = pair.client.mad.registerAgent({ ...VENDOR, rmpp: true });
      const data = Uint8Array.from({ length: 300_001 }, (_, i) => (i * 7) ^ (i >> 8));
      const options = { address: SERVER, attributeId: ATTRIBUTE, data, timeoutMs: 4000 };
      const response = await agent.request({ ...options, retries: 20 });
      assert.equal(Buffer.compare(response.data, data.slice().reverse()), 0);
      await pair.close();
    });
  }

  it('offers requests as a stream, those that came before as well', async () => {
    const pair = await open();
    const service = pair.server.mad.registerAgent({ ...VENDOR, methods: [MadMethod.SEND] });
    const agent = pair.client.mad.registerAgent(VENDOR);
    const send = (byte: number): Promise<void> =>
      agent.send({ address: SERVER, attributeId: ATTRIBUTE, data: Uint8Array.of(byte) });
    await send(1);
    await pair.fabric.run({ forUs: 1000 });
    const got: number[] = [];
    let completed = false;
    service.requests$.subscribe({
      next: ({ data }) => got.push(data[0] ?? 0),
      complete: () => (completed = true),
    });
    assert.deepEqual(got, []);
    await send(2);
    await pair.fabric.run({ forUs: 1000 });
    assert.deepEqual(got, [1, 2]);
    service.requests$.subscribe({
      error: (error) => assert.equal((error as DatError).code, 'DAT_INVALID_STATE'),
    });
    await pair.close();
    assert.ok(completed);
  });

  it('drops requests beyond its queue, and counts them', async () => {
    const pair = await open();
    const methods = [MadMethod.SEND];
    const service = pair.server.mad.registerAgent({ ...VENDOR, methods, queueLength: 3 });
    const agent = pair.client.mad.registerAgent(VENDOR);
    for (let i = 0; i < 10; i++) await agent.send({ address: SERVER, attributeId: i });
    await pair.fabric.run({ forUs: 1000 });
    assert.equal(service.droppedRequests, 7);
    await pair.close();
  });

  it('says what became of a request', async () => {
    const pair = await open();
    const rmpp = pair.client.mad.registerAgent({ ...VENDOR, rmpp: true });
    const plain = pair.client.mad.registerAgent(VENDOR);
    const ask = { address: SERVER, attributeId: ATTRIBUTE, timeoutMs: 10, retries: 1 };
    for (const agent of [rmpp, plain]) {
      // Nobody is registered there; the module says so.
      const { status } = await agent.request(ask);
      assert.equal(status, MadStatus.METHOD_ATTRIBUTE_UNSUPPORTED);
      const silent = agent.request({ ...ask, address: '192.0.2.9' });
      await rejects(silent, 'DAT_TIMEOUT_EXPIRED', NO_RESPONSE);
      if (agent === rmpp) {
        const data = new Uint8Array(500);
        const of = { address: '192.0.2.9', attributeId: ATTRIBUTE, retries: 0, data };
        const unheard = /SEND of .* 192\.0\.2\.9: not acknowledged, sent once/;
        await rejects(agent.send(of), 'DAT_TIMEOUT_EXPIRED', unheard);
      }
      const set = agent.send({ ...ask, timeoutMs: undefined } as never);
      await rejects(set, 'DAT_INVALID_PARAMETER', /timeoutMs/);
    }
    const abort = new AbortController();
    const waiting = plain.request({ ...ask, address: '192.0.2.9', signal: abort.signal });
    abort.abort(new Error('enough'));
    await rejects(waiting, 'DAT_INTERRUPTED_CALL', /agent.request/);
    const late = plain.request({ ...ask, signal: abort.signal });
    await rejects(late, 'DAT_INTERRUPTED_CALL', /agent.request/);
    await pair.close();
  });

  it('reports that the peer has no room for a transfer', async () => {
    const pair = await open();
    serve(pair.server, { rmpp: true });
    const agent = pair.client.mad.registerAgent({ ...VENDOR, rmpp: true });
    const data = new Uint8Array(5 << 20);
    const asked = agent.request({ address: SERVER, attributeId: ATTRIBUTE, data });
    await rejects(asked, 'DAT_INTERNAL_ERROR', /to 192\.0\.2\.1: .* RMPP status 1/);
    await pair.close();
  });

  it('returns what is outstanding when the agent, the adapter or the device ends', async () => {
    for (const way of ['agent', 'adapter', 'device'] as const) {
      const pair = await open();
      const requests: ManagementRequest[] = [];
      serve(pair.server, { onRequest: (request) => void requests.push(request) });
      const agent = pair.client.mad.registerAgent(VENDOR);
      const big = pair.client.mad.registerAgent({ ...VENDOR, rmpp: true });
      const ask = { address: SERVER, attributeId: ATTRIBUTE, timeoutMs: 100_000 };
      const asked = agent.request(ask);
      const transfer = big.request({ ...ask, data: new Uint8Array(100_000) });
      const ends = [
        rejects(asked, 'DAT_ABORT', /0x0020 .* to 192\.0\.2\.1: WR_FLUSH_ERR/),
        rejects(transfer, 'DAT_ABORT', /WR_FLUSH_ERR/),
      ];
      await pair.fabric.run({ forUs: 30 });
      if (way === 'agent') await Promise.all([agent.unregister(), big.unregister()]);
      else if (way === 'adapter') await pair.client.close();
      else pair.fabric.node(CLIENT)?.remove();
      await Promise.all(ends);
      const gone = way === 'device' ? 'DAT_ABORT' : 'DAT_INVALID_HANDLE';
      await rejects(agent.request(ask), gone, /unregistered|gone/);
      await agent.unregister();
      await pair.close();
      for (const request of requests) {
        await rejects(request.respond(), 'DAT_INVALID_HANDLE', /unregistered/);
      }
    }
  });

  it('has ended when all that was asked of it has been returned to whoever asked', async () => {
    const pair = await open();
    const agent = pair.client.mad.registerAgent(VENDOR);
    const order: string[] = [];
    const ask = async (): Promise<void> => {
      try {
        await agent.request({ address: SERVER, attributeId: ATTRIBUTE });
      } catch {
        order.push('returned');
      }
    };
    const asking = [ask(), ask()];
    await agent.unregister();
    order.push('unregistered');
    await Promise.all(asking);
    assert.deepEqual(order, ['returned', 'returned', 'unregistered']);
    await pair.close();
  });

  it('keeps its agents apart from those of other adapters on the same device', async () => {
    const pair = await open();
    const other = await openIa(mock({ fabric: pair.fabric, address: SERVER }));
    serve(pair.server);
    const conflict = /method 0x1 .* has an agent already/;
    await rejects((async () => void serve(other))(), 'DAT_INVALID_PARAMETER', conflict);
    await assert.rejects(pair.server.close('graceful'), { code: 'DAT_INVALID_STATE' });
    await pair.server.close();
    serve(other);
    const agent = pair.client.mad.registerAgent(VENDOR);
    await agent.request({ address: SERVER, attributeId: ATTRIBUTE });
    await Promise.all([other.close(), pair.close()]);
  });

  it('answers once', async () => {
    const pair = await open();
    const answers: Promise<void>[] = [];
    serve(pair.server, {
      onRequest: (request) => {
        answers.push(request.respond({ status: 4 }));
        answers.push(rejects(request.respond(), 'DAT_INVALID_STATE', /answered/));
      },
    });
    const agent = pair.client.mad.registerAgent(VENDOR);
    const { status } = await agent.request({ address: SERVER, attributeId: ATTRIBUTE });
    assert.equal(status, 4);
    await Promise.all(answers);
    assert.equal(answers.length, 2);
    await pair.close();
  });
});

describe('ia.mad: bad input', () => {
  const anything = fc.oneof(
    fc.anything(),
    fc.integer(),
    fc.double(),
    fc.string(),
    fc.constantFrom(undefined, null, -1, 1.5, NaN, 2 ** 32, '127.0.0.1'),
  );

  it('registers, or refuses by a DatError', async () => {
    const pair = await open();
    const record = fc.record(
      {
        managementClass: fc.oneof(fc.integer({ min: 0, max: 300 }), anything),
        classVersion: anything,
        methods: fc.oneof(fc.array(fc.integer({ min: -1, max: 130 })), anything),
        oui: anything,
        rmpp: fc.oneof(fc.boolean(), anything),
        onRequest: anything,
        queueLength: anything,
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(record, async (options) => {
        let agent: ManagementAgent | undefined;
        try {
          agent = pair.client.mad.registerAgent(options as never);
        } catch (error) {
          assert.ok(DatError.isDatError(error), String(error));
        }
        await agent?.unregister();
      }),
      { numRuns: 500 },
    );
    await pair.close();
  });

  it('sends, or refuses by a DatError', async () => {
    const pair = await open();
    const plain = pair.client.mad.registerAgent(VENDOR);
    const rmpp = pair.client.mad.registerAgent({ ...VENDOR, rmpp: true });
    const record = fc.record(
      {
        address: fc.oneof(fc.constant(SERVER), fc.ipV6(), anything),
        qpn: anything,
        method: anything,
        attributeId: fc.oneof(fc.integer({ min: 0, max: 70_000 }), anything),
        attributeModifier: anything,
        data: fc.oneof(fc.uint8Array({ maxLength: 300 }), anything),
        retries: fc.oneof(fc.constant(0), fc.constant(undefined), fc.string()),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(record, fc.boolean(), async (options, withRmpp) => {
        try {
          await (withRmpp ? rmpp : plain).send(options as never);
        } catch (error) {
          assert.ok(DatError.isDatError(error), String(error));
        }
      }),
      { numRuns: 500 },
    );
    await rejects(
      plain.send({ address: SERVER, attributeId: 1, data: new Uint8Array(217) }),
      'DAT_LENGTH_ERROR',
      /217 bytes; at most 216 fit \(register the agent with rmpp/,
    );
    await pair.close();
  });
});
