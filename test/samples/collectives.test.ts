import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { connect } from 'dapl/flow';
import { offerChannel } from 'dapl/flow/channel';
import { Fabric, mock } from 'dapl/providers/mock';
import * as collectives from '../../samples/collectives/collectives.js';
import {
  type Group,
  joinGroup,
  leaveGroup,
  receive,
  send,
} from '../../samples/collectives/group.js';

const SIZES = [1, 2, 3, 5, 8];

interface World {
  readonly ias: readonly Ia[];
  readonly groups: readonly Group[];
}

async function world(size: number): Promise<World> {
  const fabric = new Fabric({ seed: size, autoRun: true });
  const addresses = Array.from({ length: size }, (_, rank) => `192.0.2.${rank + 1}`);
  const ias = await Promise.all(addresses.map((address) => openIa(mock({ fabric, address }))));
  const groups = await Promise.all(ias.map((ia, rank) => joinGroup({ ia, rank, addresses })));
  opened.push(...ias);
  return { ias, groups };
}

/** Adapters to close, also those of a test that has failed. */
const opened: Ia[] = [];

async function close({ ias, groups }: World): Promise<void> {
  await Promise.all(groups.map(leaveGroup));
  await Promise.all(ias.map((ia) => ia.close()));
}

/** Runs the same on every rank at once; returns what each has. */
function each<T>({ groups }: World, run: (group: Group) => Promise<T>): Promise<T[]> {
  return Promise.all(groups.map(run));
}

