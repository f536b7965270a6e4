// The data path: one number in, one number out, so that a call costs as little as it can.
#include "instance.h"

namespace {

Instance& hot(napi_env env, napi_callback_info info, uint32_t* argument) {
  size_t count = 1;
  napi_value value = nullptr;
  void* data = nullptr;
  napi_get_cb_info(env, info, &count, &value, nullptr, &data);
  napi_get_value_uint32(env, value, argument);
  errno = 0;
  return *static_cast<Instance*>(data);
}

napi_value small(napi_env env, int32_t value) {
  napi_value result = nullptr;
  napi_create_int32(env, value, &result);
  return result;
}

napi_value postSends(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Qp* qp = hot(env, info, &which).qps.at(which);
  return small(env, qp && qp->send ? rings::postSends(qp->device->tables, *qp->send) : EINVAL);
}

napi_value postReceives(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Qp* qp = hot(env, info, &which).qps.at(which);
  if (!qp || !qp->receive) return small(env, EINVAL);
  return small(env, rings::postReceives(qp->device->tables, *qp->receive));
}

napi_value postShared(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Srq* srq = hot(env, info, &which).srqs.at(which);
  return small(env, srq ? rings::postShared(srq->queue) : EINVAL);
}

// => how many completions are readable, or -1
napi_value poll(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Cq* cq = hot(env, info, &which).cqs.at(which);
  return small(env, cq ? rings::poll(cq->device->tables, *cq) : -1);
}

// (cq << 1 | solicitedOnly) => errno
napi_value arm(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Cq* cq = hot(env, info, &which).cqs.at(which >> 1);
  if (!cq) return small(env, EINVAL);
  return small(env, errnoOf(cq->verbs->context->ops.req_notify_cq(cq->verbs, which & 1)));
}

// (device) => how many completions have come into rings that were not there before
napi_value progress(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Instance& instance = hot(env, info, &which);
  uint32_t arrived = 0;
  for (Cq* cq : instance.cqs.items) {
    if (!cq || cq->device->number != which) continue;
    const uint32_t before = cq->ring.producer();
    rings::poll(cq->device->tables, *cq);
    arrived += cq->ring.producer() - before;
  }
  return small(env, static_cast<int32_t>(arrived));
}

}  // namespace

void registerData(napi_env env, napi_value exports, Instance& instance) {
  exportFunction(env, exports, "postSends", postSends, &instance);
  exportFunction(env, exports, "postReceives", postReceives, &instance);
  exportFunction(env, exports, "postShared", postShared, &instance);
  exportFunction(env, exports, "poll", poll, &instance);
  exportFunction(env, exports, "arm", arm, &instance);
  exportFunction(env, exports, "progress", progress, &instance);
}
