import assert from 'node:assert/strict';
import { type QueuePair, WcFlags, WcOpcode, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import {
  connect,
  drain,
  HcaPair,
  postReceive,
  postSend,
  type Segment,
} from '../../support/hca-pair.js';
import { assertSameBytes } from '../../support/same-bytes.js';

const MTU = 1024;
const SIZES = [0, 1, 3, MTU - 1, MTU, MTU + 1, 2 * MTU, 5 * MTU + 7, 300 * MTU + 13];
const SOURCE = 17;
const TARGET = 500_003;

/** Of each side; made once, for it takes longer than what is tested. */
const NOISE = [101, 102].map((seed) => {
  const random = new SeededRandom(seed);
  return Uint8Array.from({ length: 1 << 20 }, () => random.u32());
});

interface Connected {
  pair: HcaPair;
  qpA: QueuePair;
  qpB: QueuePair;
}

function connected(seed = 1): Connected {
  const pair = new HcaPair(seed);
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB, {}, MTU);
  pair.a.bytes.set(NOISE[0]!);
  pair.b.bytes.set(NOISE[1]!);
  return { pair, qpA, qpB };
}

/** Cuts a range into pieces, empty ones among them. */
function pieces(offset: number, length: number, count: number): Segment[] {
  const segments: Segment[] = [];
  let done = 0;
  for (let i = 0; i < count; i++) {
    const step =
      i === count - 1 ? length - done : Math.floor((length - done) / (i === 2 ? 1e9 : 3));
    segments.push({ offset: offset + done, length: step });
    done += step;
  }
  return segments;
}

describe('RC transfers', () => {
  for (const size of SIZES) {
    for (const sges of [1, 16]) {
      it(`SEND of ${size} bytes with ${sges} segments each side`, () => {
        const { pair, qpA, qpB } = connected();
        const before = pair.b.bytes.slice();
        postReceive(pair.b, qpB, pieces(TARGET, size + 5, sges), 77);
        postSend(pair.a, qpA, {
          opcode: WrOpcode.SEND,
          segments: pieces(SOURCE, size, sges),
          cookie: 5,
        });
        pair.run(100_000);
        const [sent, ...moreSent] = drain(pair.a.sendCq);
        const [received, ...moreReceived] = drain(pair.b.receiveCq);
        assert.deepEqual([moreSent, moreReceived], [[], []]);
        assert.equal(sent?.status, WcStatus.SUCCESS);
        assert.equal(sent?.cookie, 5);
        assert.equal(sent?.opcode, WcOpcode.SEND);
        assert.equal(received?.status, WcStatus.SUCCESS);
        assert.equal(received?.byteLength, size);
        assert.equal(received?.cookie, 77);
        assert.equal(received?.context, 7);
        assert.equal(received?.sourceQpn, qpA.qpn);
        before.set(pair.a.bytes.subarray(SOURCE, SOURCE + size), TARGET);
        assertSameBytes(pair.b.bytes, before);
      });

      it(`WRITE of ${size} bytes with ${sges} segments`, () => {
        const { pair, qpA } = connected();
        const before = pair.b.bytes.slice();
        postSend(pair.a, qpA, {
          opcode: WrOpcode.RDMA_WRITE,
          segments: pieces(SOURCE, size, sges),
          remoteAddress: pair.b.base + BigInt(TARGET),
          rkey: pair.b.region.rkey,
        });
        pair.run(100_000);
        assert.deepEqual(
          drain(pair.a.sendCq).map((c) => c.status),
          [WcStatus.SUCCESS],
        );
        assert.deepEqual(drain(pair.b.receiveCq), []);
        before.set(pair.a.bytes.subarray(SOURCE, SOURCE + size), TARGET);
        assertSameBytes(pair.b.bytes, before);
      });

      it(`READ of ${size} bytes into ${sges} segments`, () => {
        const { pair, qpA } = connected();
        const before = pair.a.bytes.slice();
        postSend(pair.a, qpA, {
          opcode: WrOpcode.RDMA_READ,
          segments: pieces(TARGET, size, sges),
          remoteAddress: pair.b.base + BigInt(SOURCE),
          rkey: pair.b.region.rkey,
        });
        pair.run(100_000);
        const completions = drain(pair.a.sendCq);
        assert.deepEqual(
          completions.map((c) => [c.status, c.byteLength]),
          [[WcStatus.SUCCESS, size]],
        );
        before.set(pair.b.bytes.subarray(SOURCE, SOURCE + size), TARGET);
        assertSameBytes(pair.a.bytes, before);
      });
    }

    it(`WRITE with immediate of ${size} bytes`, () => {
      const { pair, qpA, qpB } = connected();
      postReceive(pair.b, qpB, [], 9);
      postSend(pair.a, qpA, {
        opcode: WrOpcode.RDMA_WRITE_WITH_IMM,
        segments: [{ offset: SOURCE, length: size }],
        remoteAddress: pair.b.base + BigInt(TARGET),
        rkey: pair.b.region.rkey,
        immediate: 0xdeadbeef,
      });
      pair.run(100_000);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => c.status),
        [WcStatus.SUCCESS],
      );
      const [received] = drain(pair.b.receiveCq);
      assert.equal(received?.opcode, WcOpcode.RECV_RDMA_WITH_IMM);
      assert.equal(received?.flags, WcFlags.WITH_IMM);
      assert.equal(received?.immediate, 0xdeadbeef);
      assert.equal(received?.byteLength, size);
      assertSameBytes(
        pair.b.bytes.subarray(TARGET, TARGET + size),
        pair.a.bytes.subarray(SOURCE, SOURCE + size),
      );
    });
  }
});
