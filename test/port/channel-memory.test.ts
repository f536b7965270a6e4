/** Payload that stays where it is until the peer reads it, and what becomes of it. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CHANNEL_MTU_BYTES } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { meet } from '../support/joined-ports.js';
import { loopback, testPort } from '../support/loopback.js';
import { gidOf, nothing } from '../../plugins/testing/port/bench-pair.js';
import {
  header,
  pattern,
  psnOf,
  receiveSome,
  sendAll,
  takeReceived,
  until,
} from '../../plugins/testing/port/harness.js';

const UDP_PORT = testPort(38);
const READ_RESPONSE_ONLY = 0x10;
const SEND_ONLY = 0x04;
/** The smallest area for what is copied. */
const BOUNCE_BYTES = 2 << 20;

describe('payload through shared memory', () => {
  let a: SocketPort;
  let b: SocketPort;
  let memory: Uint8Array;
  let region: number;
  let path: number;

  beforeEach(async () => {
    const shm = { bounceBytes: BOUNCE_BYTES };
    a = openNativePort({ addresses: [loopback(0, 33)], udpPort: UDP_PORT, shm });
    b = openNativePort({ addresses: [loopback(0, 34)], udpPort: UDP_PORT, shm });
    a.watch(nothing);
    b.watch(nothing);
    await meet(a, b, UDP_PORT);
    memory = pattern(4 * CHANNEL_MTU_BYTES);
    region = a.addRegion(memory.buffer, 0, memory.length);
    path = a.addPath(gidOf(b), 0, CHANNEL_MTU_BYTES);
  });

  afterEach(() => Promise.all([a.close(), b.close()]));

  const packet = (psn: number, offset: number, length: number, opcode = SEND_ONLY) => {
    const bytes = header(psn, -length & 3);
    bytes[0] = opcode;
    return { path, header: bytes, segments: [{ region, offset, length }] };
  };

  it('is as long as a message of 1 MiB, at any offset, whole', async () => {
    for (const [psn, length] of [CHANNEL_MTU_BYTES, CHANNEL_MTU_BYTES - 1, 70_000].entries()) {
      const spec = packet(psn, 3 + psn, length);
      await sendAll(a, [spec]);
      const [received] = await receiveSome(b, 1);
      const expected = memory.subarray(3 + psn, 3 + psn + length);
      assert.deepEqual(received?.bytes.subarray(12, 12 + length), expected);
      assert.equal(received.bytes.length % 4, 0);
    }
    assert.throws(() => {
      a.txSegments[3] = CHANNEL_MTU_BYTES + 1;
      a.send(0, 1);
    }, RangeError);
  });

  it('waits for room in a ring or area that is full, and goes on when there is', async () => {
    let writable = 0;
    a.watch({ ...nothing, onWritable: () => (writable += 1) });
    // Three of them fill the area, whose laps leave a gap.
    const specs = Array.from({ length: 12 }, (_, psn) => packet(psn, psn, 700_000));
    const sent = sendAll(a, specs);
    const received = await receiveSome(b, specs.length);
    await sent;
    assert.deepEqual(
      received.map(psnOf),
      specs.map((_, psn) => psn),
    );
    await until(() => writable > 0, 'onWritable');
    assert.equal(a.counters.channelDropped, 0);
  });

  it('is lost, after a while, where the peer takes nothing, and others are served', async () => {
    const other = openNativePort({ addresses: [loopback(0, 35)], udpPort: UDP_PORT });
    try {
      other.watch(nothing);
      const past = a.addPath(gidOf(other), 0);
      const stuck = Array.from({ length: 8 }, (_, psn) => packet(psn, 0, 700_000));
      await sendAll(a, [...stuck, { path: past, header: header(99) }]);
      assert.ok(a.counters.channelDropped > 0);
      const [through] = await receiveSome(other, 1);
      assert.equal(through && psnOf(through), 99);
    } finally {
      await other.close();
    }
  });

  describe('in memory of the arena', () => {
    let lent: Uint8Array;

    beforeEach(async () => {
      assert.ok(a.allocate);
      lent = new Uint8Array(a.allocate(CHANNEL_MTU_BYTES));
      lent.set(pattern(lent.length, 5));
      region = a.addRegion(lent.buffer, 0, lent.length);
      // The peer maps it when it has been told of it.
      for (let stays = false; !stays;) stays = await staysInPlace();
    });

    /** Whether the peer sees what memory holds after it was sent. */
    async function staysInPlace(): Promise<boolean> {
      await delay(1);
      lent[0] = 1;
      await sendAll(a, [packet(0, 0, 100_000)]);
      lent[0] = 2;
      const [received] = await receiveSome(b, 1);
      lent.set(pattern(lent.length, 5));
      return received?.bytes[12] === 2;
    }

    it('is not copied by a SEND, and by a READ answer is', async () => {
      await sendAll(a, [
        packet(1, 0, 100_000),
        packet(2, 0, 100_000, READ_RESPONSE_ONLY),
        packet(3, 0, 4096),
      ]);
      const before = lent.slice(0, 100_000);
      lent.fill(7, 0, 100_000);
      const [send, answer, short] = await receiveSome(b, 3);
      assert.ok(send?.bytes.subarray(12).every((byte) => byte === 7));
      assert.deepEqual(answer?.bytes.subarray(12), before);
      assert.deepEqual(short?.bytes.subarray(12), before.subarray(0, 4096));
    });

    it('is lost when it is withdrawn before the peer has it, that of others is not', async () => {
      const to = (psn: number, qpn: number) => {
        const spec = packet(psn, 0, 100_000);
        spec.header.set([qpn >> 16, qpn >> 8, qpn], 5);
        return spec;
      };
      await sendAll(a, [to(1, 17), to(2, 18), to(3, 17), { path, header: to(4, 17).header }]);
      a.withdraw?.(path, 17);
      const received = await receiveSome(b, 2);
      assert.deepEqual(received.map(psnOf), [2, 4]);
      // Nothing of it is left: room is given back as ever.
      for (let psn = 10; psn < 30; psn++) {
        await sendAll(a, [to(psn, 17)]);
        assert.deepEqual((await receiveSome(b, 1)).map(psnOf), [psn]);
      }
    });

    it('is given up without a wait when the peer has it, and is this very thread', async () => {
      await sendAll(a, [packet(1, 0, 100_000)]);
      assert.equal(takeReceived(b).length, 1);
      a.withdraw?.(path, 0x000011);
      b.release?.();
      await sendAll(a, [packet(2, 0, 100_000)]);
      assert.equal((await receiveSome(b, 1)).length, 1);
    });
  });
});
