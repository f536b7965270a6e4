/** Rows of docs/dat-map.md, called: service points, requests, memory, shared receive queues. */
import assert from 'node:assert/strict';
import { AsyncErrorReason, EvdFlags, MemPrivileges, MemType, PspFlags } from 'dapl';
import { CONN_QUAL } from '../../plugins/testing/suite/peer.js';
import type { DatScene, RowCalls } from './dat-scene.js';

const { LOCAL_READ, LOCAL_WRITE, ALL } = MemPrivileges;
const NEXT = CONN_QUAL + 1;

export const CONNECTING_CALLS: RowCalls = {
  dat_psp_create: async (scene) => {
    const { active, passive } = scene.apart;
    const { ia, evd, pz } = passive;
    const flags = PspFlags.PROVIDER;
    ia.createPsp({ connQual: CONN_QUAL, evd, flags, endpoint: { pz } });
    await scene.refuses(() => ia.createPsp({ connQual: CONN_QUAL }), 'DAT_CONN_QUAL_IN_USE');
    await scene.refuses(() => ia.createPsp({ connQual: 65536 }), 'DAT_INVALID_ARG2');
    active.ep.connect({ address: scene.pair.passiveAddress, connQual: CONN_QUAL });
    assert.equal((await passive.request()).ep?.state, 'TENTATIVE_CONNECTION_PENDING');
  },
  dat_psp_create_any: (scene) => {
    const { ia } = scene.apart.active;
    const [one, other] = [ia.createPspAny({}), ia.createPspAny()];
    assert.ok(one.connQual >= 1024 && other.connQual > one.connQual);
  },
  dat_psp_query: (scene) => {
    const { active } = scene.apart;
    const { connQual, evd } = scene.listen(active, CONN_QUAL).query();
    assert.deepEqual([connQual, evd], [CONN_QUAL, active.evd]);
  },
  dat_psp_free: async (scene) => {
    const { active, passive } = scene.apart;
    const psp = scene.listen(passive, CONN_QUAL);
    active.ep.connect({ address: scene.pair.passiveAddress, connQual: CONN_QUAL });
    const cr = await passive.request();
    psp.free();
    cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
  },
  dat_rsp_create: (scene) => {
    const { ia, ep } = scene.apart.active;
    ia.createRsp({ connQual: CONN_QUAL, ep });
    assert.equal(ep.state, 'RESERVED');
  },
  dat_rsp_query: (scene) => {
    const { ia, ep } = scene.apart.active;
    const rsp = ia.createRsp({ connQual: CONN_QUAL, ep });
    assert.equal(rsp.query().ep, ep);
  },
  dat_rsp_free: async (scene) => {
    const { active, passive } = scene.apart;
    const { ep, evd } = passive;
    const rsp = passive.ia.createRsp({ connQual: CONN_QUAL, ep, evd });
    active.ep.connect({ address: scene.pair.passiveAddress, connQual: CONN_QUAL });
    await passive.request();
    assert.ok(rsp.isFreed);
    rsp.free();
    const unused = passive.ia.createRsp({ connQual: NEXT, ep: passive.endpoint() });
    unused.free();
    assert.equal(unused.ep.state, 'UNCONNECTED');
  },
  dat_csp_create: (scene) => {
    const { ia } = scene.apart.active;
    const csp = ia.createCsp({ address: `${ia.address}:${CONN_QUAL}` });
    assert.equal(csp.query().port, CONN_QUAL);
  },
  dat_csp_query: ({ ia }) => {
    const csp = ia.createCsp({ address: `0.0.0.0:${CONN_QUAL}` });
    assert.equal(csp.query().comm.domain, 'AF_INET');
  },
  dat_csp_free: (scene) => {
    const { active } = scene.apart;
    const csp = active.ia.createCsp({ address: `0.0.0.0:${CONN_QUAL}` });
    csp.free();
    scene.listen(active, CONN_QUAL);
  },
  dat_cr_query: async (scene) => {
    const { cr, active } = await scene.asked();
    const { remoteAddress, privateData } = cr.query();
    assert.deepEqual([remoteAddress, privateData.length], [active.ia.address, 56]);
  },
  dat_cr_accept: async (scene) => {
    const { cr, active, passive } = await scene.asked();
    const privateData = new Uint8Array(1000);
    const long = await scene.refuses(
      () => cr.accept(passive.ep, { privateData }),
      'DAT_INVALID_ARG3',
    );
    assert.match(long.message, /at most 196/);
    cr.accept(passive.ep, { privateData: Uint8Array.of(1) });
    passive.ep.postRecv([], 1);
    active.ep.postRecv([], 1);
    await active.expect('ESTABLISHED');
    active.ep.postSend([], 2);
    await passive.expect('ESTABLISHED', 'dto 1 SUCCESS');
  },
  dat_cr_reject: async (scene) => {
    const { cr, active } = await scene.asked();
    cr.reject({ privateData: Uint8Array.of(7) });
    const [event] = await active.expect('PEER_REJECTED');
    assert.ok(event?.type === 'connection' && event.privateData[0] === 7);
    await scene.refuses(() => cr.reject({}), 'DAT_INVALID_HANDLE_CR');
  },
  dat_cr_handoff: async (scene) => {
    const { cr, active, passive } = await scene.asked();
    await scene.refuses(() => cr.handoff(NEXT), 'DAT_INVALID_ARG2');
    const narrow = passive.ia.createEvd({ qlen: 1, streams: EvdFlags.CR | EvdFlags.SOFTWARE });
    passive.ia.createPsp({ connQual: NEXT, evd: narrow });
    narrow.postSe(1);
    await scene.refuses(() => cr.handoff(NEXT), 'DAT_INSUFFICIENT_RESOURCES');
    narrow.dequeue();
    cr.handoff(NEXT);
    const event = narrow.dequeue();
    assert.ok(event?.type === 'connection-request');
    event.cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
  },
};

