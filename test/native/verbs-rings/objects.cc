// Creating, changing and destroying. A call that makes something returns its number, or -errno; the
// others return errno or 0.
#include <cerrno>

#include "instance.h"

namespace {

using rings::Kind;
using rings::Ring;

#define CALL(name)                                          \
  napi_value name##Call(napi_env env, napi_callback_info info) { \
    Args args(env, info);                                   \
    return number(env, name(args, *args.instance));         \
  }

// Memory at `at`, entry count and stride behind it.
Ring ringAt(const Args& args, int at) {
  Ring ring;
  ring.control = static_cast<uint32_t*>(args.memory(at));
  ring.mask = args.u32(at + 1) - 1;
  ring.strideBytes = args.u32(at + 2);
  return ring;
}

void release(Instance& instance, napi_ref& reference) {
  if (reference) napi_delete_reference(instance.env, reference);
  reference = nullptr;
}

uint32_t addQueue(Instance& instance, rings::Queue* queue) {
  auto& queues = instance.tables.queues;
  for (queue->number = 0; queue->number < queues.size(); queue->number++) {
    if (!queues[queue->number]) break;
  }
  if (queue->number == queues.size()) queues.push_back(nullptr);
  queues[queue->number] = queue;
  return queue->number;
}

// (onNotify, onEvent)
double open(const Args& args, Instance& instance) {
  ibv_device** list = instance.library.ibv_get_device_list(nullptr);
  if (!list) return errno;
  instance.context = list[0] ? instance.library.ibv_open_device(list[0]) : nullptr;
  const int error = errno;
  instance.library.ibv_free_device_list(list);
  if (!instance.context) return error;
  instance.channel = instance.library.ibv_create_comp_channel(instance.context);
  if (!instance.channel) {
    const int failure = errno;
    instance.library.ibv_close_device(instance.context);
    return failure;
  }
  instance.onNotify = args.keep(0);
  instance.onEvent = args.keep(1);
  return startWatching(instance);
}
CALL(open)

double close(const Args&, Instance& instance) {
  stopWatching(instance);
  if (int error = instance.library.ibv_destroy_comp_channel(instance.channel)) return error;
  if (int error = instance.library.ibv_close_device(instance.context)) return error;
  release(instance, instance.onNotify);
  release(instance, instance.onEvent);
  instance.context = nullptr;
  return 0;
}
CALL(close)

double allocPd(const Args&, Instance& instance) {
  ibv_pd* pd = instance.library.ibv_alloc_pd(instance.context);
  if (!pd) return -errno;
  return instance.pds.add(pd);
}
CALL(allocPd)

double deallocPd(const Args& args, Instance& instance) {
  const uint32_t which = args.u32(0);
  const int error = instance.library.ibv_dealloc_pd(instance.pds.at(which));
  if (!error) instance.pds.items[which] = nullptr;
  return error;
}
CALL(deallocPd)

// (pd, memory, access, iova or undefined, out: lkey, rkey, iova lo, iova hi)
double regMr(const Args& args, Instance& instance) {
  size_t length = 0;
  void* address = args.memory(1, &length);
  uint64_t iova = reinterpret_cast<uintptr_t>(address);
  bool lossless = true;
  if (args.has(3)) napi_get_value_bigint_uint64(args.env, args.values[3], &iova, &lossless);
  ibv_mr* mr = instance.library.ibv_reg_mr_iova(instance.pds.at(args.u32(0)), address, length,
                                                iova, static_cast<int>(args.u32(2)));
  if (!mr) return -errno;
  auto* out = static_cast<uint32_t*>(args.memory(4));
  out[0] = mr->lkey;
  out[1] = mr->rkey;
  out[2] = static_cast<uint32_t>(iova);
  out[3] = static_cast<uint32_t>(iova >> 32);
  instance.tables.regionsByLkey[mr->lkey] = mr;
  return instance.regions.add(new Region{mr, args.keep(1)});
}
CALL(regMr)

double deregMr(const Args& args, Instance& instance) {
  Region* region = instance.regions.at(args.u32(0));
  const uint32_t lkey = region->verbs->lkey;
  if (int error = instance.library.ibv_dereg_mr(region->verbs)) return error;
  instance.tables.regionsByLkey.erase(lkey);
  release(instance, region->memory);
  instance.regions.items[args.u32(0)] = nullptr;
  delete region;
  return 0;
}
CALL(deregMr)

double allocMw(const Args& args, Instance& instance) {
  const auto type = static_cast<ibv_mw_type>(args.u32(1));
  ibv_mw* mw = instance.context->ops.alloc_mw(instance.pds.at(args.u32(0)), type);
  if (!mw) return -errno;
  const uint32_t which = instance.windows.add(mw);
  instance.tables.windowsByHandle[which] = mw;
  return which;
}
CALL(allocMw)

