/** Unreliable connections and datagrams, without packet loss. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import {
  type Gid,
  gidFromIp,
  GRH_LENGTH,
  grhAddresses,
  isIpv4Gid,
  QpState,
  QpType,
  WcOpcode,
  WrOpcode,
} from 'dapl/spi';
import { type End, QKEY } from './end.js';
import { deviceGroup, type World } from './world.js';

/** The queue pair number that addresses all members of a group (IBTA 10.5.1). */
const GROUP_QPN = 0xffffff;

function datagrams(world: World): { readonly a: End; readonly b: End } {
  const { a, b } = world.ends({ type: QpType.UD });
  for (const end of [a, b]) {
    end.qp.modify({ state: QpState.RTR });
    end.qp.modify({ state: QpState.RTS, sendPsn: 1 });
  }
  return { a, b };
}

/** A group that nothing else uses, of the family of an address: RFC 2365 6.2, RFC 4291 2.7. */
function freshGroup(gid: Gid): Gid {
  const [high, low] = [randomInt(1, 0xffff), randomInt(1, 0xffff)];
  if (!isIpv4Gid(gid)) return gidFromIp(`ff15::${high.toString(16)}:${low.toString(16)}`);
  return gidFromIp(`239.${high & 63}.${low >> 8}.${low & 255}`);
}

export const unreliable = deviceGroup('Unreliable', (claim) => {
  claim(
    'a connection without acknowledgements carries sends and writes',
    async (world) => {
      const { a, b } = world.connected({ type: QpType.UC });
      a.fill(0, 5000, 3);
      b.receive({ offset: 8192, length: 8192 });
      const pieces = [{ offset: 0, length: 5000 }];
      const remote = { address: b.address(32_768), rkey: b.region.rkey };
      a.send({ opcode: WrOpcode.RDMA_WRITE, pieces, remote }, { pieces });
      assert.deepEqual(await world.statuses(a, 2), ['SUCCESS', 'SUCCESS']);
      assert.equal((await world.completions(b, 1))[0]?.bytes, 5000);
      assert.deepEqual(b.memory.slice(8192, 13_192), a.memory.slice(0, 5000));
      assert.deepEqual(b.memory.slice(32_768, 37_768), a.memory.slice(0, 5000));
    },
    ['uc'],
  );

  claim(
    'a message that finds no receive, or one too small, is gone, and the next one comes',
    async (world) => {
      const { a, b } = world.connected({ type: QpType.UC });
      const pieces = [{ offset: 0, length: 64 }];
      a.send({ pieces });
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
      await world.quiet();
      b.receive({ offset: 0, length: 8, cookie: 1 }, { offset: 64, length: 64, cookie: 2 });
      a.send({ pieces }, { pieces: [{ offset: 0, length: 8 }] }, { pieces });
      assert.deepEqual(await world.statuses(a, 3), ['SUCCESS', 'SUCCESS', 'SUCCESS']);
      assert.deepEqual(
        (await world.completions(b, 2)).map(({ cookie, bytes }) => [cookie, bytes]),
        [
          [1, 8],
          [2, 64],
        ],
      );
    },
    ['uc'],
  );

  claim(
    'a request that cannot be sent stops sending until RTS, and leaves receiving alone',
    async (world) => {
      const { a, b } = world.connected({ type: QpType.UC });
      const pieces = [{ offset: 0, length: 8 }];
      const bad = [{ ...pieces[0]!, lkey: a.region.lkey ^ 0x5a5a }];
      a.receive({ offset: 0, length: 64, cookie: 5 });
      a.send({ pieces: bad }, { pieces });
      assert.deepEqual(await world.statuses(a, 2), ['LOC_PROT_ERR', 'WR_FLUSH_ERR']);
      assert.equal(a.qp.state, QpState.SQE);
      b.send({ pieces });
      assert.deepEqual(
        (await world.completions(a, 1)).map(({ status, cookie }) => [status, cookie]),
        [[0, 5]],
      );
      a.qp.modify({ state: QpState.RTS });
      b.receive({ offset: 0, length: 64 });
      a.send({ pieces });
      assert.deepEqual(await world.statuses(b, 2), ['SUCCESS', 'SUCCESS']);
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
    },
    ['uc'],
  );

  claim(
    'a datagram comes with room for a GRH in front',
    async (world) => {
      const { a, b } = datagrams(world);
      const vector = { gid: world.passive.gids[0]!, localGidIndex: 0 };
      const { handle } = world.active.createAddressHandle(a.pd, vector);
      a.fill(0, 100, 6);
      b.receive({ offset: 0, length: 256 });
      const to = { handle, qpn: b.qp.qpn, qkey: QKEY };
      a.send({ pieces: [{ offset: 0, length: 100 }], to });
      const [received] = await world.completions(b, 1);
      assert.deepEqual([received?.opcode, received?.bytes], [WcOpcode.RECV, 100 + GRH_LENGTH]);
      assert.deepEqual(b.memory.slice(GRH_LENGTH, GRH_LENGTH + 100), a.memory.slice(0, 100));
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
    },
    ['ud'],
  );

  claim(
    'a datagram with another Q_Key does not come in',
    async (world) => {
      const { a, b } = datagrams(world);
      const vector = { gid: world.passive.gids[0]!, localGidIndex: 0 };
      const { handle } = world.active.createAddressHandle(a.pd, vector);
      b.receive({ offset: 0, length: 256 });
      const to = { handle, qpn: b.qp.qpn, qkey: QKEY + 1 };
      a.send({ pieces: [{ offset: 0, length: 10 }], to });
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
      await world.quiet();
      assert.deepEqual(b.take(), []);
    },
    ['ud'],
  );

  claim(
    'a datagram to a group reaches all that are attached, on its own device too',
    async (world) => {
      const { a, b } = datagrams(world);
      const { a: c } = datagrams(world);
      const group = freshGroup(world.active.gids[0]!);
      const { handle } = world.active.createAddressHandle(a.pd, { gid: group, localGidIndex: 0 });
      const tell = (): void =>
        a.send({ pieces: [{ offset: 0, length: 16 }], to: { handle, qpn: GROUP_QPN, qkey: QKEY } });
      a.fill(0, 16, 5);
      for (const end of [a, b, c]) {
        end.receive({ offset: 1024, length: 256 }, { offset: 2048, length: 256 });
      }
      assert.throws(() => c.qp.detachMulticast!(group), { code: 'EINVAL' });
      for (const end of [b, c, c]) end.qp.attachMulticast!(group);
      tell();
      for (const end of [b, c]) {
        assert.equal((await world.completions(end, 1))[0]?.bytes, 16 + GRH_LENGTH);
        const area = end.memory.subarray(1024, 1024 + GRH_LENGTH);
        assert.deepEqual(grhAddresses(area)?.destination, group);
      }
      b.qp.detachMulticast!(group);
      tell();
      await world.completions(c, 1);
      assert.deepEqual(await world.statuses(a, 2), ['SUCCESS', 'SUCCESS']);
      await world.quiet();
      assert.deepEqual([...a.take(), ...b.take(), ...c.take()], []);
    },
    ['ud', 'multicast'],
  );
});
