/** Rows of docs/dat-map.md, called: endpoints and the IB extensions on them. */
import assert from 'node:assert/strict';
import { AsyncErrorReason, CompletionFlags, MemPrivileges } from 'dapl';
import { CONN_QUAL, textOf, waiting } from '../../plugins/testing/suite/peer.js';
import type { RowCalls } from './dat-scene.js';

const { ALL, REMOTE_ATOMIC } = MemPrivileges;

export const ENDPOINT_CALLS: RowCalls = {
  dat_ep_create: async (scene) => {
    const { ia, pz } = scene.apart.active;
    const ep = ia.createEndpoint({ pz });
    assert.equal(typeof ep.completions$.subscribe, 'function');
    assert.equal(typeof ep.connection$.subscribe, 'function');
    ep.free();
  },
  dat_ep_create_with_srq: async (scene) => {
    const { active } = scene.apart;
    const srq = active.ia.createSrq({ pz: active.ia.createPz(), maxRecvDtos: 1 });
    const ep = active.ia.createEndpoint({ pz: active.pz, srq });
    assert.equal(ep.srq, srq);
    await scene.refuses(() => ep.postRecv([]), 'DAT_INVALID_STATE_SRQ_IN_USE');
  },
  dat_ep_query: (scene) => {
    const { ep, evd } = scene.apart.active;
    assert.deepEqual([ep.query().state, ep.query().recvEvd], ['UNCONNECTED', evd]);
  },
  dat_ep_modify: async (scene) => {
    const { ep } = scene.apart.active;
    ep.modify({ attributes: { maxRecvDtos: 5 } });
    const bad = { attributes: { maxRecvDtos: 7, maxRequestDtos: -1 } };
    await scene.refuses(() => ep.modify(bad), 'DAT_INVALID_PARAMETER');
    assert.equal(ep.attributes.maxRecvDtos, 5);
  },
  dat_ep_connect: async (scene) => {
    const { active, passive } = scene.apart;
    const to = { address: scene.pair.passiveAddress, connQual: CONN_QUAL };
    const privateData = new Uint8Array(57);
    const long = await scene.refuses(
      () => active.ep.connect({ ...to, privateData }),
      'DAT_INVALID_ARG5',
    );
    assert.match(long.message, /56/);
    scene.listen(passive, CONN_QUAL);
    active.ep.connect({ ...to, timeoutMs: Infinity });
    (await passive.request()).accept(passive.ep);
    await active.expect('ESTABLISHED');
  },
  dat_ep_dup_connect: async (scene) => {
    const { active, passive } = await scene.connected();
    scene.listen(passive, CONN_QUAL);
    const ep = active.endpoint();
    ep.dupConnect(active.ep, {});
    (await passive.request()).accept(passive.endpoint());
    await active.expect('ESTABLISHED');
    await scene.refuses(
      () => active.endpoint().dupConnect(ep, { timeoutMs: 0 }),
      'DAT_INVALID_ARG3',
    );
  },
  dat_ep_common_connect: async (scene) => {
    const { active, passive } = scene.apart;
    passive.ia.createCsp({ address: `0.0.0.0:${CONN_QUAL}`, evd: passive.evd });
    active.ep.commonConnect(`${scene.pair.passiveAddress}:${CONN_QUAL}`, {});
    (await passive.request()).accept(passive.ep);
    await active.expect('ESTABLISHED');
  },
  dat_ep_disconnect: async (scene) => {
    const { active, passive } = await scene.connected();
    passive.ep.postRecv([], 1);
    active.ep.postSend([], 1);
    active.ep.disconnect('graceful');
    active.ep.disconnect('graceful');
    assert.equal(active.ep.state, 'DISCONNECT_PENDING');
    await active.expect('dto 1 SUCCESS', 'DISCONNECTED');
    await passive.until('DISCONNECTED');
    passive.ep.disconnect();
    const fresh = active.endpoint();
    await scene.refuses(() => fresh.disconnect(), 'DAT_INVALID_STATE_EP_UNCONNECTED');
  },
  dat_ep_reset: async (scene) => {
    const { active } = await scene.connected();
    const { ep, evd } = active;
    const { qpn } = ep;
    for (const cookie of [1, 2]) ep.postRecv([], cookie);
    ep.disconnect();
    await waiting(scene.pair, active, 3);
    assert.equal(textOf(evd.dequeue()!), 'dto 1 FLUSHED');
    ep.reset();
    assert.notEqual(ep.qpn, qpn);
    const event = evd.dequeue();
    assert.ok(event?.type === 'dto' && event.ep === ep && event.cookie === 2);
    assert.equal(textOf(evd.dequeue()!), 'DISCONNECTED');
    assert.equal(evd.dequeue(), undefined);
  },
  dat_ep_free: async (scene) => {
    const { active, passive } = await scene.connected();
    for (const cookie of [1, 2, 3]) passive.ep.postRecv([], cookie);
    for (const cookie of [1, 2, 3]) active.ep.postSend([], cookie);
    await waiting(scene.pair, active, 3);
    active.evd.dequeue();
    active.ep.free();
    assert.equal(active.evd.dequeue(), undefined);
    assert.equal(active.evd.query().dropped, 2);
    await scene.refuses(() => active.ep.query(), 'DAT_INVALID_HANDLE_EP');
  },
  dat_ep_get_status: async (scene) => {
    const { ep } = (await scene.connected()).active;
    assert.deepEqual(ep.getStatus(), { state: 'CONNECTED', recvIdle: true, requestIdle: true });
    ep.postRecv([]);
    assert.equal(ep.getStatus().recvIdle, false);
  },
  dat_ep_recv_query: (scene) => {
    const { active } = scene.apart;
    active.ep.postRecv([]);
    assert.equal(active.ep.recvQuery().buffersAllocated, 1);
    const { ep, srq } = scene.sharing(active);
    srq.postRecv([]);
    assert.deepEqual(ep.recvQuery(), { buffersAllocated: 0, bufferSpan: 0 });
  },
  dat_ep_set_watermark: async (scene) => {
    const { ep, ia } = scene.apart.active;
    ep.setWatermark(1, Infinity);
    for (const cookie of [1, 2]) ep.postRecv([], cookie);
    const { event } = await ia.asyncEvd.wait();
    assert.ok(event.type === 'async-error' && event.object === ep);
    assert.equal(event.reason, AsyncErrorReason.EP.SRQ_SOFT_HIGH_WATERMARK);
  },
  dat_ep_post_send: async (scene) => {
    const { active, passive, cr } = await scene.asked();
    cr.accept(passive.ep);
    assert.equal(passive.ep.state, 'COMPLETION_PENDING');
    active.ep.postRecv([], 1);
    passive.ep.burst(() => passive.ep.postSend([], 2 ** 52, CompletionFlags.DEFAULT));
    await active.expect('ESTABLISHED', 'dto 1 SUCCESS');
    await passive.expect('ESTABLISHED', `dto ${2 ** 52} SUCCESS`);
  },
  dat_ep_post_send_with_invalidate: async (scene) => {
    const { active, passive } = await scene.connected();
    const rmr = passive.ia.createRmrForEp(passive.pz);
    const context = rmr.bind(passive.lmr.segment(0, 8), passive.ep)!;
    passive.ep.postRecv([], 1);
    active.ep.postSendWithInvalidate([], 2, context, 0);
    await active.expect('dto 2 SUCCESS');
    const events = [await passive.next(), await passive.next()];
    const received = events.find(({ type }) => type === 'dto');
    assert.ok(received?.type === 'dto' && received.invalidatedRmrContext === context);
    assert.equal(rmr.query().lmr, undefined);
  },
  dat_ep_post_recv: async (scene) => {
    const { active } = await scene.connected();
    const fresh = active.endpoint();
    fresh.postRecv([], 1, 0);
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    active.ep.postRecv([], 2);
    await active.expect('dto 2 FLUSHED');
  },
  dat_ep_post_rdma_write: async (scene) => {
    const { active, passive } = await scene.connected();
    active.lmr.bytes[0] = 9;
    active.ep.postRdmaWrite(active.lmr.segment(0, 1), 1, passive.remote(5), 0);
    await active.expect('dto 1 SUCCESS');
    assert.equal(passive.lmr.bytes[5], 9);
  },
  dat_ep_post_rdma_read: async (scene) => {
    const { active, passive } = await scene.connected();
    passive.lmr.bytes[5] = 8;
    active.ep.postRdmaRead(active.lmr.segment(0, 1), 1, passive.remote(5), 0);
    await active.expect('dto 1 SUCCESS');
    assert.equal(active.lmr.bytes[0], 8);
  },
  dat_ep_post_rdma_read_to_rmr: async (scene) => {
    const { active, passive } = await scene.connected();
    passive.lmr.bytes[5] = 7;
    const { address, rmrContext } = active.lmr;
    const sink = { address, rmrContext: rmrContext!, lengthBytes: 1 };
    active.ep.postRdmaReadToRmr(sink, 1, passive.remote(5), 0);
    await active.expect('dto 1 SUCCESS');
    assert.equal(active.lmr.bytes[0], 7);
  },
};

