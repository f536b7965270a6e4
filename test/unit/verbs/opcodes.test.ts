// docs/spi.md, "Rings and doorbells": the words of core/spi/layout/ring.ts say all that
// ibv_post_send, ibv_post_recv and ibv_poll_cq need, for every operation.

import assert from 'node:assert/strict';
import {
  Access,
  QpState,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/wire/ib.js';
import { RING_HEADER_BYTES } from '../../../core/spi/layout/ring.js';
import { CONTEXT_A, CONTEXT_B, Pair } from '../../fake-verbs/pair.js';
import { addSend, drain, postReceives, postSends } from '../../fake-verbs/work.js';

describe('verbs: every operation through the rings', () => {
  let pair: Pair;
  beforeEach(() => (pair = new Pair()));
  afterEach(() => pair.close());

  const text = (offset: number, length: number): string =>
    Buffer.from(pair.memory.subarray(offset, offset + length)).toString();
  const put = (offset: number, what: string): void => pair.memory.set(Buffer.from(what), offset);

  it('carries one burst of every opcode, completed in order with its words', () => {
    put(0, 'hello world');
    const window = pair.device.createMemoryWindow(pair.pd, 2);
    const boundRkey = (window.rkey ^ 1) >>> 0;
    const bind = {
      address: pair.region.iova + 8192n,
      length: 64n,
      window: window.handle,
      regionLkey: pair.region.lkey,
      access: Access.REMOTE_WRITE,
      rkey: boundRkey,
    };
    // The peer binds a window on its side; we write through it and invalidate it with a send.
    postSends(pair.b, { opcode: WrOpcode.BIND_MW, bind });
    assert.equal(drain(pair.queues['send B'])[0]?.opcode, WcOpcode.BIND_MW);
    assert.equal(window.rkey, boundRkey);

    const view = new DataView(pair.memory.buffer);
    view.setBigUint64(4096, 41n, true);
    postReceives(pair.b, [pair.at(1024, 16)], [pair.at(1040, 16)], [pair.at(1056, 16)], []);
    const { at, remote } = { at: pair.at.bind(pair), remote: pair.remote.bind(pair) };
    const hello = [at(0, 5)];
    postSends(
      pair.a,
      { opcode: WrOpcode.SEND, segments: hello, cookie: 0xfedcba9876543210n },
      { opcode: WrOpcode.SEND_WITH_IMM, segments: [at(6, 5)], extra: 0x01020304 },
      { opcode: WrOpcode.RDMA_WRITE, segments: [at(0, 11)], remote: remote(2048) },
      {
        opcode: WrOpcode.RDMA_WRITE,
        segments: hello,
        remote: { address: bind.address, rkey: boundRkey },
      },
      { opcode: WrOpcode.SEND_WITH_INV, segments: hello, extra: boundRkey },
      {
        opcode: WrOpcode.RDMA_WRITE_WITH_IMM,
        segments: hello,
        remote: remote(2100),
        extra: 0xffffffff,
      },
      { opcode: WrOpcode.RDMA_READ, segments: [at(3000, 11)], remote: remote(2048) },
      {
        opcode: WrOpcode.ATOMIC_FETCH_AND_ADD,
        segments: [at(4104, 8)],
        remote: remote(4096),
        compareAdd: 2n ** 40n,
      },
      {
        opcode: WrOpcode.ATOMIC_CMP_AND_SWP,
        segments: [at(4112, 8)],
        remote: remote(4096),
        compareAdd: 2n ** 40n + 41n,
        swap: 7n,
      },
      { opcode: WrOpcode.SEND, inline: Buffer.alloc(0), flags: WrFlags.SIGNALED },
    );
    const sent = drain(pair.queues['send A']);
    // The last one waits for a receive: the fourth went to WRITE_WITH_IMM.
    assert.deepEqual(
      sent.map((c) => [c.status, c.index, c.qpn, c.context, c.flags, c.extra]),
      sent.map((_, i) => [WcStatus.SUCCESS, i, pair.a.qpn, CONTEXT_A, 0, 0]),
    );
    assert.deepEqual(
      sent.map((c) => c.opcode),
      [
        WcOpcode.SEND,
        WcOpcode.SEND,
        WcOpcode.RDMA_WRITE,
        WcOpcode.RDMA_WRITE,
        WcOpcode.SEND,
        WcOpcode.RDMA_WRITE,
        WcOpcode.RDMA_READ,
        WcOpcode.FETCH_ADD,
        WcOpcode.COMP_SWAP,
      ],
    );
    assert.equal(sent[0]?.cookie, 0xfedcba9876543210n);
    assert.deepEqual(
      sent.map((c) => c.byteLength),
      [5, 5, 11, 5, 5, 5, 11, 8, 8],
    );

    const received = drain(pair.queues['receive B']);
    assert.deepEqual(
      received.map((c) => [c.index, c.cookie, c.opcode, c.flags, c.extra, c.byteLength]),
      [
        [0, 0n, WcOpcode.RECV, 0, 0, 5],
        [1, 1n, WcOpcode.RECV, WcFlags.WITH_IMM, 0x01020304, 5],
        [2, 2n, WcOpcode.RECV, WcFlags.WITH_INV, boundRkey, 5],
        [3, 3n, WcOpcode.RECV_RDMA_WITH_IMM, WcFlags.WITH_IMM, 0xffffffff, 5],
      ],
    );
    assert.ok(received.every((c) => c.context === CONTEXT_B && c.qpn === pair.b.qpn));
    assert.equal(text(1024, 5) + text(1040, 5) + text(1056, 5), 'helloworldhello');
    assert.equal(text(2048, 11) + text(8192, 5) + text(2100, 5), 'hello worldhellohello');
    assert.equal(text(3000, 11), 'hello world');
    assert.equal(view.getBigUint64(4104, true), 41n);
    assert.equal(view.getBigUint64(4112, true), 2n ** 40n + 41n);
    assert.equal(view.getBigUint64(4096, true), 7n);

    postReceives(pair.b, []);
    assert.equal(drain(pair.queues['send A'])[0]?.index, 9);
    window.destroy();
  });

  it('invalidates a window locally, which a second time fails', () => {
    const window = pair.device.createMemoryWindow(pair.pd, 2);
    const rkey = (window.rkey ^ 2) >>> 0;
    const bind = {
      address: pair.region.iova,
      length: 8n,
      window: window.handle,
      regionLkey: pair.region.lkey,
      access: 0,
      rkey,
    };
    const invalidate = { opcode: WrOpcode.LOCAL_INV, extra: rkey };
    postSends(pair.a, { opcode: WrOpcode.BIND_MW, bind }, invalidate, invalidate);
    const done = drain(pair.queues['send A']);
    assert.deepEqual(
      done.map((c) => [c.status, c.opcode]),
      [
        [WcStatus.SUCCESS, WcOpcode.BIND_MW],
        [WcStatus.SUCCESS, WcOpcode.LOCAL_INV],
        [WcStatus.MW_BIND_ERR, WcOpcode.LOCAL_INV],
      ],
    );
    window.destroy();
  });

  it('hands segments over as struct ibv_sge where they stand, gathered and scattered', () => {
    put(0, 'abcdefgh');
    postReceives(pair.b, [pair.at(512, 1), pair.at(520, 0), pair.at(530, 7)]);
    const segments = [pair.at(6, 2), pair.at(4, 2), pair.at(2, 2), pair.at(0, 2)];
    const [index = 0] = postSends(pair.a, { opcode: WrOpcode.SEND, segments });
    assert.equal(drain(pair.queues['send A'])[0]?.byteLength, 8);
    assert.equal(drain(pair.queues['receive B'])[0]?.byteLength, 8);
    assert.equal(text(512, 1) + text(530, 7), 'ghefcdab');
    // struct ibv_sge: u64 addr, u32 length, u32 lkey, at a 16-byte boundary of the entry.
    const ring = pair.a.sendRing;
    const entry = new DataView(ring.buffer, ring.byteOf(index) + 64, 64);
    assert.equal((ring.byteOf(index) + 64) % 16, 0);
    for (const [i, segment] of segments.entries()) {
      assert.equal(entry.getBigUint64(i * 16, true), segment.address);
      assert.equal(entry.getUint32(i * 16 + 8, true), segment.length);
      assert.equal(entry.getUint32(i * 16 + 12, true), segment.lkey);
    }
  });

  it('takes inline payload from the entry, in place of the segments', () => {
    postReceives(pair.b, [pair.at(512, 64)]);
    const inline = Buffer.from('in the entry itself, up to the limit of sixty-four bytes in all.');
    assert.equal(inline.length, 64);
    postSends(pair.a, { opcode: WrOpcode.SEND, inline });
    assert.equal(drain(pair.queues['send A'])[0]?.byteLength, 64);
    assert.equal(drain(pair.queues['receive B'])[0]?.byteLength, 64);
    assert.equal(text(512, 64), inline.toString());
  });

  it('keeps its words right when indices pass 2^32 and the ring wraps', () => {
    // Indices are free-running: start both sides a little before the end.
    const start = 2 ** 32 - 3;
    assert.equal(
      pair.a.sendRing.buffer.byteLength,
      RING_HEADER_BYTES + 16 * pair.a.sendRing.strideBytes,
    );
    pair.a.sendRing.producer = start;
    pair.a.modify({ state: QpState.ERR });
    // The provider goes on from where the producer is.
    pair.a.modify({ state: QpState.RESET });
    assert.equal(pair.a.sendRing.consumer, start);
    pair.a.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    pair.a.modify({ state: QpState.ERR });
    for (let i = 0; i < 6; i++) addSend(pair.a.sendRing, { opcode: WrOpcode.SEND, segments: [] });
    pair.a.ringSendDoorbell();
    const flushed = drain(pair.queues['send A']);
    assert.deepEqual(
      flushed.map((c) => c.index),
      [0, 1, 2, 3, 4, 5].map((i) => (start + i) % 2 ** 32),
    );
    assert.deepEqual(
      flushed.map((c) => Number(c.cookie)),
      flushed.map((c) => c.index),
    );
  });
});
