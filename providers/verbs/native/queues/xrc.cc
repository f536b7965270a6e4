// XRC: domains, their shared receive queues, and queue pairs of either side.

#include "instance.h"
#include "abi/xrc_abi.h"
#include "queues/qp_record.h"

namespace {

// (device, descriptor of a file or -1, flags of open(2))
double openXrcd(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  if (!device) return -EINVAL;
  verbs_context* verbs = extended(device->context, &verbs_context::open_xrcd);
  if (!verbs) return -EOPNOTSUPP;
  ibv_xrcd_init_attr attr = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, args.i32(1),
                             args.i32(2)};
  ibv_xrcd* opened = verbs->open_xrcd(device->context, &attr);
  if (!opened) return -failure();
  auto* xrcd = new Xrcd{device};
  xrcd->verbs = opened;
  device->children++;
  return xrcd->number = instance.xrcds.add(xrcd);
}
NUMBER_CALL(openXrcd)

int close(Instance& instance, Xrcd* xrcd) {
  if (!xrcd) return EINVAL;
  if (xrcd->children > 0) return EBUSY;
  verbs_context* verbs = extended(xrcd->device->context, &verbs_context::close_xrcd);
  if (!verbs) return EOPNOTSUPP;
  if (const int error = errnoOf(verbs->close_xrcd(xrcd->verbs))) return error;
  xrcd->device->children--;
  instance.xrcds.remove(xrcd->number);
  delete xrcd;
  return 0;
}

double closeXrcd(const Args& args, Instance& instance) {
  return close(instance, instance.xrcds.at(args.u32(0)));
}
NUMBER_CALL(closeXrcd)

// (pd, maxWr, maxSge, slots x 3, submissions x 3, out: srqn, domain, cq)
double createXrcSrq(const Args& args, Instance& instance) {
  Pd* pd = instance.pds.at(args.u32(0));
  Xrcd* xrcd = instance.xrcds.at(args.u32(10));
  Cq* cq = instance.cqs.at(args.u32(11));
  if (!pd || !xrcd || !cq || !args.words(3) || !args.words(6) || !args.words(9)) return -EINVAL;
  ibv_context* context = pd->device->context;
  verbs_context* verbs = extended(context, &verbs_context::create_srq_ex);
  if (!verbs || !extended(context, &verbs_context::get_srq_num)) return -EOPNOTSUPP;
  auto* srq = new Srq{pd};
  srq->cq = cq;
  srq->xrcd = xrcd;
  ibv_srq_init_attr_ex attr = {};
  attr.srq_context = srq;
  attr.attr.max_wr = args.u32(1);
  attr.attr.max_sge = args.u32(2);
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                   IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = IBV_SRQT_XRC;
  attr.pd = pd->verbs;
  attr.xrcd = xrcd->verbs;
  attr.cq = cq->verbs;
  srq->verbs = verbs->create_srq_ex(context, &attr);
  int error = srq->verbs ? 0 : failure();
  if (!error && (error = errnoOf(verbs->get_srq_num(srq->verbs, &srq->queue.srqn)))) {
    instance.verbs.ibv_destroy_srq(srq->verbs);
    error = failureOf(1, error);
  }
  if (error) {
    delete srq;
    return -error;
  }
  args.words(9)[0] = srq->queue.srqn;
  return adoptSrq(args, instance, srq, 3);
}
NUMBER_CALL(createXrcSrq)

double adopt(const Args& args, Instance& instance, Qp* qp, uint32_t* out, int ringsAt) {
  if (!qp->verbs) {
    const int error = failure();
    delete qp;
    return -error;
  }
  out[0] = qp->verbs->qp_num;
  return adoptQp(args, instance, qp, ringsAt);
}

// (record: see qp_record.h; send ring x 3)
double createXrcInitiator(const Args& args, Instance& instance) {
  uint32_t* words = qpRecord(args);
  if (!words) return -EINVAL;
  Pd* pd = instance.pds.at(words[qp_record::PD]);
  Cq* sendCq = instance.cqs.at(words[qp_record::SEND_CQ]);
  if (!pd || !sendCq || !args.words(1)) return -EINVAL;
  ibv_context* context = pd->device->context;
  verbs_context* verbs = extended(context, &verbs_context::create_qp_ex);
  if (!verbs) return -EOPNOTSUPP;
  auto* qp = new Qp();
  qp->device = pd->device;
  qp->pd = pd;
  qp->sendCq = sendCq;
  qp->context = words[qp_record::CONTEXT];
  ibv_qp_init_attr_ex attr = {};
  attr.qp_context = qp;
  attr.send_cq = sendCq->verbs;
  attr.cap = {words[qp_record::MAX_SEND_WR], 0, words[qp_record::MAX_SEND_SGE], 0,
              words[qp_record::MAX_INLINE]};
  attr.qp_type = IBV_QPT_XRC_SEND;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd->verbs;
  qp->verbs = verbs->create_qp_ex(context, &attr);
  return adopt(args, instance, qp, &words[qp_record::QPN], 1);
}
NUMBER_CALL(createXrcInitiator)

constexpr int kNoRings = 10;

Qp* newTarget(Xrcd* xrcd) {
  auto* qp = new Qp();
  qp->device = xrcd->device;
  qp->xrcd = xrcd;
  return qp;
}

// (domain, out: qpn)
double createXrcTarget(const Args& args, Instance& instance) {
  Xrcd* xrcd = instance.xrcds.at(args.u32(0));
  if (!xrcd || !args.words(1)) return -EINVAL;
  ibv_context* context = xrcd->device->context;
  verbs_context* verbs = extended(context, &verbs_context::create_qp_ex);
  if (!verbs) return -EOPNOTSUPP;
  Qp* qp = newTarget(xrcd);
  ibv_qp_init_attr_ex attr = {};
  attr.qp_context = qp;
  attr.qp_type = IBV_QPT_XRC_RECV;
  attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  attr.xrcd = xrcd->verbs;
  qp->verbs = verbs->create_qp_ex(context, &attr);
  return adopt(args, instance, qp, args.words(1), kNoRings);
}
NUMBER_CALL(createXrcTarget)

// (domain, qpn, out: qpn): one that another process has made
double openXrcTarget(const Args& args, Instance& instance) {
  Xrcd* xrcd = instance.xrcds.at(args.u32(0));
  if (!xrcd || !args.words(2)) return -EINVAL;
  ibv_context* context = xrcd->device->context;
  verbs_context* verbs = extended(context, &verbs_context::open_qp);
  if (!verbs) return -EOPNOTSUPP;
  Qp* qp = newTarget(xrcd);
  ibv_qp_open_attr attr = {};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT |
                   IBV_QP_OPEN_ATTR_TYPE;
  attr.qp_num = args.u32(1);
  attr.xrcd = xrcd->verbs;
  attr.qp_context = qp;
  attr.qp_type = IBV_QPT_XRC_RECV;
  qp->verbs = verbs->open_qp(context, &attr);
  return adopt(args, instance, qp, args.words(2), kNoRings);
}
NUMBER_CALL(openXrcTarget)

}  // namespace

void closeXrcDomains(Device& device) {
  for (Xrcd* xrcd : device.instance->xrcds.items) {
    if (xrcd && xrcd->device == &device) close(*device.instance, xrcd);
  }
}

void registerXrc(napi_env env, napi_value exports, Instance& instance) {
  EXPORT_CALL(openXrcd) EXPORT_CALL(closeXrcd) EXPORT_CALL(createXrcSrq)
  EXPORT_CALL(createXrcInitiator) EXPORT_CALL(createXrcTarget) EXPORT_CALL(openXrcTarget)
}
