/**
 * DAT's prototypes (dat.h, udat.h, kdat.h, dat_ib_extensions.h), and for their arguments a call of
 * ours with that one wrong: the error must number it as DAT does.
 */
import { EvdFlags, type Ia } from 'dapl';
import { CONN_QUAL, type Peers } from '../../plugins/testing/suite/peer.js';

/** Handles that come out are left out: they are last. */
export const PROTOTYPES = {
  dat_ia_close: 'ia flag',
  dat_evd_create: 'ia qlen cno flags',
  dat_evd_wait: 'evd timeout threshold',
  dat_evd_resize: 'evd qlen',
  dat_evd_post_se: 'evd event',
  dat_cno_create: 'ia agent',
  dat_cno_modify_agent: 'cno agent',
  dat_cno_wait: 'cno timeout',
  dat_ep_create: 'ia pz recv_evd request_evd connect_evd attr',
  dat_ep_connect: 'ep address conn_qual timeout pd_size pd qos flags',
  dat_ep_dup_connect: 'ep connected timeout pd_size pd qos',
  dat_ep_common_connect: 'ep address timeout pd_size pd',
  dat_ep_disconnect: 'ep flag',
  dat_ep_set_watermark: 'ep soft hard',
  dat_ep_post_send: 'ep nseg iov cookie flags',
  dat_ep_post_send_with_invalidate: 'ep nseg iov cookie flags invalidate rmr_context',
  dat_ep_post_recv: 'ep nseg iov cookie flags',
  dat_ep_post_rdma_write: 'ep nseg iov cookie remote flags',
  dat_ep_post_rdma_read: 'ep nseg iov cookie remote flags',
  dat_ep_post_rdma_read_to_rmr: 'ep local cookie remote flags',
  dat_psp_create: 'ia conn_qual evd flags',
  dat_psp_create_any: 'ia conn_qual evd flags',
  dat_rsp_create: 'ia conn_qual ep evd',
  dat_cr_accept: 'cr ep pd_size pd',
  dat_cr_reject: 'cr pd_size pd',
  dat_cr_handoff: 'cr conn_qual',
  dat_lmr_create: 'ia mem_type region length pz privileges va_type',
  dat_lmr_sync_rdma_read: 'ia segments count',
  dat_rmr_bind: 'rmr lmr triplet privileges va_type ep cookie flags',
  dat_srq_create: 'ia pz attr',
  dat_srq_post_recv: 'srq nseg iov cookie',
  dat_srq_resize: 'srq max',
  dat_srq_set_lw: 'srq low_watermark',
  dat_evd_modify_upcall: 'evd policy upcall flag',
  dat_ia_memtype_hint: 'ia mem_type length',
  dat_ib_post_fetch_and_add: 'ep add lmr cookie rmr flags',
  dat_ib_post_cmp_and_swap: 'ep compare swap lmr cookie rmr flags',
  dat_ib_post_rdma_write_immed: 'ep nseg lmr cookie rmr immediate flags',
  dat_ib_post_send_ud: 'ep nseg lmr ah cookie flags',
} as const;

type Name = keyof typeof PROTOTYPES;
type Wrong = (peers: Peers) => unknown;
type ArgumentRow = readonly [name: Name, argument: string, call: Wrong];

const BAD = 'bad' as never;
const LONG = { privateData: new Uint8Array(1000) };
const MANY = { length: 100 };
const COMMON = `192.0.2.2:${CONN_QUAL}`;
const TO = { address: '192.0.2.2', connQual: CONN_QUAL };
const far = { address: 0n, rmrContext: 1 };
const CLOSED = 0x4000;

function many({ active }: Peers): never {
  return Array.from(MANY, () => active.lmr.segment(0, 1)) as never;
}

function cell({ active }: Peers): ReturnType<typeof active.lmr.segment> {
  return active.lmr.segment(0, 8);
}

function window({ active }: Peers): ReturnType<Ia['createRmr']> {
  return active.ia.createRmr(active.pz);
}

function shared({ active }: Peers): ReturnType<Ia['createSrq']> {
  return active.ia.createSrq({ pz: active.pz, maxRecvDtos: 2, maxRecvIov: 1 });
}

function sink({ active }: Peers): { address: bigint; rmrContext: number; lengthBytes: number } {
  return { address: active.lmr.address, rmrContext: active.lmr.rmrContext!, lengthBytes: 1 };
}