export const IB_CALLS: RowCalls = {
  dat_ib_post_fetch_and_add: async (scene) => {
    const { active, passive } = await scene.connected();
    const cell = passive.ia.allocate(8, { pz: passive.pz, privileges: ALL | REMOTE_ATOMIC });
    const result = active.lmr.segment(0, 8);
    const fresh = active.endpoint();
    const remote = passive.remote(0, cell);
    await scene.refuses(
      () => fresh.postFetchAdd(result, 1, remote, 5n),
      'DAT_INVALID_STATE_EP_UNCONNECTED',
    );
    active.ep.postFetchAdd(result, 1, remote, 5n, 0);
    await active.expect('dto 1 SUCCESS');
    assert.equal(new BigUint64Array(cell.bytes.slice().buffer)[0], 5n);
  },
  dat_ib_post_cmp_and_swap: async (scene) => {
    const { active, passive } = await scene.connected();
    const cell = passive.ia.allocate(8, { pz: passive.pz, privileges: ALL | REMOTE_ATOMIC });
    const remote = passive.remote(0, cell);
    active.ep.postCompareSwap(active.lmr.segment(0, 8), 1, remote, 0n, 6n, 0);
    await active.expect('dto 1 SUCCESS');
    assert.equal(new BigUint64Array(cell.bytes.slice().buffer)[0], 6n);
  },
  dat_ib_post_rdma_write_immed: async (scene) => {
    const { active, passive } = await scene.connected();
    for (const cookie of [1, 2]) passive.ep.postRecv([], cookie);
    active.ep.postRdmaWriteWithImmediate([], 3, passive.remote(), 0x01020304, 0);
    active.ep.postSendWithImmediate([], 4, 0x05060708);
    for (const immediate of [0x01020304, 0x05060708]) {
      const event = await passive.next();
      assert.ok(event.type === 'dto' && event.immediate === immediate);
    }
  },
  dat_ib_query_counters: async (scene) => {
    const { active, passive } = await scene.connected();
    passive.ep.postRecv([], 1);
    assert.equal(passive.ep.counters({ reset: true }).postRecv, 1);
    assert.equal(passive.ep.counters().postRecv, 0);
    assert.ok(Object.keys(active.ia.counters({})).length > 10);
  },
  dat_ib_print_counters: ({ ia }) => assert.equal(typeof ia.counters({}), 'object'),
  dat_ib_start_counter: ({ ia }) => assert.ok(Object.keys(ia.deviceCounters()).length > 0),
  dat_ib_stop_counter: ({ ia }) => assert.ok(Object.keys(ia.deviceCounters()).length > 0),
};
