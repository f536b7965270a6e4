// Queue pairs: their life.

#include "abi/xrc_abi.h"
#include "instance.h"
#include "queues/qp_attributes.h"
#include "queues/qp_record.h"

#include <cerrno>

namespace {

using rings::Kind;

void addQueue(Qp* qp, rings::Queue* queue, Kind kind, const Args& args, int at) {
  queue->kind = kind;
  queue->pair = qp;
  queue->ring = ringAt(args, at);
  qp->memory[kind == Kind::Send ? 0 : 1] = args.keep(at);
  qp->device->tables.queues.add(queue);
}

// Null where it fails; errno says why. Creation flags need the call of newer drivers.
ibv_qp* newQp(const Instance& instance, const Qp& qp, ibv_qp_init_attr attr, uint32_t flags) {
  if (!flags) return instance.verbs.ibv_create_qp(qp.pd->verbs, &attr);
  ibv_context* context = qp.device->context;
  verbs_context* verbs = extended(context, &verbs_context::create_qp_ex);
  if (!verbs) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_qp_init_attr_ex more = {};
  more.qp_context = attr.qp_context;
  more.send_cq = attr.send_cq;
  more.recv_cq = attr.recv_cq;
  more.srq = attr.srq;
  more.cap = attr.cap;
  more.qp_type = attr.qp_type;
  more.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  more.pd = qp.pd->verbs;
  more.create_flags = flags;
  return verbs->create_qp_ex(context, &more);
}

// (record: see qp_record.h; send ring x 3, receive ring x 3 or undefined)
double createQp(const Args& args, Instance& instance) {
  uint32_t* words = qpRecord(args);
  if (!words) return -EINVAL;
  Pd* pd = instance.pds.at(words[qp_record::PD]);
  Cq* sendCq = instance.cqs.at(words[qp_record::SEND_CQ]);
  Cq* receiveCq = instance.cqs.at(words[qp_record::RECEIVE_CQ]);
  if (!pd || !sendCq || !receiveCq || !args.words(1)) return -EINVAL;
  auto* qp = new Qp();
  qp->device = pd->device;
  qp->pd = pd;
  qp->sendCq = sendCq;
  qp->receiveCq = receiveCq;
  qp->srq = instance.srqs.at(words[qp_record::SRQ]);
  qp->context = words[qp_record::CONTEXT];
  ibv_qp_init_attr attr = {};
  attr.qp_context = qp;
  attr.send_cq = sendCq->verbs;
  attr.recv_cq = receiveCq->verbs;
  attr.srq = qp->srq ? qp->srq->verbs : nullptr;
  attr.cap = {words[qp_record::MAX_SEND_WR], words[qp_record::MAX_RECEIVE_WR],
              words[qp_record::MAX_SEND_SGE], words[qp_record::MAX_RECEIVE_SGE],
              words[qp_record::MAX_INLINE]};
  attr.qp_type = static_cast<ibv_qp_type>(words[qp_record::TYPE]);
  qp->verbs = newQp(instance, *qp, attr, words[qp_record::CREATE_FLAGS]);
  if (!qp->verbs) {
    const int error = failure();
    delete qp;
    return -error;
  }
  words[qp_record::QPN] = qp->verbs->qp_num;
  return adoptQp(args, instance, qp, 1);
}
NUMBER_CALL(createQp)

void countChildren(Qp& qp, int by) {
  if (qp.pd) qp.pd->children += static_cast<uint32_t>(by);
  else qp.device->children += static_cast<uint32_t>(by);
  if (qp.xrcd) qp.xrcd->children += static_cast<uint32_t>(by);
  if (qp.sendCq) qp.sendCq->children += static_cast<uint32_t>(by);
  if (qp.receiveCq) qp.receiveCq->children += static_cast<uint32_t>(by);
  if (qp.srq) qp.srq->children += static_cast<uint32_t>(by);
}

void forgetPosted(Qp& qp) {
  rings::Tables& tables = qp.device->tables;
  if (qp.send) rings::forget(tables, *qp.send);
  if (qp.receive) rings::forget(tables, *qp.receive);
}

int destroy(Instance& instance, Qp* qp) {
  if (!qp) return EINVAL;
  const uint32_t qpn = qp->verbs->qp_num;
  leaveGroups(instance, *qp);
  reopenWindows(*qp);
  if (const int error = errnoOf(instance.verbs.ibv_destroy_qp(qp->verbs))) return error;
  rings::Tables& tables = qp->device->tables;
  tables.pairsByQpn.erase(qpn);
  forgetPosted(*qp);
  if (qp->send) tables.queues.remove(qp->send);
  if (qp->receive) tables.queues.remove(qp->receive);
  countChildren(*qp, -1);
  instance.qps.remove(qp->number);
  for (napi_ref& memory : qp->memory) release(instance, memory);
  delete qp;
  return 0;
}

double destroyQp(const Args& args, Instance& instance) {
  return destroy(instance, instance.qps.at(args.u32(0)));
}
NUMBER_CALL(destroyQp)

// (qp, mask, attributes: see qp_attributes.h)
double modifyQp(const Args& args, Instance& instance) {
  Qp* qp = instance.qps.at(args.u32(0));
  size_t length = 0;
  const auto* words = static_cast<const uint32_t*>(args.memory(2, &length));
  if (!qp || length < qp_words::COUNT * 4) return EINVAL;
  ibv_qp_attr attr = attributesOf(words);
  const int mask = static_cast<int>(args.u32(1));
  if (const int error = errnoOf(instance.verbs.ibv_modify_qp(qp->verbs, &attr, mask))) return error;
  if ((mask & IBV_QP_STATE) && attr.qp_state == IBV_QPS_RESET) forgetPosted(*qp);
  return 0;
}
NUMBER_CALL(modifyQp)

// (qp, mask, out: attributes): the library's own idea of the state follows
double queryQp(const Args& args, Instance& instance) {
  Qp* qp = instance.qps.at(args.u32(0));
  size_t length = 0;
  auto* words = static_cast<uint32_t*>(args.memory(2, &length));
  if (!qp || length < qp_words::COUNT * 4) return EINVAL;
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  const int mask = static_cast<int>(args.u32(1));
  const int error = errnoOf(instance.verbs.ibv_query_qp(qp->verbs, &attr, mask, &init));
  if (error) return error;
  qp->verbs->state = attr.qp_state;
  writeAttributes(attr, words);
  return 0;
}
NUMBER_CALL(queryQp)

}  // namespace

uint32_t adoptQp(const Args& args, Instance& instance, Qp* qp, int ringsAt) {
  if (args.has(ringsAt)) {
    qp->send = &qp->sendQueue;
    addQueue(qp, qp->send, Kind::Send, args, ringsAt);
  }
  if (args.has(ringsAt + 3)) {
    qp->receive = &qp->receiveQueue;
    addQueue(qp, qp->receive, Kind::Receive, args, ringsAt + 3);
  }
  qp->device->tables.pairsByQpn[qp->verbs->qp_num] = qp;
  countChildren(*qp, 1);
  return qp->number = instance.qps.add(qp);
}

void destroyQueuePairs(Device& device) {
  for (Qp* qp : device.instance->qps.items) {
    if (qp && qp->device == &device) destroy(*device.instance, qp);
  }
}

void registerQueuePairs(napi_env env, napi_value exports, Instance& instance) {
  EXPORT_CALL(createQp) EXPORT_CALL(destroyQp) EXPORT_CALL(modifyQp) EXPORT_CALL(queryQp)
}