const ROWS: readonly ArgumentRow[] = [
  ['dat_ia_close', 'flag', ({ active }) => active.ia.close(BAD)],
  ['dat_evd_create', 'qlen', ({ active }) => active.ia.createEvd({ qlen: 0 })],
  ['dat_evd_create', 'flags', ({ active }) => active.ia.createEvd({ qlen: 1, streams: CLOSED })],
  ['dat_evd_wait', 'timeout', ({ active }) => active.evd.wait({ timeoutMs: -1 })],
  ['dat_evd_wait', 'threshold', ({ active }) => active.evd.wait({ threshold: 0 })],
  ['dat_evd_wait', 'timeout', ({ active }) => active.evd.wait(BAD)],
  ['dat_evd_resize', 'qlen', ({ active }) => active.evd.resize(0)],
  [
    'dat_evd_post_se',
    'evd',
    ({ active }) => active.ia.createEvd({ qlen: 1, streams: EvdFlags.CR }).postSe(1),
  ],
  ['dat_cno_create', 'agent', ({ active }) => active.ia.createCno({ agent: BAD })],
  ['dat_cno_modify_agent', 'agent', ({ active }) => active.ia.createCno().modifyAgent(BAD)],
  ['dat_cno_wait', 'timeout', ({ active }) => active.ia.createCno().wait({ timeoutMs: -1 })],
  ['dat_ep_create', 'pz', ({ active }) => active.ia.createEndpoint(BAD)],
  [
    'dat_ep_create',
    'attr',
    ({ active: { ia, pz } }) => ia.createEndpoint({ pz, attributes: { maxRecvDtos: -1 } }),
  ],
  ['dat_ep_connect', 'address', ({ active }) => active.endpoint().connect(BAD)],
  [
    'dat_ep_connect',
    'address',
    ({ active }) => active.endpoint().connect({ ...TO, address: 5 as never }),
  ],
  [
    'dat_ep_connect',
    'conn_qual',
    ({ active }) => active.endpoint().connect({ ...TO, connQual: 0 }),
  ],
  ['dat_ep_connect', 'timeout', ({ active }) => active.endpoint().connect({ ...TO, timeoutMs: 0 })],
  ['dat_ep_connect', 'pd_size', ({ active }) => active.endpoint().connect({ ...TO, ...LONG })],
  ['dat_ep_connect', 'pd', ({ active }) => active.endpoint().connect({ ...TO, privateData: BAD })],
  ['dat_ep_connect', 'qos', ({ active }) => active.endpoint().connect({ ...TO, qos: 3 })],
  ['dat_ep_connect', 'flags', ({ active }) => active.endpoint().connect({ ...TO, flags: 3 })],
  ['dat_ep_dup_connect', 'timeout', ({ active: a }) => a.endpoint().dupConnect(a.ep, BAD)],
  [
    'dat_ep_dup_connect',
    'timeout',
    ({ active: a }) => a.endpoint().dupConnect(a.ep, { timeoutMs: 0 }),
  ],
  ['dat_ep_dup_connect', 'pd_size', ({ active: a }) => a.endpoint().dupConnect(a.ep, LONG)],
  [
    'dat_ep_dup_connect',
    'pd',
    ({ active: a }) => a.endpoint().dupConnect(a.ep, { privateData: BAD }),
  ],
  ['dat_ep_dup_connect', 'qos', ({ active: a }) => a.endpoint().dupConnect(a.ep, { qos: 3 })],
  ['dat_ep_dup_connect', 'connected', ({ active, passive }) => dupOfAccepted(active, passive)],
  ['dat_ep_common_connect', 'address', ({ active }) => active.endpoint().commonConnect(5 as never)],
  [
    'dat_ep_common_connect',
    'timeout',
    ({ active }) => active.endpoint().commonConnect(COMMON, { timeoutMs: 0 }),
  ],
  ['dat_ep_common_connect', 'pd_size', ({ active: a }) => a.endpoint().commonConnect(COMMON, LONG)],
  [
    'dat_ep_common_connect',
    'pd',
    ({ active }) => active.endpoint().commonConnect(COMMON, { privateData: BAD }),
  ],
  ['dat_ep_disconnect', 'flag', ({ active }) => active.ep.disconnect(BAD)],
  ['dat_ep_set_watermark', 'soft', ({ active }) => active.ep.setWatermark(-1)],
  ['dat_ep_set_watermark', 'hard', ({ active }) => active.ep.setWatermark(1, -1)],
  ['dat_ep_post_send', 'nseg', (p) => p.active.ep.postSend(many(p))],
  ['dat_ep_post_send', 'iov', ({ active }) => active.ep.postSend(BAD)],
  ['dat_ep_post_send', 'iov', ({ active }) => active.ep.postSend([BAD])],
  ['dat_ep_post_send', 'cookie', ({ active }) => active.ep.postSend([], -1)],
  ['dat_ep_post_send', 'flags', ({ active }) => active.ep.postSend([], 1, CLOSED)],
  [
    'dat_ep_post_send_with_invalidate',
    'rmr_context',
    ({ active }) => active.ep.postSendWithInvalidate([], 1, -1),
  ],
  [
    'dat_ep_post_send_with_invalidate',
    'flags',
    ({ active }) => active.ep.postSendWithInvalidate([], 1, 1, CLOSED),
  ],
  ['dat_ep_post_recv', 'nseg', (p) => p.active.ep.postRecv(many(p))],
  ['dat_ep_post_recv', 'iov', ({ active }) => active.ep.postRecv(BAD)],
  ['dat_ep_post_recv', 'cookie', ({ active }) => active.ep.postRecv([], 0.5)],
  ['dat_ep_post_recv', 'flags', ({ active }) => active.ep.postRecv([], 1, CLOSED)],
  ...(['dat_ep_post_rdma_write', 'dat_ep_post_rdma_read'] as const).flatMap((name) => {
    const call = name === 'dat_ep_post_rdma_write' ? 'postRdmaWrite' : 'postRdmaRead';
    return [
      [name, 'nseg', (p) => p.active.ep[call](many(p), 1, far)],
      [name, 'iov', ({ active }) => active.ep[call](BAD, 1, far)],
      [name, 'cookie', ({ active }) => active.ep[call]([], -1, far)],
      [name, 'remote', ({ active }) => active.ep[call]([], 1, BAD)],
      [name, 'flags', ({ active }) => active.ep[call]([], 1, far, CLOSED)],
    ] satisfies ArgumentRow[];
  }),
  ['dat_ep_post_rdma_read_to_rmr', 'local', (p) => p.active.ep.postRdmaReadToRmr(BAD, 1, far)],
  [
    'dat_ep_post_rdma_read_to_rmr',
    'cookie',
    (p) => p.active.ep.postRdmaReadToRmr(sink(p), -1, far),
  ],
  ['dat_ep_post_rdma_read_to_rmr', 'remote', (p) => p.active.ep.postRdmaReadToRmr(sink(p), 1, BAD)],
  [
    'dat_ep_post_rdma_read_to_rmr',
    'flags',
    (p) => p.active.ep.postRdmaReadToRmr(sink(p), 1, far, CLOSED),
  ],
  ['dat_psp_create', 'conn_qual', ({ active }) => active.ia.createPsp({ connQual: 0 })],
  ['dat_psp_create', 'conn_qual', ({ active }) => active.ia.createPsp(BAD)],
  ['dat_psp_create', 'flags', ({ active }) => active.ia.createPsp({ connQual: 9, flags: 7 })],
  ['dat_psp_create_any', 'evd', ({ active }) => active.ia.createPspAny(BAD)],
  ['dat_psp_create_any', 'flags', ({ active }) => active.ia.createPspAny({ flags: 7 })],
  ['dat_rsp_create', 'conn_qual', ({ active: { ia, ep } }) => ia.createRsp({ connQual: 0, ep })],
  ['dat_lmr_create', 'pz', ({ active }) => active.ia.createLmr(new Uint8Array(8), BAD)],
  [
    'dat_lmr_create',
    'privileges',
    ({ active: { ia, pz } }) => ia.createLmr(new Uint8Array(8), { pz, privileges: CLOSED }),
  ],
  [
    'dat_lmr_create',
    'va_type',
    ({ active: { ia, pz } }) => ia.createLmr(new Uint8Array(8), { pz, vaType: 7 }),
  ],
  ['dat_lmr_sync_rdma_read', 'segments', ({ active }) => active.ia.syncRdmaRead(BAD)],
  ['dat_rmr_bind', 'triplet', (p) => window(p).bind(BAD, p.active.ep)],
  ['dat_rmr_bind', 'privileges', (p) => window(p).bind(cell(p), p.active.ep, BAD)],
  [
    'dat_rmr_bind',
    'privileges',
    (p) => window(p).bind(cell(p), p.active.ep, { privileges: CLOSED }),
  ],
  ['dat_rmr_bind', 'va_type', (p) => window(p).bind(cell(p), p.active.ep, { vaType: 7 })],
  ['dat_rmr_bind', 'cookie', (p) => window(p).bind(cell(p), p.active.ep, { cookie: -1 })],
  ['dat_rmr_bind', 'flags', (p) => window(p).bind(cell(p), p.active.ep, { flags: CLOSED })],
  ['dat_rmr_bind', 'cookie', (p) => window(p).unbind(p.active.ep, { cookie: -1 })],
  ['dat_srq_create', 'pz', ({ active }) => active.ia.createSrq(BAD)],
  ['dat_srq_create', 'attr', ({ active: { ia, pz } }) => ia.createSrq({ pz, maxRecvDtos: 0 })],
  ['dat_srq_post_recv', 'nseg', (p) => shared(p).postRecv(many(p))],
  ['dat_srq_post_recv', 'iov', (p) => shared(p).postRecv(BAD)],
  ['dat_srq_post_recv', 'cookie', (p) => shared(p).postRecv([], -1)],
  ['dat_srq_resize', 'max', (p) => shared(p).resize(0)],
  ['dat_srq_set_lw', 'low_watermark', (p) => shared(p).setLowWatermark(3)],
  ['dat_evd_modify_upcall', 'policy', ({ active }) => active.evd.modifyUpcall(BAD)],
  ['dat_evd_modify_upcall', 'upcall', ({ active }) => active.evd.modifyUpcall('ONE', null)],
  [
    'dat_evd_modify_upcall',
    'flag',
    ({ active }) => active.evd.modifyUpcall('ONE', () => undefined, BAD),
  ],
  ['dat_ia_memtype_hint', 'mem_type', ({ active }) => active.ia.memTypeHint(99, 1)],
  ['dat_ia_memtype_hint', 'length', ({ active }) => active.ia.memTypeHint(0, 0)],
  ['dat_ib_post_fetch_and_add', 'add', (p) => p.active.ep.postFetchAdd(cell(p), 1, far, -1n)],
  ['dat_ib_post_fetch_and_add', 'lmr', (p) => p.active.ep.postFetchAdd(many(p), 1, far, 1n)],
  ['dat_ib_post_fetch_and_add', 'cookie', (p) => p.active.ep.postFetchAdd(cell(p), -1, far, 1n)],
  ['dat_ib_post_fetch_and_add', 'rmr', (p) => p.active.ep.postFetchAdd(cell(p), 1, BAD, 1n)],
  [
    'dat_ib_post_fetch_and_add',
    'flags',
    (p) => p.active.ep.postFetchAdd(cell(p), 1, far, 1n, CLOSED),
  ],
  [
    'dat_ib_post_cmp_and_swap',
    'compare',
    (p) => p.active.ep.postCompareSwap(cell(p), 1, far, -1n, 0n),
  ],
  [
    'dat_ib_post_cmp_and_swap',
    'swap',
    (p) => p.active.ep.postCompareSwap(cell(p), 1, far, 0n, -1n),
  ],
  ['dat_ib_post_cmp_and_swap', 'lmr', (p) => p.active.ep.postCompareSwap(BAD, 1, far, 0n, 0n)],
  [
    'dat_ib_post_cmp_and_swap',
    'cookie',
    (p) => p.active.ep.postCompareSwap(cell(p), -1, far, 0n, 0n),
  ],
  ['dat_ib_post_cmp_and_swap', 'rmr', (p) => p.active.ep.postCompareSwap(cell(p), 1, BAD, 0n, 0n)],
  [
    'dat_ib_post_cmp_and_swap',
    'flags',
    (p) => p.active.ep.postCompareSwap(cell(p), 1, far, 0n, 0n, CLOSED),
  ],
  [
    'dat_ib_post_rdma_write_immed',
    'immediate',
    ({ active }) => active.ep.postRdmaWriteWithImmediate([], 1, far, -1),
  ],
  [
    'dat_ib_post_rdma_write_immed',
    'rmr',
    ({ active }) => active.ep.postRdmaWriteWithImmediate([], 1, BAD, 1),
  ],
  [
    'dat_ib_post_rdma_write_immed',
    'flags',
    ({ active }) => active.ep.postRdmaWriteWithImmediate([], 1, far, 1, CLOSED),
  ],
  ['dat_ib_post_send_ud', 'nseg', (p) => datagrams(p).postSendUd(many(p), BAD)],
  ['dat_ib_post_send_ud', 'lmr', (p) => datagrams(p).postSendUd(BAD, BAD)],
  ['dat_ib_post_send_ud', 'cookie', (p) => datagrams(p).postSendUd([], BAD, -1)],
  ['dat_ib_post_send_ud', 'flags', (p) => datagrams(p).postSendUd([], BAD, 1, CLOSED)],
];

/** Calls on endpoints that are connected, or on others of their adapters. */
export function argumentRows(): readonly ArgumentRow[] {
  return ROWS;
}

function datagrams({ active: { ia, pz } }: Peers): ReturnType<Ia['createUdEndpoint']> {
  return ia.createUdEndpoint({ pz });
}

/** The passive endpoint has accepted: nothing says where to connect. */
function dupOfAccepted(_active: Peers['active'], passive: Peers['passive']): void {
  passive.endpoint().dupConnect(passive.ep);
}

/** Of a request that has come: they leave it as it was. */
export const REQUEST_ROWS = [
  ['dat_cr_accept', 'pd_size', 'accept', LONG],
  ['dat_cr_accept', 'pd', 'accept', { privateData: BAD }],
  ['dat_cr_accept', 'pd_size', 'accept', BAD],
  ['dat_cr_reject', 'pd_size', 'reject', LONG],
  ['dat_cr_reject', 'pd', 'reject', { privateData: BAD }],
  ['dat_cr_reject', 'pd_size', 'reject', BAD],
  ['dat_cr_handoff', 'conn_qual', 'handoff', 0],
] as const;
