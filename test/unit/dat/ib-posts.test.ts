import assert from 'node:assert/strict';
import { CompletionFlags, Ep, RemoteSegment, UdEp } from '../../../core/index.js';
import { type Logger, silentLogger, SQE, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { type Bench, connected, drain } from '../../support/fake-endpoints.js';
import { openFake } from '../../support/fake-provider.js';

const LARGE = 2n ** 63n;
const REMOTE = { address: 0x1_2345_6780n, rmrContext: 0xfedcba98 };

async function able(): Promise<Bench> {
  const bench = await connected();
  for (const capability of ['atomic', 'send-with-invalidate'] as const) {
    bench.device.capabilities.add(capability);
  }
  return bench;
}

/** The words of the newest request. */
function words({ device }: Bench, ...names: readonly (keyof typeof SQE)[]): number[] {
  const { sendRing } = device.qp;
  const at = sendRing.wordOf(sendRing.producer - 1);
  return names.map((name) => sendRing.words[at + SQE[name]] ?? 0);
}

const opcodeOf = (bench: Bench): number => (words(bench, 'CONTROL')[0] ?? 0) & 0xff;
const flagsOf = (bench: Bench): number => ((words(bench, 'CONTROL')[0] ?? 0) >>> 8) & 0xff;

/** Names of a method's parameters. */
function parametersOf(type: typeof Ep | typeof UdEp, method: string): string[] {
  const source = String((type.prototype as unknown as Record<string, unknown>)[method]);
  const [, list = ''] = /^\w+\(([^)]*)\)/.exec(source) ?? [];
  return list.split(',').map((each) => each.replace(/=.*/, '').trim());
}