/** An array that says whose it is. */
function own(group: Group, length: number): Float64Array {
  const data = new Float64Array(length);
  for (let i = 0; i < length; i++) data[i] = 1000 * group.rank + i;
  return data;
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const LENGTH = 1500;

describe('collectives over connected endpoints', () => {
  afterEach(() => Promise.all(opened.splice(0).map((ia) => ia.close())));

  for (const size of SIZES) {
    it(`broadcast, reduce, allreduce and scan with ${size} ranks, from every root`, async () => {
      const here = await world(size);
      for (const root of range(size)) {
        const got = await each(here, async (group) => {
          const data = own(group, LENGTH);
          await collectives.broadcast(group, data, root);
          return [...data];
        });
        for (const data of got)
          assert.deepEqual(
            data,
            range(LENGTH).map((i) => 1000 * root + i),
          );
        const sums = await each(here, async (group) => {
          const result = new Float64Array(LENGTH);
          await collectives.reduce(group, own(group, LENGTH), result, 'SUM', root);
          return [...result];
        });
        const total = range(LENGTH).map((i) =>
          range(size).reduce((sum, rank) => sum + 1000 * rank + i, 0),
        );
        for (const [rank, sum] of sums.entries()) {
          assert.deepEqual(sum, rank === root ? total : range(LENGTH).map(() => 0));
        }
      }
      const all = await each(here, async (group) => {
        const [most, before] = [new Float64Array(7), new Float64Array(7)];
        await collectives.allreduce(group, own(group, 7), most, 'MAX');
        await collectives.scan(group, own(group, 7), before, 'SUM');
        return [most[3], before[3]];
      });
      for (const [rank, got] of all.entries()) {
        const prefix = range(rank + 1).reduce((sum, other) => sum + 1000 * other + 3, 0);
        assert.deepEqual(got, [1000 * (size - 1) + 3, prefix]);
      }
      await close(here);
    });

    it(`gather, scatter, allgather, alltoall and reduceScatter with ${size} ranks`, async () => {
      const here = await world(size);
      const root = size - 1;
      const got = await each(here, async (group) => {
        const block = own(group, 3);
        const whole = own(group, 3 * size);
        const make = (length: number): Float64Array => new Float64Array(length);
        const [gathered, part, everywhere] = [make(3 * size), make(3), make(3 * size)];
        const [turned, shares] = [make(3 * size), make(3)];
        await collectives.gather(group, block, gathered, root);
        await collectives.scatter(group, whole, part, root);
        await collectives.allgather(group, block, everywhere);
        await collectives.alltoall(group, whole, turned);
        await collectives.reduceScatter(group, whole, shares, 'SUM');
        return [gathered, part, everywhere, turned, shares].map((data) => [...data]);
      });
      const blocks = range(size).flatMap((rank) => [0, 1, 2].map((i) => 1000 * rank + i));
      for (const [rank, [gathered, part, everywhere, turned, shares]] of got.entries()) {
        const at = (i: number): number => 3 * rank + i;
        assert.deepEqual(gathered, rank === root ? blocks : blocks.map(() => 0));
        assert.deepEqual(
          part,
          [0, 1, 2].map((i) => 1000 * root + at(i)),
        );
        assert.deepEqual(everywhere, blocks);
        const columns = range(size).flatMap((other) => [0, 1, 2].map((i) => 1000 * other + at(i)));
        assert.deepEqual(turned, columns);
        const share = (i: number): number =>
          range(size).reduce((sum, other) => sum + 1000 * other + at(i), 0);
        assert.deepEqual(shares, [0, 1, 2].map(share));
      }
      await close(here);
    });
  }

  it('barrier: nobody leaves before everybody has come', async () => {
    const here = await world(5);
    let come = 0;
    await each(here, async (group) => {
      await new Promise((resolve) => setTimeout(resolve, 5 * group.rank));
      come++;
      await collectives.barrier(group);
      assert.equal(come, 5);
    });
    await close(here);
  });

  it('every type and reduction, wrapping as the type does', async () => {
    const here = await world(3);
    const results = await each(here, async (group) => {
      const { rank } = group;
      const wide = new BigUint64Array(1);
      const narrow = new Uint8Array(1);
      const [wideSum, narrowSum] = [new BigUint64Array(1), new Uint8Array(1)];
      wide[0] = 2n ** 63n + BigInt(rank);
      narrow[0] = 100 + rank;
      const seen: unknown[] = [];
      for (const reduction of ['SUM', 'PROD', 'MIN', 'MAX', 'BAND', 'BOR', 'BXOR'] as const) {
        await collectives.allreduce(group, wide, wideSum, reduction);
        await collectives.allreduce(group, narrow, narrowSum, reduction);
        seen.push(wideSum[0], narrowSum[0]);
      }
      return seen;
    });
    const top = 2n ** 63n;
    for (const seen of results) {
      assert.deepEqual(seen.slice(0, 2), [BigInt.asUintN(64, 3n * top + 3n), 303 % 256]);
      assert.deepEqual(seen.slice(4, 8), [top, 100, top + 2n, 102]);
      assert.deepEqual(seen.slice(8), [top, 100, top + 3n, 103, BigInt.asUintN(64, top + 3n), 103]);
    }
    await close(here);
  });

  it('a rank that is gone fails the others, and does not hang them', async () => {
    const here = await world(3);
    const [first, second, third] = here.groups as [Group, Group, Group];
    const ending = Promise.allSettled([first, second].map((group) => collectives.barrier(group)));
    await leaveGroup(third);
    for (const end of await ending) {
      assert.equal(end.status, 'rejected');
      assert.match(String(end.reason), /rank 2: .*DAT_CONN_ENDED/);
    }
    await assert.rejects(collectives.barrier(third), /rank [01]: .*DAT_CONN_CLOSED/);
    await close({ ...here, groups: [first, second] });
  });

  it('what a rank has sent is there when it has left', async () => {
    const here = await world(2);
    const [first, second] = here.groups as [Group, Group];
    await send(second, 0, Int16Array.of(5, -6));
    await leaveGroup(second);
    const got = new Int16Array(2);
    await receive(first, 1, got);
    assert.deepEqual([...got], [5, -6]);
    await close({ ...here, groups: [first] });
  });

  it('arrays longer than all receive buffers of a rank', async () => {
    const here = await world(2);
    const sums = await each(here, async (group) => {
      const sum = new Float64Array(100_000);
      await collectives.allreduce(group, own(group, 100_000), sum, 'SUM');
      return [sum[0], sum[99_999]];
    });
    assert.deepEqual(sums, [
      [1000, 1000 + 2 * 99_999],
      [1000, 1000 + 2 * 99_999],
    ]);
    await close(here);
  });

  it('refuses to send to itself, and to a rank that is none', async () => {
    const here = await world(2);
    const [first] = here.groups as [Group];
    for (const rank of [0, 2, -1]) {
      const notAnother = { name: 'RangeError', message: `rank ${rank} of 2 is not another one` };
      await assert.rejects(send(first, rank, new Uint8Array(1)), notAnother);
      await assert.rejects(receive(first, rank, new Uint8Array(1)), notAnother);
    }
    await close(here);
  });

  it('sends a peer away that says it is a rank which it cannot be', async () => {
    const fabric = new Fabric({ seed: 9, autoRun: true });
    const addresses = ['192.0.2.1', '192.0.2.2'];
    const open = (address: string): Promise<Ia> => openIa(mock({ fabric, address }));
    const [one, two, stranger] = await Promise.all([...addresses, '192.0.2.9'].map(open));
    opened.push(one!, two!, stranger!);
    const joined = joinGroup({ ia: one!, rank: 0, addresses });
    for (const rank of [0, 2]) {
      const introduction = Uint8Array.of(0, 0, 0, rank);
      const to = { address: '192.0.2.1', port: 7600 };
      const conn = await connect(stranger!, { ...to, ...offerChannel({}, introduction) });
      await conn.closed;
    }
    const groups = await Promise.all([joined, joinGroup({ ia: two!, rank: 1, addresses })]);
    assert.deepEqual(
      groups.map(({ rank, size }) => [rank, size]),
      [
        [0, 2],
        [1, 2],
      ],
    );
    await Promise.all(groups.map(leaveGroup));
  });

  it('arrays of wrong sizes are refused', async () => {
    const here = await world(2);
    await each(here, async (group) => {
      const [two, three] = [new Int32Array(2), new Int32Array(3)];
      await assert.rejects(collectives.allgather(group, two, three), RangeError);
      await assert.rejects(collectives.alltoall(group, three, three), RangeError);
      await assert.rejects(collectives.reduce(group, two, three, 'SUM'), RangeError);
    });
    const [first, second] = here.groups as [Group, Group];
    await send(first, 1, new Int32Array(2));
    await assert.rejects(receive(second, 0, new Int32Array(3)), /8 bytes of rank 0: .* has 12/);
    await close(here);
  });
});
