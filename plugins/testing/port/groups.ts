import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { type Gid, GROUP_BIT, gidFromIp, ipFromGid, isIpv4Gid } from 'dapl/spi';
import { type Bench, gidOf, packet, portGroup, wireBytes } from './bench-pair.js';
import { describePackets, psnOf, receiveSome, sendAll } from './harness.js';

/** A group that nothing else uses, of the family of the ports: RFC 2365 6.2, RFC 4291 2.7. */
function freshGroup({ a }: Bench): Gid {
  const [high, low] = [randomInt(1, 0xffff), randomInt(1, 0xffff)];
  if (!isIpv4Gid(gidOf(a))) return gidFromIp(`ff15::${high.toString(16)}:${low.toString(16)}`);
  return gidFromIp(`239.${high & 63}.${low >> 8}.${low & 255}`);
}

export const groups = portGroup('Groups', (claim) => {
  const needs = ['groups'] as const;

  claim(
    'delivers what is sent to a group, with its number and its sender, as long as it is joined',
    async (bench) => {
      const { a, b } = bench;
      const [first, second] = [freshGroup(bench), freshGroup(bench)];
      const numbers = [first, second].map((each) => b.joinGroup!(each, 0));
      assert.notEqual(numbers[0], numbers[1]);
      const [path, other] = [a.addPath(first, 0), a.addPath(second, 0)];
      for (const [to, number] of [
        [path, numbers[0]!],
        [other, numbers[1]!],
      ] as const) {
        const specs = [0, 1, 63, 1024].map((bytes, psn) => ({
          ...packet(bench, psn, bytes),
          path: to,
        }));
        await sendAll(a, specs);
        const received = await receiveSome(b, specs.length);
        for (const [i, { bytes, localGidIndex, sourceGid }] of received.entries()) {
          assert.deepEqual(bytes, wireBytes(bench, specs[i]!));
          assert.equal(localGidIndex, (GROUP_BIT + number) >>> 0);
          assert.equal(ipFromGid(sourceGid), ipFromGid(gidOf(a)));
        }
        assert.equal(received.length, specs.length);
      }
      b.leaveGroup!(numbers[0]!);
      await sendAll(a, [{ ...packet(bench, 5, 8), path }]);
      await sendAll(a, [{ ...packet(bench, 6, 8), path: other }]);
      assert.deepEqual((await receiveSome(b, 1)).map(psnOf), [6]);
      const again = b.joinGroup!(first, 0);
      await sendAll(a, [{ ...packet(bench, 7, 8), path }]);
      const [last] = await receiveSome(b, 1);
      assert.deepEqual([last && psnOf(last), last?.localGidIndex], [7, (GROUP_BIT + again) >>> 0]);
    },
    needs,
  );

  claim(
    'delivers a train to a group beside packets to the port itself',
    async (bench) => {
      const { a, b, path } = bench;
      const group = freshGroup(bench);
      b.joinGroup!(group, 0);
      const toGroup = a.addPath(group, 0);
      const specs = Array.from({ length: 60 }, (_, psn) => ({
        ...packet(bench, psn, 512),
        path: psn % 20 < 10 ? path : toGroup,
      }));
      await sendAll(a, specs);
      const received = await receiveSome(b, specs.length);
      const ofGroup = received.filter(({ localGidIndex }) => localGidIndex >= GROUP_BIT);
      assert.deepEqual(
        ofGroup.map(psnOf),
        specs.flatMap((each, psn) => (each.path === toGroup ? [psn] : [])),
      );
      assert.equal(received.length, specs.length);
    },
    needs,
  );

  claim(
    'refuses an address that it has not, leaves what is none, and ends memberships when closed',
    async (bench) => {
      const { a, b } = bench;
      const group = freshGroup(bench);
      assert.throws(() => b.joinGroup!(group, b.gids.length), RangeError);
      b.leaveGroup!(77);
      const path = a.addPath(group, 0);
      describePackets(a, [{ ...packet(bench, 1, 8), path }]);
      assert.equal(a.send(0, 1), 1, 'a group without members is no error');
      b.joinGroup!(group, 0);
      await b.close();
      b.leaveGroup!(0);
    },
    needs,
  );
});