export const MEMORY_CALLS: RowCalls = {
  dat_pz_create: ({ ia }) => assert.equal(ia.createPz().handleType, 'PZ'),
  dat_pz_query: ({ ia }) => {
    const pz = ia.createPz();
    assert.equal(pz.ia, ia);
  },
  dat_pz_free: async (scene) => {
    const { pz } = scene.apart.active;
    await scene.refuses(() => pz.free(), 'DAT_INVALID_STATE_PZ_IN_USE');
    scene.ia.createPz().free();
  },
  dat_lmr_create: async (scene) => {
    const { ia, pz, lmr } = scene.apart.active;
    const [one, two] = [new Uint8Array(16), lmr].map((memory) => ia.createLmr(memory, { pz }));
    assert.notEqual(one!.address, two!.address);
    const unfit = [
      Buffer.from('pooled'),
      Reflect.construct(ArrayBuffer, [8, { maxByteLength: 16 }]) as ArrayBuffer,
    ];
    for (const memory of unfit) {
      await scene.refuses(() => ia.createLmr(memory, { pz }), 'DAT_INVALID_PARAMETER');
    }
    assert.equal(ia.allocate(10, { pz }).bytes.length, 10);
    // mapFile needs the native port: over mock it says so.
    await scene.refuses(() => ia.mapFile(0, { pz }), 'DAT_MODEL_NOT_SUPPORTED');
  },
  dat_lmr_query: (scene) => {
    const { lmr } = scene.apart.active;
    assert.equal(lmr.query().lengthBytes, lmr.bytes.length);
  },
  dat_lmr_free: async (scene) => {
    const { lmr, ep } = scene.apart.active;
    ep.postRecv(lmr.segment());
    await scene.refuses(() => lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
    ep.free();
    lmr.free();
  },
  dat_lmr_sync_rdma_read: async (scene) => {
    const { lmr, ia } = scene.apart.active;
    ia.syncRdmaRead([lmr.segment()]);
    await scene.refuses(() => ia.syncRdmaRead(5 as never), 'DAT_INVALID_ARG2');
  },
  dat_lmr_sync_rdma_write: async (scene) => {
    const { lmr, ia } = scene.apart.active;
    ia.syncRdmaWrite(lmr.segment());
    const segment = lmr.segment();
    lmr.free();
    await scene.refuses(() => ia.syncRdmaWrite(segment), 'DAT_INVALID_HANDLE_LMR');
  },
  dat_rmr_create: ({ ia }) => assert.equal(ia.createRmr(ia.createPz()).scope, 'PZ'),
  dat_rmr_create_for_ep: ({ ia }) => assert.equal(ia.createRmrForEp(ia.createPz()).scope, 'EP'),
  dat_rmr_query: ({ ia }) => {
    const rmr = ia.createRmr(ia.createPz());
    assert.equal(rmr.query().lmr, undefined);
  },
  dat_rmr_free: async (scene) => {
    const { active } = await scene.connected();
    const rmr = active.ia.createRmr(active.pz);
    rmr.bind(active.lmr.segment(), active.ep);
    await active.next();
    rmr.free();
    active.lmr.free();
  },
  dat_rmr_bind: async (scene) => {
    const { active } = await scene.connected();
    const rmr = active.ia.createRmr(active.pz);
    const context = rmr.bind(active.lmr.segment(8, 8), active.ep, { cookie: 3 });
    assert.equal(rmr.query().rmrContext, context);
    assert.equal(rmr.query().lengthBytes, 8);
    rmr.unbind(active.ep, {});
    for (const cookie of [3, 0]) {
      const event = await active.next();
      assert.ok(event.type === 'rmr-bind' && event.cookie === cookie);
    }
    assert.equal(rmr.query().lmr, undefined);
  },
};

export const SHARING_CALLS: RowCalls = {
  dat_srq_create: ({ ia }) => {
    const srq = ia.createSrq({ pz: ia.createPz(), maxRecvDtos: 4 });
    assert.equal(srq.state, 'OPERATIONAL');
  },
  dat_srq_post_recv: (scene) => {
    const { srq } = scene.sharing(scene.apart.active);
    srq.burst(() => srq.postRecv([], 1));
    assert.equal(srq.query().outstandingDtos, 1);
  },
  dat_srq_query: (scene) => {
    const { srq } = scene.sharing(scene.apart.active);
    srq.postRecv([], 1);
    assert.deepEqual([srq.query().availableDtos, srq.query().outstandingDtos], [1, 1]);
  },
  dat_srq_resize: async (scene) => {
    const { srq } = scene.sharing(scene.apart.active);
    srq.resize(8);
    for (let i = 0; i < 8; i++) srq.postRecv([], i);
    await scene.refuses(() => srq.resize(7), 'DAT_INVALID_STATE_SRQ_IN_USE');
  },
  dat_srq_set_lw: async (scene) => {
    const { ia } = scene;
    const { srq } = scene.sharing(scene.apart.active);
    srq.setLowWatermark(2);
    const { event } = await ia.asyncEvd.wait();
    assert.ok(event.type === 'async-error' && event.object === srq);
    assert.equal(event.reason, AsyncErrorReason.SRQ.LOW_WATERMARK);
  },
  dat_srq_free: async (scene) => {
    const { srq, ep } = scene.sharing(scene.apart.active);
    await scene.refuses(() => srq.free(), 'DAT_INVALID_STATE_SRQ_IN_USE');
    ep.free();
    srq.free();
  },
};

/** There is no such region in a process: the call says so, and what to do. */
async function noFastLmr(scene: DatScene): Promise<void> {
  const error = await scene.refuses(() => scene.ia.allocateFastLmr(), 'DAT_MODEL_NOT_SUPPORTED');
  assert.match(error.message, /ia\.createLmr/);
}

export const KERNEL_CALLS: RowCalls = {
  dat_evd_kcreate: async (scene) => {
    const told = new Promise((resolve) => {
      const handler = (): void => void resolve(1);
      scene.ia.createEvd({ qlen: 4, streams: 1, policy: 'ONE', handler }).postSe(1);
    });
    await told;
  },
  dat_evd_modify_upcall: async (scene) => {
    const evd = scene.software();
    evd.postSe(1);
    const handler = (): void => undefined;
    const choice = { pending: 'refuse' } as const;
    await scene.refuses(() => evd.modifyUpcall('ONE', handler, choice), 'DAT_INVALID_STATE');
    evd.modifyUpcall('ONE', handler, { pending: 'keep' });
    await evd.modifyUpcall('TEARDOWN', null);
  },
  dat_lmr_kcreate: (scene) => {
    const { ia, pz } = scene.apart.active;
    const lmr = ia.createLmr(new Uint8Array(8), { pz, privileges: LOCAL_READ | LOCAL_WRITE });
    assert.equal(lmr.rmrContext, undefined);
    assert.notEqual(ia.createLmr(new Uint8Array(8), { pz, privileges: ALL }).rmrContext, undefined);
  },
  dat_ia_memtype_hint: async (scene) => {
    const { ia } = scene;
    assert.equal(ia.memTypeHint(MemType.VIRTUAL, 100).preferredAlignmentBytes, 256);
    const kernels = () => ia.memTypeHint(MemType.PHYSICAL, 100);
    await scene.refuses(kernels, 'DAT_MODEL_NOT_SUPPORTED');
  },
  // ia.allocateFastLmr()
  dat_lmr_allocate: noFastLmr,
  dat_lmr_fmr: noFastLmr,
  dat_lmr_invalidate: async (scene) => {
    const { active } = await scene.connected();
    const rmr = active.ia.createRmr(active.pz);
    rmr.bind(active.lmr.segment(), active.ep);
    rmr.unbind(active.ep, {});
    await active.next();
    await active.next();
    assert.equal(rmr.query().lmr, undefined);
  },
  dat_ia_reserved_lmr: (scene) =>
    scene.refuses(() => scene.ia.reservedLmr(), 'DAT_MODEL_NOT_SUPPORTED'),
};