double mwRkey(const Args& args, Instance& instance) {
  return instance.windows.at(args.u32(0))->rkey;
}
CALL(mwRkey)

double deallocMw(const Args& args, Instance& instance) {
  const uint32_t which = args.u32(0);
  if (int error = instance.context->ops.dealloc_mw(instance.windows.at(which))) return error;
  instance.tables.windowsByHandle.erase(which);
  instance.windows.items[which] = nullptr;
  return 0;
}
CALL(deallocMw)

// (ring, entries, stride)
double createCq(const Args& args, Instance& instance) {
  auto* cq = new Cq();
  cq->ring = ringAt(args, 0);
  cq->verbs = instance.library.ibv_create_cq(instance.context, static_cast<int>(args.u32(1)), cq,
                                             instance.channel, 0);
  if (!cq->verbs) {
    delete cq;
    return -errno;
  }
  cq->memory = args.keep(0);
  return cq->number = instance.cqs.add(cq);
}
CALL(createCq)

// (cq, ring, entries, stride): unread completions have been moved over
double resizeCq(const Args& args, Instance& instance) {
  Cq* cq = instance.cqs.at(args.u32(0));
  const int error = instance.library.ibv_resize_cq(cq->verbs, static_cast<int>(args.u32(2)));
  if (error) return error;
  release(instance, cq->memory);
  cq->ring = ringAt(args, 1);
  cq->memory = args.keep(1);
  return 0;
}
CALL(resizeCq)

double destroyCq(const Args& args, Instance& instance) {
  Cq* cq = instance.cqs.at(args.u32(0));
  if (int error = instance.library.ibv_destroy_cq(cq->verbs)) return error;
  instance.cqs.items[cq->number] = nullptr;
  release(instance, cq->memory);
  delete cq;
  return 0;
}
CALL(destroyCq)

// (pd, sendCq, receiveCq, srq or 0, maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInline,
//  context, send ring x 3, receive ring x 3, out: qpn)
double createQp(const Args& args, Instance& instance) {
  auto* qp = new Qp();
  Srq* srq = instance.srqs.at(args.u32(3));
  ibv_qp_init_attr attr = {};
  attr.qp_context = qp;
  attr.send_cq = instance.cqs.at(args.u32(1))->verbs;
  attr.recv_cq = instance.cqs.at(args.u32(2))->verbs;
  attr.srq = srq ? srq->verbs : nullptr;
  attr.cap = {args.u32(4), args.u32(5), args.u32(6), args.u32(7), args.u32(8)};
  attr.qp_type = IBV_QPT_RC;
  qp->verbs = instance.library.ibv_create_qp(instance.pds.at(args.u32(0)), &attr);
  if (!qp->verbs) {
    delete qp;
    return -errno;
  }
  qp->context = args.u32(9);
  qp->send = &qp->sendQueue;
  qp->sendQueue.kind = Kind::Send;
  qp->sendQueue.pair = qp;
  qp->sendQueue.ring = ringAt(args, 10);
  qp->memory[0] = args.keep(10);
  addQueue(instance, &qp->sendQueue);
  if (!srq) {
    qp->receive = &qp->receiveQueue;
    qp->receiveQueue.kind = Kind::Receive;
    qp->receiveQueue.pair = qp;
    qp->receiveQueue.ring = ringAt(args, 13);
    qp->memory[1] = args.keep(13);
    addQueue(instance, &qp->receiveQueue);
  }
  static_cast<uint32_t*>(args.memory(16))[0] = qp->verbs->qp_num;
  instance.tables.pairsByQpn[qp->verbs->qp_num] = qp;
  return qp->number = instance.qps.add(qp);
}
CALL(createQp)

double qpState(const Args& args, Instance& instance) {
  return instance.qps.at(args.u32(0))->verbs->state;
}
CALL(qpState)

// (qp, mask, attributes: the words below)
double modifyQp(const Args& args, Instance& instance) {
  Qp* qp = instance.qps.at(args.u32(0));
  const int mask = static_cast<int>(args.u32(1));
  const auto* words = static_cast<const uint32_t*>(args.memory(2));
  ibv_qp_attr attr = {};
  attr.qp_state = static_cast<ibv_qp_state>(words[0]);
  attr.qp_access_flags = words[1];
  attr.pkey_index = static_cast<uint16_t>(words[2]);
  attr.port_num = static_cast<uint8_t>(words[3]);
  attr.path_mtu = static_cast<ibv_mtu>(words[4]);
  attr.dest_qp_num = words[5];
  attr.rq_psn = words[6];
  attr.sq_psn = words[7];
  attr.max_dest_rd_atomic = static_cast<uint8_t>(words[8]);
  attr.max_rd_atomic = static_cast<uint8_t>(words[9]);
  attr.min_rnr_timer = static_cast<uint8_t>(words[10]);
  attr.timeout = static_cast<uint8_t>(words[11]);
  attr.retry_cnt = static_cast<uint8_t>(words[12]);
  attr.rnr_retry = static_cast<uint8_t>(words[13]);
  if (int error = instance.library.ibv_modify_qp(qp->verbs, &attr, mask)) return error;
  if ((mask & IBV_QP_STATE) && attr.qp_state == IBV_QPS_RESET) {
    rings::forget(instance.tables, qp->sendQueue);
    if (qp->receive) rings::forget(instance.tables, qp->receiveQueue);
  }
  return 0;
}
CALL(modifyQp)