describe('posting, IB extensions', () => {
  it('has an immediate behind what the plain call takes, before the flags: all three', () => {
    const calls = [
      [Ep, 'postSend'],
      [Ep, 'postRdmaWrite'],
      [UdEp, 'postSendUd'],
    ] as const;
    for (const [type, plain] of calls) {
      const own = parametersOf(type, plain);
      assert.equal(own.pop(), 'flags');
      assert.ok(own.includes('cookie'));
      const more = [...own, 'immediate', 'flags'];
      assert.deepEqual(parametersOf(type, `${plain}WithImmediate`), more);
    }
  });

  it('writes immediates and invalidates into their word, and clears it for others', async () => {
    const bench = await able();
    const { ep, lmr } = bench;
    ep.postSendWithImmediate(lmr.segment(0, 4), 1, 0xdeadbeef, CompletionFlags.SOLICITED_WAIT);
    assert.equal(opcodeOf(bench), WrOpcode.SEND_WITH_IMM);
    assert.equal(flagsOf(bench), WrFlags.SIGNALED | WrFlags.SOLICITED);
    assert.deepEqual(words(bench, 'IMMEDIATE_OR_INVALIDATE'), [0xdeadbeef]);
    ep.postSendWithInvalidate([], 2, 0x8000_0001);
    assert.equal(opcodeOf(bench), WrOpcode.SEND_WITH_INV);
    assert.deepEqual(words(bench, 'IMMEDIATE_OR_INVALIDATE'), [0x8000_0001]);
    ep.postRdmaWriteWithImmediate(lmr.segment(0, 4), 3, REMOTE, 7);
    assert.equal(opcodeOf(bench), WrOpcode.RDMA_WRITE_WITH_IMM);
    const at = ['REMOTE_ADDRESS_LO', 'REMOTE_ADDRESS_HI', 'RKEY'] as const;
    assert.deepEqual(words(bench, ...at), [0x2345_6780, 1, 0xfedcba98]);
    assert.deepEqual(words(bench, 'IMMEDIATE_OR_INVALIDATE'), [7]);
    for (let i = 0; i < 3; i++) bench.device.qp.completeSend();
    for (let i = 0; i < bench.device.qp.sendRing.entries; i++) {
      ep.postSend([], i);
      assert.deepEqual(words(bench, 'IMMEDIATE_OR_INVALIDATE'), [0]);
      bench.device.qp.completeSend();
      drain(bench.evd);
    }
  });

  it('writes the operands of atomics as pairs of words', async () => {
    const bench = await able();
    const { ep, lmr } = bench;
    const sink = lmr.segment(8, 8);
    const operands = ['COMPARE_ADD_LO', 'COMPARE_ADD_HI', 'SWAP_LO', 'SWAP_HI'] as const;
    ep.postCompareSwap(sink, 1, REMOTE, 0x1111_2222_3333_4444n, 2n ** 64n - 2n);
    assert.equal(opcodeOf(bench), WrOpcode.ATOMIC_CMP_AND_SWP);
    const swap = [0x3333_4444, 0x1111_2222, 0xffff_fffe, 0xffff_ffff];
    assert.deepEqual(words(bench, ...operands), swap);
    ep.postFetchAdd(sink, 2, new RemoteSegment(REMOTE), 5n, CompletionFlags.BARRIER_FENCE);
    assert.equal(opcodeOf(bench), WrOpcode.ATOMIC_FETCH_AND_ADD);
    assert.equal(flagsOf(bench), WrFlags.SIGNALED | WrFlags.FENCE);
    assert.deepEqual(words(bench, ...operands), [5, 0, 0, 0]);
  });

  it('is DAT_MODEL_NOT_SUPPORTED on a device that cannot', async () => {
    const { ep, lmr, device } = await connected();
    const sink = lmr.segment(0, 8);
    const refused = /lacks the capability.*DAT_MODEL_NOT_SUPPORTED/;
    assert.throws(() => ep.postFetchAdd(sink, 1, REMOTE, 1n), refused);
    assert.throws(() => ep.postCompareSwap(sink, 1, REMOTE, 1n, 1n), refused);
    assert.throws(() => ep.postSendWithInvalidate(sink, 1, 1), refused);
    assert.equal(device.qp.sendRing.producer, 0);
  });

  it('traces each call in one line, with names and values', async () => {
    const lines: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      debug: (line) => void lines.push(line),
      isDebugEnabled: () => true,
      child: () => logger,
    };
    const { ia, device, cm, world } = await openFake({ logger });
    for (const capability of ['atomic', 'send-with-invalidate'] as const) {
      device.capabilities.add(capability);
    }
    const pz = ia.createPz();
    const lmr = ia.allocate(64, { pz, privileges: 0x73 });
    const [ep, other] = [ia.createEndpoint({ pz }), ia.createEndpoint({ pz })];
    ep.commonConnect('192.0.2.2:7');
    cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
    world.pump();
    const { address, rmrContext = 0 } = lmr;
    const sink = { address, rmrContext, lengthBytes: 8 };
    lines.length = 0;
    other.dupConnect(ep);
    ep.postSendWithImmediate(lmr.segment(), 1, 9);
    ep.postSendWithInvalidate(lmr.segment(), 2, 9, CompletionFlags.SUPPRESS);
    ep.postRdmaWriteWithImmediate([lmr.segment(0, 1), lmr.segment(1, 1)], 3, REMOTE, 9);
    ep.postRdmaReadToRmr(sink, 4, REMOTE);
    ep.postFetchAdd(lmr.segment(0, 8), 5, REMOTE, 1n);
    ep.postCompareSwap(lmr.segment(0, 8), 6, REMOTE, 1n, 2n);
    ep.setWatermark(5);
    ep.recvQuery();
    ep.getStatus();
    ep.query();
    ep.counters({ reset: true });
    assert.throws(() => ep.modify({ pz, attributes: {} }));
    const id = `ep=${ep.id}`;
    const remote = 'remote=0x123456780';
    const expected = [
      `ep.dupConnect(ep=${other.id}, connected=${ep.id})`,
      `ep.postSendWithImmediate(${id}, segments=1, cookie=1, flags=DEFAULT)`,
      `ep.postSendWithInvalidate(${id}, segments=1, cookie=2, flags=SUPPRESS)`,
      `ep.postRdmaWriteWithImmediate(${id}, segments=2, cookie=3, ${remote}, flags=DEFAULT)`,
      `ep.postRdmaReadToRmr(${id}, segments=1, cookie=4, ${remote}, flags=DEFAULT)`,
      `ep.postFetchAdd(${id}, segments=1, cookie=5, ${remote}, flags=DEFAULT)`,
      `ep.postCompareSwap(${id}, segments=1, cookie=6, ${remote}, flags=DEFAULT)`,
      `ep.setWatermark(${id}, soft=5, hard=Infinity)`,
      `ep.recvQuery(${id})`,
      `ep.getStatus(${id})`,
      `ep.query(${id})`,
      `ep.counters(${id}, reset=true)`,
      `ep.modify(${id}, fields=pz|attributes)`,
    ];
    for (const line of expected) assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`);
  });

  it('allocates nothing per post', async () => {
    const bench = await able();
    const { ep, lmr, evd, device } = bench;
    const sink = lmr.segment(0, 8);
    const remote = new RemoteSegment(REMOTE);
    const { address, rmrContext = 0 } = lmr;
    const triplet = { address, rmrContext, lengthBytes: 8 };
    const round = (): void => {
      ep.postSendWithImmediate(sink, 1, 9);
      ep.postSendWithInvalidate(sink, 2, 9);
      ep.postRdmaWriteWithImmediate(sink, 3, remote, 9);
      ep.postRdmaReadToRmr(triplet, 4, remote);
      ep.postFetchAdd(sink, 5, remote, 1n);
      ep.postCompareSwap(sink, 6, remote, LARGE, 2n);
    };
    const rounds = 20;
    /** Bytes that a full queue of posts leaves for the collector; completing is not measured. */
    const measure = (): number => {
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < rounds; i++) round();
      const bytes = process.memoryUsage().heapUsed - before;
      for (let i = 0; i < rounds * 6; i++) device.qp.completeSend();
      drain(evd);
      return bytes;
    };
    for (let i = 0; i < 300; i++) measure();
    const samples = Array.from({ length: 101 }, measure).sort((x, y) => x - y);
    const perPost = (samples[50] ?? Infinity) / (rounds * 6);
    // The smallest object there is takes 12 bytes or more; memoryUsage itself makes some.
    assert.ok(perPost < 12, `${perPost} bytes a post`);
  });
});
