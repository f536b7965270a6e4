// Every operation through the rings of two queue pairs of one process, over a real device.
//   node verbs-loop.js [device]
// One line per check; exit code 1 when one of them fails.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Access,
  nameOf,
  QpState,
  QpType,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/wire/ib.js';
import { nextRkey } from '../../../core/spi/layout/rkey.js';
import { connect, open } from '../../fake-verbs/connect.js';
import { postReceives, postSends, writeReceive } from '../../fake-verbs/work.js';
import {
  at,
  brief,
  check,
  connected,
  cqs,
  device,
  events,
  failures,
  memory,
  notified,
  ok,
  pair,
  pd,
  put,
  region,
  remote,
  take,
  text,
} from './verbs-rig.js';

const QKEY = 0x11111111;

console.log(
  JSON.stringify(
    { attributes: device.attributes, capabilities: [...device.capabilities], gids: device.gids },
    (_, value: unknown) => (typeof value === 'bigint' ? value.toString(16) : value),
  ),
);

await check('RC: every opcode', () =>
  connected(QpType.RC, async (a, b) => {
    put(0, 'hello world');
    const view = new DataView(memory.buffer);
    view.setBigUint64(4096, 41n, true);
    postReceives(b, [at(1024, 16)], [at(1040, 16)], [at(1056, 16)], [at(1100, 64)]);
    postSends(
      a,
      { opcode: WrOpcode.SEND, segments: [at(0, 5)] },
      { opcode: WrOpcode.SEND_WITH_IMM, segments: [at(6, 5)], extra: 0x01020304 },
      { opcode: WrOpcode.RDMA_WRITE, segments: [at(0, 5), at(5, 6)], remote: remote(2048) },
      {
        opcode: WrOpcode.RDMA_WRITE_WITH_IMM,
        segments: [at(0, 5)],
        remote: remote(2100),
        extra: 9,
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
      { opcode: WrOpcode.SEND, inline: Buffer.from('inline') },
    );
    const sent = await take(cqs.a, 8);
    ok(sent);
    assert.deepEqual(
      sent.map((c) => c.byteLength),
      [5, 5, 11, 5, 11, 8, 8, 6],
    );
    const received = await take(cqs.b, 4);
    ok(received);
    assert.deepEqual(
      received.map((c) => [c.opcode, c.flags, c.extra, c.byteLength, c.context]),
      [
        [WcOpcode.RECV, 0, 0, 5, 2],
        [WcOpcode.RECV, WcFlags.WITH_IMM, 0x01020304, 5, 2],
        [WcOpcode.RECV_RDMA_WITH_IMM, WcFlags.WITH_IMM, 9, 5, 2],
        [WcOpcode.RECV, 0, 0, 6, 2],
      ],
    );
    assert.equal(text(3000, 11), 'hello world');
    assert.equal(text(1100, 6), 'inline');
    assert.deepEqual(
      [4104, 4112, 4096].map((offset) => view.getBigUint64(offset, true)),
      [41n, 2n ** 40n + 41n, 7n],
    );
  }),
);

await check('RC: 1 MiB in one WRITE', () =>
  connected(QpType.RC, async (a) => {
    const HALF = memory.length / 2;
    memory.fill(7, 0, HALF);
    memory.fill(0, HALF);
    postSends(a, {
      opcode: WrOpcode.RDMA_WRITE,
      segments: [at(0, HALF)],
      remote: remote(HALF),
    });
    ok(await take(cqs.a, 1));
    assert.ok(memory.subarray(HALF).every((byte) => byte === 7));
  }),
);

await check('UC: SEND and WRITE', () =>
  connected(QpType.UC, async (a, b) => {
    put(0, 'unreliable');
    postReceives(b, [at(1024, 64)]);
    postSends(
      a,
      { opcode: WrOpcode.SEND, segments: [at(0, 10)] },
      { opcode: WrOpcode.RDMA_WRITE, segments: [at(0, 10)], remote: remote(2048) },
    );
    ok(await take(cqs.a, 2));
    ok(await take(cqs.b, 1));
    assert.equal(text(1024, 10), 'unreliable');
  }),
);

await check('UD: datagrams with immediate, GRH and source', async () => {
  const a = pair(QpType.UD, 'a');
  const b = pair(QpType.UD, 'b');
  open(device, a, QKEY);
  open(device, b, QKEY);
  const [gid = new Uint8Array(16)] = device.gids;
  const ah = device.createAddressHandle(pd, { gid, localGidIndex: 0 });
  postReceives(b, [at(1024, 128)], [at(2048, 128)]);
  put(0, 'datagram');
  const to = { ah: ah.handle, qpn: b.qpn, qkey: QKEY };
  postSends(
    a,
    { opcode: WrOpcode.SEND, segments: [at(0, 8)], to },
    { opcode: WrOpcode.SEND_WITH_IMM, segments: [at(0, 4)], to, extra: 77 },
  );
  ok(await take(cqs.a, 2));
  const received = await take(cqs.b, 2);
  ok(received);
  assert.deepEqual(
    received.map((c) => [c.flags & ~WcFlags.WITH_IMM, c.extra, c.byteLength, c.sourceQpn]),
    [
      [WcFlags.GRH, 0, 48, a.qpn],
      [WcFlags.GRH, 77, 44, a.qpn],
    ],
  );
  assert.equal(text(1024 + 40, 8), 'datagram');
  a.destroy();
  b.destroy();
  ah.destroy();
});

for (const type of [1, 2] as const) {
  await check(`RC: memory window type ${type}, bound, used, invalidated, destroyed`, () =>
    connected(QpType.RC, async (a, b) => {
      const window = device.createMemoryWindow(pd, type);
      const rkey = nextRkey(window.rkey);
      const bind = {
        address: region.iova + 8192n,
        length: 64n,
        window: window.handle,
        regionLkey: region.lkey,
        access: Access.REMOTE_WRITE | Access.REMOTE_READ,
        rkey,
      };
      postSends(b, { opcode: WrOpcode.BIND_MW, bind });
      ok(await take(cqs.b, 1));
      assert.equal(window.rkey, rkey);
      put(0, 'through');
      const write = {
        opcode: WrOpcode.RDMA_WRITE,
        segments: [at(0, 7)],
        remote: { address: bind.address, rkey },
      };
      postSends(a, write);
      ok(await take(cqs.a, 1));
      assert.equal(text(8192, 7), 'through');
      assert.throws(() => region.destroy(), { code: 'EBUSY' });
      if (type === 2) {
        postReceives(b, [at(1024, 16)]);
        postSends(a, { opcode: WrOpcode.SEND_WITH_INV, segments: [at(0, 7)], extra: rkey });
        ok(await take(cqs.a, 1));
        const [received] = await take(cqs.b, 1);
        assert.deepEqual([received?.flags, received?.extra], [WcFlags.WITH_INV, rkey]);
        const again = { ...bind, rkey: nextRkey(rkey) };
        postSends(
          b,
          { opcode: WrOpcode.BIND_MW, bind: again, flags: 0 },
          { opcode: WrOpcode.LOCAL_INV, extra: again.rkey },
        );
        const done = await take(cqs.b, 1);
        ok(done);
        assert.deepEqual(
          done.map((c) => c.index),
          [2],
        );
        assert.equal(window.rkey, again.rkey);
      }
      postSends(a, write);
      const [refused] = type === 2 ? await take(cqs.a, 1) : [undefined];
      if (type === 2) assert.equal(refused?.status, WcStatus.REM_ACCESS_ERR);
      else ok(await take(cqs.a, 1));
      window.destroy();
    }),
  );
}

await check('RC: a notification for what comes after arming, and states', () =>
  connected(QpType.RC, async (a, b) => {
    notified.length = 0;
    cqs.b.arm(false);
    postReceives(b, [at(1024, 16)], [at(1024, 16)]);
    postSends(a, { opcode: WrOpcode.SEND, segments: [at(0, 4)] });
    ok(await take(cqs.a, 1));
    for (let i = 0; i < 400 && notified.length === 0; i++) await sleep(5);
    assert.deepEqual(notified, ['b']);
    assert.equal(b.state, QpState.RTS);
    const { pathMtuBytes, destinationQpn, addressVector, ...rest } = b.query();
    console.log(JSON.stringify(rest));
    assert.equal(destinationQpn, a.qpn);
    assert.equal(pathMtuBytes, device.attributes.activeMtuBytes);
    assert.deepEqual(addressVector?.gid, device.gids[0]);
    b.modify({ state: QpState.ERR });
    const flushed = await take(cqs.b, 2);
    assert.deepEqual(
      flushed.map((c) => [c.index, c.status]),
      [
        [0, WcStatus.SUCCESS],
        [1, WcStatus.WR_FLUSH_ERR],
      ],
    );
    assert.equal(b.state, QpState.ERR);
    b.modify({ state: QpState.RESET });
    assert.throws(() => b.modify({ state: QpState.RTR }), /RESET->RTR/);
  }),
);

await check('RC: a wrong key completes in error, and the rest is flushed in order', () =>
  connected(QpType.RC, async (a, b) => {
    events.length = 0;
    postReceives(a, [at(1024, 8)]);
    const wrong = { address: region.iova, rkey: region.rkey ^ 0x5500 };
    postSends(
      a,
      { opcode: WrOpcode.RDMA_WRITE, segments: [at(0, 8)], remote: wrong, flags: 0 },
      { opcode: WrOpcode.SEND, segments: [at(0, 8)], flags: 0 },
      { opcode: WrOpcode.SEND, segments: [at(0, 8)] },
    );
    const done = await take(cqs.a, 4);
    console.log(JSON.stringify(done.map(brief)));
    assert.deepEqual(
      done.filter((c) => c.opcode !== WcOpcode.RECV).map((c) => [c.index, c.status]),
      [
        [0, WcStatus.REM_ACCESS_ERR],
        [1, WcStatus.WR_FLUSH_ERR],
        [2, WcStatus.WR_FLUSH_ERR],
      ],
    );
    assert.equal(a.state, QpState.ERR);
    await sleep(50);
    console.log(`events ${JSON.stringify(events)}, peer in ${nameOf(QpState, b.state)}`);
  }),
);

await check('RC: what the driver refuses completes in its place', () =>
  connected(QpType.RC, async (a, b) => {
    postReceives(b, [at(1024, 8)]);
    const tooMany = Array.from({ length: 4 }, () => at(0, 8));
    postSends(
      a,
      { opcode: WrOpcode.SEND, segments: [at(0, 8)] },
      { opcode: 99 },
      { opcode: WrOpcode.SEND, segments: tooMany },
    );
    const done = await take(cqs.a, 3);
    console.log(JSON.stringify(done.map(brief)));
    assert.deepEqual(
      done.map((c) => c.index),
      [0, 1, 2],
    );
    assert.equal(done[1]?.status, WcStatus.LOC_QP_OP_ERR);
  }),
);

await check('SRQ: slots in any order, limit event, resize', async () => {
  const srq = device.createSharedReceiveQueue?.({
    pd,
    maxWr: 8,
    maxSge: 2,
    onEvent: (event) => events.push(['srq', event]),
  });
  assert.ok(srq);
  const a = pair(QpType.RC, 'a');
  const b = pair(QpType.RC, 'b', { srq });
  connect(device, a, b);
  connect(device, b, a);
  events.length = 0;
  const submit = (...order: number[]): void => {
    const { slots, submissions } = srq.ring;
    for (const slot of order) {
      writeReceive(slots, slot, [at(1024 + slot * 16, 16)], BigInt(100 + slot));
      submissions.words[submissions.wordOf(submissions.producer)] = slot;
      submissions.producer += 1;
    }
    srq.ringDoorbell();
  };
  submit(5, 0, 7);
  srq.setLimit(2);
  const send = { opcode: WrOpcode.SEND, segments: [at(0, 3)] };
  postSends(a, send, send);
  ok(await take(cqs.a, 2));
  const got = await take(cqs.b, 2);
  ok(got);
  assert.deepEqual(
    got.map((c) => [c.index, c.cookie, c.srqn === srq.srqn]),
    [
      [5, 105n, true],
      [0, 100n, true],
    ],
  );
  for (let i = 0; i < 400 && events.length === 0; i++) await sleep(5);
  assert.deepEqual(events, [['srq', 15]]);
  try {
    srq.resize(32);
    submit(20);
    postSends(a, send, send);
    assert.deepEqual(
      (await take(cqs.b, 2)).map((c) => c.index),
      [7, 20],
    );
  } catch (error) {
    console.log(`resize: ${String(error)}`);
  }
  assert.throws(() => srq.destroy(), { code: 'EBUSY' });
  a.destroy();
  b.destroy();
  srq.destroy();
});

await check('CQ resize; EBUSY; objects; close', async () => {
  try {
    cqs.a.resize(256);
  } catch (error) {
    console.log(`CQ resize: ${String(error)}`);
  }
  assert.throws(() => pd.destroy(), { code: 'EBUSY' });
  const other = device.createProtectionDomain();
  other.destroy();
  assert.throws(() => pd.registerMemory(Buffer.from('x'), 0), { code: 'EINVAL' });
  await device.close();
});
console.log(failures.length === 0 ? 'all checks passed' : `${failures.length} checks failed`);
process.exitCode = failures.length === 0 ? 0 : 1;
