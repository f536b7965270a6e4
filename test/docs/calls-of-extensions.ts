/** Rows of docs/dat-map.md, called: datagrams, queries without opening, collectives. */
import assert from 'node:assert/strict';
import { createRegistry, type Evd, type Ia, openIa, type UdEp } from 'dapl';
import { mock } from 'dapl/providers/mock';
import * as collectives from '../../samples/collectives/collectives.js';
import { type Group, joinGroup, leaveGroup } from '../../samples/collectives/group.js';
import { CONN_QUAL } from '../../plugins/testing/suite/peer.js';
import type { DatScene, RowCalls } from './dat-scene.js';

const SIZE = 3;

interface Datagrams {
  readonly from: UdEp;
  readonly to: UdEp;
  readonly evd: Evd;
}

/** An endpoint that serves, and one that sends. */
function datagrams({ pair }: DatScene): Datagrams {
  const evd = pair.passive.createEvd({ qlen: 16 });
  const pz = pair.passive.createPz();
  const to = pair.passive.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd });
  const from = pair.active.createUdEndpoint({ pz: pair.active.createPz() });
  to.serve({ connQual: CONN_QUAL });
  return { from, to, evd };
}

async function sendOne(scene: DatScene, send: (found: Datagrams) => Promise<void>): Promise<void> {
  const found = datagrams(scene);
  const { to, evd } = found;
  to.postRecv(scene.pair.passive.allocate(100, { pz: to.pz }).segment(), 1);
  await send(found);
  const { event } = await evd.wait();
  assert.ok(event.type === 'datagram' && event.cookie === 1);
  assert.equal(event.source?.address, scene.pair.active.address);
}

function whereTo({ pair }: DatScene): { address: string; connQual: number } {
  return { address: pair.passiveAddress, connQual: CONN_QUAL };
}

/** Every rank does the same, on arrays of four numbers. */
async function together(
  { fabric }: DatScene,
  work: (group: Group, data: Float64Array, result: Float64Array) => Promise<void>,
): Promise<Float64Array[]> {
  const addresses = Array.from({ length: SIZE }, (_, rank) => `192.0.2.${rank + 10}`);
  const ias = await Promise.all(addresses.map((address) => openIa(mock({ fabric, address }))));
  const groups = await Promise.all(ias.map((ia, rank) => joinGroup({ ia, rank, addresses })));
  const results = await Promise.all(
    groups.map(async (group) => {
      const data = new Float64Array(2 * SIZE).fill(group.rank + 1);
      const result = new Float64Array(2 * SIZE);
      await work(group, data, result);
      return result.slice();
    }),
  );
  await Promise.all(groups.map(leaveGroup));
  await Promise.all(ias.map((ia) => ia.close()));
  return results;
}

const block = (data: Float64Array): Float64Array => data.subarray(0, 2);