double destroyQp(const Args& args, Instance& instance) {
  Qp* qp = instance.qps.at(args.u32(0));
  const uint32_t qpn = qp->verbs->qp_num;
  if (int error = instance.library.ibv_destroy_qp(qp->verbs)) return error;
  instance.tables.pairsByQpn.erase(qpn);
  rings::forget(instance.tables, qp->sendQueue);
  instance.tables.queues[qp->sendQueue.number] = nullptr;
  if (qp->receive) {
    rings::forget(instance.tables, qp->receiveQueue);
    instance.tables.queues[qp->receiveQueue.number] = nullptr;
  }
  instance.qps.items[qp->number] = nullptr;
  for (napi_ref& memory : qp->memory) release(instance, memory);
  delete qp;
  return 0;
}
CALL(destroyQp)

// (pd, maxWr, maxSge, slots x 3, submissions x 3, out: srqn)
double createSrq(const Args& args, Instance& instance) {
  auto* srq = new Srq();
  ibv_srq_init_attr attr = {};
  attr.srq_context = srq;
  attr.attr.max_wr = args.u32(1);
  attr.attr.max_sge = args.u32(2);
  srq->verbs = instance.library.ibv_create_srq(instance.pds.at(args.u32(0)), &attr);
  if (!srq->verbs) {
    delete srq;
    return -errno;
  }
  srq->queue.kind = Kind::Shared;
  srq->queue.srq = srq->verbs;
  srq->queue.srqn = srq->verbs->handle;
  srq->queue.ring = ringAt(args, 3);
  srq->queue.submissions = ringAt(args, 6);
  srq->memory[0] = args.keep(3);
  srq->memory[1] = args.keep(6);
  addQueue(instance, &srq->queue);
  static_cast<uint32_t*>(args.memory(9))[0] = srq->queue.srqn;
  return srq->number = instance.srqs.add(srq);
}
CALL(createSrq)

double limitSrq(const Args& args, Instance& instance) {
  ibv_srq_attr attr = {};
  attr.srq_limit = args.u32(1);
  return instance.library.ibv_modify_srq(instance.srqs.at(args.u32(0))->verbs, &attr,
                                         IBV_SRQ_LIMIT);
}
CALL(limitSrq)

double destroySrq(const Args& args, Instance& instance) {
  Srq* srq = instance.srqs.at(args.u32(0));
  if (int error = instance.library.ibv_destroy_srq(srq->verbs)) return error;
  instance.tables.queues[srq->queue.number] = nullptr;
  instance.srqs.items[srq->number] = nullptr;
  for (napi_ref& memory : srq->memory) release(instance, memory);
  delete srq;
  return 0;
}
CALL(destroySrq)

double setMode(const Args& args, Instance& instance) {
  const auto mode = static_cast<fake_verbs_mode>(args.u32(0));
  return instance.library.fake_verbs_set_mode(instance.context, mode);
}
CALL(setMode)

double progress(const Args& args, Instance& instance) {
  return instance.library.fake_verbs_progress(instance.context, args.u32(0));
}
CALL(progress)

// (function, nth, errno)
double inject(const Args& args, Instance& instance) {
  char name[64];
  size_t length = 0;
  napi_get_value_string_utf8(args.env, args.values[0], name, sizeof(name), &length);
  return instance.library.fake_verbs_inject(name, args.u32(1), static_cast<int>(args.u32(2)));
}
CALL(inject)

}  // namespace

void exportObjects(napi_env env, napi_value exports, Instance* instance) {
#define EXPORT(name) exportFunction(env, exports, #name, name##Call, instance);
  EXPORT(open) EXPORT(close) EXPORT(allocPd) EXPORT(deallocPd) EXPORT(regMr) EXPORT(deregMr)
  EXPORT(allocMw) EXPORT(mwRkey) EXPORT(deallocMw) EXPORT(createCq) EXPORT(resizeCq)
  EXPORT(destroyCq) EXPORT(createQp) EXPORT(qpState) EXPORT(modifyQp) EXPORT(destroyQp)
  EXPORT(createSrq) EXPORT(limitSrq) EXPORT(destroySrq) EXPORT(setMode) EXPORT(progress)
  EXPORT(inject)
}
