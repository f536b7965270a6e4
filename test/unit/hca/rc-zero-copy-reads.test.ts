/** READ answers that stay in their memory until the peer takes them in: what becomes of them. */
import assert from 'node:assert/strict';
import {
  AsyncEventType,
  type MemoryRegion,
  nextRkey,
  QpState,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { MOST_COPIED_BYTES } from '../../../providers/hca/memory/read-copies.js';
import type { Region } from '../../../providers/hca/memory/region.js';
import { drain, postSend } from '../../support/hca-pair.js';
import { collectGarbage } from '../../support/heap.js';
import { LOCAL_WRITE, LateReads, MTU, REMOTE_READ } from '../../support/late-reads.js';

const { SUCCESS, REM_ACCESS_ERR, RETRY_EXC_ERR } = WcStatus;
const BYTES = 3 * MTU + 1;

describe('READ answers in place', () => {
  it('are one segment of their memory, and those as long as a path MTU too', () => {
    const world = new LateReads(BYTES);
    world.answered(BYTES);
    assert.deepEqual(world.segments, [1, 1, 1, 1]);
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
    world.assertRead(world.lent);
    assert.equal(world.hca.readCopies.bytes, 0);
  });

  it('of a region freed since are what they were', () => {
    const world = new LateReads(BYTES);
    const before = world.lent.slice();
    world.answered(BYTES);
    world.region.destroy();
    world.lent.fill(0x99);
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
    world.assertRead(before);
    assert.ok(world.pair.a.port.counters.badIcrc > 0, 'what was under way has been lost');
  });

  it('of a part of a region freed since: the rest of it is not kept', () => {
    const world = new LateReads(BYTES + 8);
    world.answered(2 * MTU, MTU);
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, 2 * MTU);
    const before = world.lent.slice(MTU, 3 * MTU);
    world.lent.fill(0x99);
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
    world.assertRead(before, MTU);
  });

  it('of short READs are copied, and not kept', () => {
    const world = new LateReads(BYTES);
    world.answered(4096);
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, 0);
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
  });

  for (const type of [1, 2] as const) {
    it(`of a window of type ${type} that is unbound since are what they were`, () => {
      const world = new LateReads(BYTES);
      const { pair, qpB, region } = world;
      const window = pair.b.driver.device.createMemoryWindow(pair.b.pd, type);
      const bind = { window, rkey: nextRkey(window.rkey), region, access: REMOTE_READ };
      const whole = { address: region.iova, length: BYTES };
      postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind: { ...bind, ...whole } });
      pair.run(1000);
      const before = world.lent.slice();
      world.answered(BYTES, 0, 0, window.rkey);
      if (type === 2) postSend(pair.b, qpB, { opcode: WrOpcode.LOCAL_INV, immediate: window.rkey });
      else {
        const none = { ...bind, rkey: nextRkey(window.rkey), address: 0n, length: 0 };
        postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind: none });
      }
      pair.b.driver.pump();
      assert.deepEqual(
        drain(pair.b.sendCq).map((c) => c.status),
        [SUCCESS, SUCCESS],
      );
      region.destroy();
      world.lent.fill(0x99);
      assert.deepEqual(world.completed(), [[0, SUCCESS]]);
      world.assertRead(before);
    });
  }

  it('under another key than the one that ended are not kept', () => {
    const world = new LateReads(BYTES);
    const { pair, qpB, region } = world;
    const window = pair.b.driver.device.createMemoryWindow(pair.b.pd, 1);
    const bind = { window, rkey: nextRkey(window.rkey), region, access: REMOTE_READ };
    const whole = { address: region.iova, length: BYTES };
    postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind: { ...bind, ...whole } });
    world.answered(BYTES);
    window.destroy();
    assert.equal(world.hca.readCopies.bytes, 0);
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
  });

  it('of two regions are kept each by itself', () => {
    const world = new LateReads(BYTES, 2);
    const other = world.pair.b.pd.registerMemory(world.lent, LOCAL_WRITE | REMOTE_READ);
    world.answered(BYTES);
    world.answered(MTU, 0, 1, other.rkey, other.iova);
    other.destroy();
    assert.equal(world.hca.readCopies.bytes, MTU);
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, MTU + BYTES);
    assert.deepEqual(world.completed(), [
      [0, SUCCESS],
      [1, SUCCESS],
    ]);
  });

  it('of a region are kept though the place of an earlier one has gone to another region', () => {
    const world = new LateReads(BYTES, 2);
    const other = world.pair.b.pd.registerMemory(world.lent, LOCAL_WRITE | REMOTE_READ);
    world.answered(BYTES, 0, 0);
    world.answered(MTU, 0, 1);
    assert.equal(world.completed().length, 2);
    world.answered(MTU, 0, 2, other.rkey, other.iova);
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, MTU);
    assert.deepEqual(world.completed(), [[2, SUCCESS]]);
  });

  it('whose place has gone to a short READ are not kept, nor is the short one', () => {
    const world = new LateReads(BYTES, 2);
    world.answered(BYTES, 0, 0);
    world.answered(MTU, 0, 1);
    assert.equal(world.completed().length, 2);
    world.answered(8, 0, 2);
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, MTU, 'of the second one');
  });

  it('are kept whole when a part of them was asked for again', () => {
    const world = new LateReads(BYTES);
    const requests: Uint8Array[] = [];
    world.pair.a.port.filter = (packet) => {
      requests.push(packet.slice());
      return [packet];
    };
    world.answered(BYTES);
    const part = requests[0]!.slice();
    new DataView(part.buffer).setUint32(24, MTU);
    world.pair.b.port.inject(part);
    world.pair.b.driver.pump();
    const before = world.lent.slice();
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, BYTES);
    world.lent.fill(0x99);
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
    world.assertRead(before);
  });

  it('that nobody can ask for again are not kept', () => {
    const world = new LateReads(BYTES);
    world.answered(BYTES);
    world.qpB.modify({ state: QpState.ERR });
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, 0);
  });

  it('that the port has not taken yet are what they were, too', () => {
    const world = new LateReads(BYTES);
    const before = world.lent.slice();
    world.pair.b.port.sendCredit = 0;
    world.answered(BYTES);
    world.region.destroy();
    world.lent.fill(0x99);
    world.pair.b.port.sendCredit = Infinity;
    assert.deepEqual(world.completed(), [[0, SUCCESS]]);
    world.assertRead(before);
    assert.equal(world.pair.a.port.counters.badIcrc, 0);
  });

  it('of memory that was transferred away cannot be kept', () => {
    const world = new LateReads(BYTES);
    world.answered(BYTES);
    structuredClone(world.lent.buffer, { transfer: [world.lent.buffer] });
    world.region.destroy();
    assert.equal(world.hca.readCopies.bytes, 0);
  });

  describe('when the connection ends by a refusal', () => {
    it('the memory went while it was read: what was answered comes first, then the NAK', () => {
      const world = new LateReads(3 * MTU);
      const before = world.lent.slice();
      const { a, b } = world.pair;
      const requests: Uint8Array[] = [];
      a.port.filter = (packet) => {
        requests.push(packet.slice());
        return [];
      };
      for (let i = 0; i < 3; i++) world.post(MTU, i * MTU, i);
      a.driver.pump();
      a.port.filter = undefined;
      // The port takes the first answer; the second is built and waits, the third is not even that.
      for (const [i, request] of requests.entries()) {
        b.port.sendCredit = i === 0 ? 1 : 0;
        b.port.inject(request);
        b.driver.pump();
      }
      world.region.destroy();
      world.lent.fill(0x99);
      world.pair.b.port.sendCredit = Infinity;
      assert.deepEqual(world.completed(), [
        [0, SUCCESS],
        [1, SUCCESS],
        [2, REM_ACCESS_ERR],
      ]);
      world.assertRead(before.subarray(0, 2 * MTU));
      assert.ok(!world.pair.a.bytes.includes(0x99), 'what came later is not shown');
      assert.ok(world.pair.b.events.includes(AsyncEventType.QP_ACCESS_ERR));
    });

    it('a later READ is refused: those before it succeed', () => {
      const world = new LateReads(2 * BYTES);
      const before = world.lent.slice();
      world.answered(BYTES, 0, 0);
      world.answered(BYTES, BYTES, 1);
      world.region.destroy();
      world.lent.fill(0x99);
      world.answered(8, 0, 2);
      assert.deepEqual(world.completed(), [
        [0, SUCCESS],
        [1, SUCCESS],
        [2, REM_ACCESS_ERR],
      ]);
      world.assertRead(before);
    });

    it('all that has been kept comes first, in its order', () => {
      const world = new LateReads(4 * MTU);
      const before = world.lent.slice();
      for (let i = 0; i < 4; i++) world.post(MTU, i * MTU, i);
      world.pair.a.driver.pump();
      world.pair.b.driver.pump();
      world.region.destroy();
      assert.equal(world.hca.readCopies.bytes, 4 * MTU);
      world.lent.fill(0x99);
      world.refuse(4);
      assert.deepEqual(world.completed(), [
        ...[0, 1, 2, 3].map((i): [number, number] => [i, SUCCESS]),
        [4, REM_ACCESS_ERR],
      ]);
      world.assertRead(before);
    });

    it('comes once what is owed again besides', () => {
      const world = new LateReads(BYTES);
      const before = world.lent.slice();
      const requests: Uint8Array[] = [];
      world.pair.a.port.filter = (packet) => {
        requests.push(packet.slice());
        return [packet];
      };
      world.answered(BYTES);
      world.region.destroy();
      world.lent.fill(0x99);
      world.segments.length = 0;
      world.pair.b.port.inject(requests[0]!);
      world.refuse(1);
      assert.deepEqual(world.completed(), [
        [0, SUCCESS],
        [1, REM_ACCESS_ERR],
      ]);
      world.assertRead(before);
      assert.equal(world.segments.length, 5, 'four packets and the NAK');
      assert.equal(world.hca.counters.drops.replayUnknown, 0);
    });

    it('what is answered in ERR is copied, for nobody can ask for it again', () => {
      const world = new LateReads(BYTES);
      world.pair.b.port.sendCredit = 0;
      world.answered(8, 0, 0);
      world.post(BYTES, 0, 1);
      world.post(8, 0, 2, 0xbad);
      world.pair.a.driver.pump();
      world.pair.b.driver.pump();
      assert.equal(world.qpB.state, QpState.ERR);
      world.segments.length = 0;
      world.pair.b.port.sendCredit = Infinity;
      world.pair.b.driver.pump();
      world.lent.fill(0x77);
      const results = world.completed();
      assert.deepEqual(results.at(-1), [2, REM_ACCESS_ERR]);
      assert.ok(world.segments.includes(2));
    });
  });

  describe('that change on their way', () => {
    it('are asked for again, and copied then and for a while', () => {
      const world = new LateReads(BYTES);
      world.answered(BYTES);
      world.lent.fill(0x42);
      world.segments.length = 0;
      assert.deepEqual(world.completed(), [[0, SUCCESS]]);
      world.assertRead(world.lent);
      assert.deepEqual(world.segments, [2, 2, 2, 1], 'the last one is short');
      world.segments.length = 0;
      for (let i = 1; i <= 21; i++) {
        world.answered(BYTES, 0, i);
        assert.deepEqual(world.completed(), [[i, SUCCESS]]);
      }
      const inPlace = world.segments.filter((count, i) => i % 4 < 3 && count === 1).length;
      assert.equal(inPlace, 3 * 21 - (64 - 3), '64 were copied');
    });

    it('again and again are copied twice as long each time, until left alone', () => {
      const world = new LateReads(MTU);
      let cookie = 0;
      /** READs that are copied before one is left in place again. */
      const copies = (): number => {
        for (let count = 0; ; count++) {
          world.segments.length = 0;
          world.answered(MTU, 0, ++cookie);
          if (world.segments[0] === 1) return count;
          world.completed(1000);
        }
      };
      const found: number[] = [copies()];
      for (let i = 0; i < 2; i++) {
        world.lent.fill(i);
        assert.deepEqual(world.completed(), [[cookie, SUCCESS]]);
        found.push(copies());
      }
      assert.deepEqual(found, [0, 63, 127]);
      for (let i = 0; i < 256; i++) {
        world.completed(1000);
        world.answered(MTU, 0, ++cookie);
      }
      for (const [i, count] of [63, 127].entries()) {
        world.lent.fill(0xcc + i);
        assert.deepEqual(world.completed(), [[cookie, SUCCESS]]);
        assert.equal(copies(), count);
      }
    });
  });

  describe('that have been kept', () => {
    const kept = (): LateReads => {
      const world = new LateReads(BYTES, 4);
      world.answered(MTU);
      world.region.destroy();
      assert.equal(world.hca.readCopies.bytes, MTU);
      return world;
    };

    it('go when their place is taken: the peer has had them', () => {
      const world = kept();
      world.completed();
      const { a, b } = world.pair;
      for (let i = 1; i <= 4; i++) {
        assert.equal(world.hca.readCopies.bytes, MTU, `before READ ${i}`);
        const remote = { remoteAddress: b.base, rkey: b.region.rkey };
        const segments = [{ offset: 0, length: 8 }];
        postSend(a, world.qpA, { opcode: WrOpcode.RDMA_READ, cookie: i, segments, ...remote });
        assert.deepEqual(world.completed(), [[i, SUCCESS]]);
      }
      assert.equal(world.hca.readCopies.bytes, 0);
    });

    for (const [how, end] of [
      ['is destroyed', (world: LateReads) => world.qpB.destroy()],
      ['is reset', (world: LateReads) => world.qpB.modify({ state: QpState.RESET })],
    ] as const) {
      it(`go when the queue pair ${how}`, () => {
        const world = kept();
        end(world);
        world.pair.b.driver.pump();
        assert.equal(world.hca.readCopies.bytes, 0);
        const live = world.pair.b.port.regions.filter((region) => region !== undefined);
        assert.deepEqual(
          live.map(({ bytes }) => bytes.length),
          [world.pair.b.bytes.length],
          'nor has the port any of them',
        );
      });
    }

    it('are no more than a peer may have outstanding', () => {
      const world = new LateReads(64 * MTU, 16, { windowPackets: 2048 });
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < 4; i++) world.post(16 * MTU, 16 * MTU * i, i);
        assert.equal(world.completed().length, 4);
      }
      world.region.destroy();
      assert.equal(world.hca.readCopies.bytes, Math.ceil((4 << 20) / MTU) * MTU);
    });

    it('in part are answered from the first packet kept on, and not before it', () => {
      const world = new LateReads(64 * MTU, 16, { windowPackets: 2048 });
      const before = world.lent.slice();
      const requests: Uint8Array[] = [];
      world.pair.a.port.filter = (packet) => {
        requests.push(packet.slice());
        return [packet];
      };
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < 4; i++) world.post(16 * MTU, 16 * MTU * i, i);
        assert.equal(world.completed().length, 4);
      }
      world.region.destroy();
      world.lent.fill(0x99);
      const sent: Uint8Array[] = [];
      world.pair.b.port.filter = (packet) => {
        sent.push(packet.slice());
        return [];
      };
      const kept = Math.ceil((4 << 20) / MTU);
      const last = new DataView(requests.at(-1)!.buffer);
      const end = (last.getUint32(8) & 0xffffff) + Math.ceil(last.getUint32(24) / MTU);
      const readOf = (psn: number): Uint8Array =>
        requests.findLast(
          (one) => (new DataView(one.buffer).getUint32(8) & 0xffffff) <= (psn & 0xffffff),
        )!;
      world.pair.b.port.inject(readOf(end - kept));
      while (world.pair.b.driver.pump());
      assert.equal(sent.length, 0, 'what came before is gone');
      assert.equal(world.hca.counters.drops.replayUnknown, 1);
      world.refuse(99);
      while (world.pair.b.driver.pump());
      const psns = sent.map((one) => new DataView(one.buffer).getUint32(8) & 0xffffff);
      assert.deepEqual(
        psns,
        Array.from({ length: kept + 1 }, (_, i) => (end - kept + i) & 0xffffff),
      );
      assert.equal(sent[0]![0], 13, 'it begins as an answer does');
      const data = Buffer.concat(
        sent.slice(0, -1).map((one) => one.subarray(one[0] === 14 ? 12 : 16)),
      );
      const whole = Buffer.concat([before, before]);
      assert.equal(Buffer.compare(data, whole.subarray(whole.length - kept * MTU)), 0);
    });

    it('have a bound together: of the oldest the peer hears nothing any more', () => {
      const world = kept();
      world.lent.fill(0x99);
      world.hca.readCopies.keep(world.pair.b.region as Region, 0, MOST_COPIED_BYTES);
      assert.deepEqual(world.completed(100_000_000), [[0, RETRY_EXC_ERR]]);
      assert.ok(!world.pair.a.bytes.includes(0x99));
    });

    it('a region that no answer is unread of is forgotten with its queue pair', () => {
      const world = new LateReads(BYTES);
      world.answered(BYTES);
      assert.equal(world.hca.memory.zeroCopy.size, 1);
      world.qpB.destroy();
      assert.equal(world.hca.memory.zeroCopy.size, 0);
    });

    it('and with its own end', () => {
      assert.equal(kept().hca.memory.zeroCopy.size, 0);
    });

    it('and with its own end its memory is free', async () => {
      const world = new LateReads(BYTES);
      const lent = (): WeakRef<MemoryRegion> => {
        const bytes = new Uint8Array(BYTES);
        const region = world.pair.b.pd.registerMemory(bytes, LOCAL_WRITE | REMOTE_READ);
        world.answered(BYTES, 0, 0, region.rkey, region.iova);
        assert.deepEqual(world.completed(), [[0, SUCCESS]]);
        region.destroy();
        return new WeakRef(region);
      };
      const gone = lent();
      world.answered(8, 0, 1);
      assert.deepEqual(world.completed(), [[1, SUCCESS]]);
      await collectGarbage();
      assert.ok(gone.deref() === undefined);
    });
  });

  it('are flushed when their memory changes after the end of this side', () => {
    const world = new LateReads(BYTES);
    world.answered(BYTES);
    world.qpB.modify({ state: QpState.ERR });
    world.lent.fill(0x99);
    assert.deepEqual(world.completed(100_000_000), [[0, RETRY_EXC_ERR]]);
    assert.ok(!world.pair.a.bytes.subarray(0, BYTES).every((byte) => byte === 0x99));
  });
});