export const EXTENSION_CALLS: RowCalls = {
  dat_ib_post_send_ud: (scene) =>
    sendOne(scene, async ({ from, to }) => {
      const handle = await from.resolve(whereTo(scene));
      from.postSendUd([], handle, 5, 0);
      to.postRecv(scene.pair.passive.allocate(40, { pz: to.pz }).segment(), 2);
      from.postSendUdWithImmediate([], handle, 0, 7);
    }),
  dat_ib_post_recv_ud: async (scene) => {
    await sendOne(scene, async ({ from }) =>
      from.postSendUd([], await from.resolve(whereTo(scene))),
    );
    const { passive } = scene.pair;
    const to = passive.createUdEndpoint({ pz: passive.createPz() });
    const short = passive.allocate(39, { pz: to.pz }).segment();
    await scene.refuses(() => to.postRecv(short, 1), 'DAT_LENGTH_ERROR');
  },
  dat_ib_ud_ah_free: async (scene) => {
    const { from } = datagrams(scene);
    const handle = await from.resolve(whereTo(scene));
    handle.free();
    assert.ok(handle.isFreed);
    await scene.refuses(() => from.postSendUd([], handle), 'DAT_INVALID_HANDLE');
  },
  dat_ib_open_query: async ({ fabric }) => {
    const registry = createRegistry();
    const query = await registry.queryIa(mock({ fabric, address: '192.0.2.5' }));
    assert.equal(query.ia.iaAddress, '192.0.2.5');
  },
  dat_ib_close_query: async ({ fabric }) => {
    const registry = createRegistry({ plugins: [mock({ fabric, address: '192.0.2.5' })] });
    await registry.queryIa('mock');
    registry.unregister('mock');
  },
  dat_ib_collective_create_member: async ({ ia }) => {
    const group = await joinGroup({ ia, rank: 0, addresses: [ia.address] });
    assert.equal(group.size, 1);
  },
  dat_ib_collective_create_group: async ({ pair: { active, passive } }) => {
    const addresses = [active.address, passive.address];
    const join = (ia: Ia, rank: number): Promise<Group> => joinGroup({ ia, rank, addresses });
    const groups = await Promise.all([join(active, 0), join(passive, 1)]);
    assert.deepEqual(
      groups.map(({ size, rank }) => [size, rank]),
      [
        [2, 0],
        [2, 1],
      ],
    );
  },
  dat_ib_collective_free_member: async ({ ia }) => {
    const group = await joinGroup({ ia, rank: 0, addresses: [ia.address] });
    await leaveGroup(group);
    await ia.close();
  },
  dat_ib_collective_free_group: async ({ pair: { active, passive } }) => {
    const addresses = [active.address, passive.address];
    const join = (ia: Ia, rank: number): Promise<Group> => joinGroup({ ia, rank, addresses });
    const [one, other] = await Promise.all([join(active, 0), join(passive, 1)]);
    const memory = new Float64Array(1);
    await leaveGroup(one);
    await assert.rejects(collectives.broadcast(other, memory, 0));
  },
  dat_ib_collective_scatter: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.scatter(group, data, block(result), 1),
    );
    assert.deepEqual(
      all.map(([first]) => first),
      [2, 2, 2],
    );
  },
  dat_ib_collective_gather: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.gather(group, block(data), result, 0),
    );
    assert.deepEqual([...all[0]!], [1, 1, 2, 2, 3, 3]);
  },
  dat_ib_collective_allgather: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.allgather(group, block(data), result),
    );
    for (const result of all) assert.deepEqual([...result], [1, 1, 2, 2, 3, 3]);
  },
  dat_ib_collective_alltoall: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.alltoall(group, data, result),
    );
    for (const result of all) assert.deepEqual([...result], [1, 1, 2, 2, 3, 3]);
  },
  dat_ib_collective_reduce: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.reduce(group, data, result, 'SUM', 0),
    );
    assert.equal(all[0]![0], 6);
  },
  dat_ib_collective_allreduce: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.allreduce(group, data, result, 'SUM'),
    );
    assert.deepEqual(
      all.map(([first]) => first),
      [6, 6, 6],
    );
  },
  dat_ib_collective_reduce_scatter: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.reduceScatter(group, data, block(result), 'SUM'),
    );
    assert.deepEqual(
      all.map(([first]) => first),
      [6, 6, 6],
    );
  },
  dat_ib_collective_scan: async (scene) => {
    const all = await together(scene, (group, data, result) =>
      collectives.scan(group, data, result, 'SUM'),
    );
    assert.deepEqual(
      all.map(([first]) => first),
      [1, 3, 6],
    );
  },
  dat_ib_collective_broadcast: async (scene) => {
    const all = await together(scene, async (group, data, result) => {
      await collectives.broadcast(group, data, 2);
      result.set(data);
    });
    assert.deepEqual(
      all.map(([first]) => first),
      [3, 3, 3],
    );
  },
  dat_ib_collective_barrier: (scene) => together(scene, (group) => collectives.barrier(group)),
};
