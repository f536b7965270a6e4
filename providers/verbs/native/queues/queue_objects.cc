// Completion queues and shared receive queues.

#include "instance.h"

rings::Ring ringAt(const Args& args, int at) {
  rings::Ring ring;
  ring.control = args.words(at);
  ring.mask = args.u32(at + 1) - 1;
  ring.strideBytes = args.u32(at + 2);
  return ring;
}

namespace {

// Of a shared queue that no XRC sender can address: beyond the 24 bits of their numbers.
constexpr uint32_t PLAIN_SRQ = 1u << 24;

// (device, ring, entries, stride)
double createCq(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  if (!device || !args.words(1)) return -EINVAL;
  auto* cq = new Cq{{}, device};
  cq->ring = ringAt(args, 1);
  cq->verbs = instance.verbs.ibv_create_cq(device->context, static_cast<int>(args.u32(2)), cq,
                                           device->channel, 0);
  if (!cq->verbs) {
    const int error = failure();
    delete cq;
    return -error;
  }
  cq->memory = args.keep(1);
  device->children++;
  return cq->number = instance.cqs.add(cq);
}
NUMBER_CALL(createCq)

// (cq, ring, entries, stride): unread completions have been moved over
double resizeCq(const Args& args, Instance& instance) {
  Cq* cq = instance.cqs.at(args.u32(0));
  if (!cq || !args.words(1)) return EINVAL;
  const int entries = static_cast<int>(args.u32(2));
  if (const int error = errnoOf(instance.verbs.ibv_resize_cq(cq->verbs, entries))) return error;
  release(instance, cq->memory);
  cq->ring = ringAt(args, 1);
  cq->memory = args.keep(1);
  return 0;
}
NUMBER_CALL(resizeCq)

int destroy(Instance& instance, Cq* cq) {
  if (!cq) return EINVAL;
  if (cq->children > 0) return EBUSY;
  if (const int error = errnoOf(instance.verbs.ibv_destroy_cq(cq->verbs))) return error;
  cq->device->children--;
  instance.cqs.remove(cq->number);
  release(instance, cq->memory);
  delete cq;
  return 0;
}

double destroyCq(const Args& args, Instance& instance) {
  return destroy(instance, instance.cqs.at(args.u32(0)));
}
NUMBER_CALL(destroyCq)

// (pd, maxWr, maxSge, slots x 3, submissions x 3, out: srqn)
double createSrq(const Args& args, Instance& instance) {
  Pd* pd = instance.pds.at(args.u32(0));
  if (!pd || !args.words(3) || !args.words(6) || !args.words(9)) return -EINVAL;
  auto* srq = new Srq(pd);
  ibv_srq_init_attr attr = {};
  attr.srq_context = srq;
  attr.attr.max_wr = args.u32(1);
  attr.attr.max_sge = args.u32(2);
  srq->verbs = instance.verbs.ibv_create_srq(pd->verbs, &attr);
  if (!srq->verbs) {
    const int error = failure();
    delete srq;
    return -error;
  }
  const uint32_t number = adoptSrq(args, instance, srq, 3);
  args.words(9)[0] = srq->queue.srqn = PLAIN_SRQ | number;
  return number;
}
NUMBER_CALL(createSrq)

// (srq, slots x 3, submissions x 3): larger rings with the same slots and indices
double replaceSrqRings(const Args& args, Instance& instance) {
  Srq* srq = instance.srqs.at(args.u32(0));
  if (!srq || !args.words(1) || !args.words(4)) return EINVAL;
  for (napi_ref& memory : srq->memory) release(instance, memory);
  srq->queue.ring = ringAt(args, 1);
  srq->queue.submissions = ringAt(args, 4);
  srq->memory[0] = args.keep(1);
  srq->memory[1] = args.keep(4);
  return 0;
}
NUMBER_CALL(replaceSrqRings)

// (srq, mask, maxWr, limit)
double modifySrq(const Args& args, Instance& instance) {
  Srq* srq = instance.srqs.at(args.u32(0));
  if (!srq) return EINVAL;
  ibv_srq_attr attr = {};
  attr.max_wr = args.u32(2);
  attr.srq_limit = args.u32(3);
  return errnoOf(instance.verbs.ibv_modify_srq(srq->verbs, &attr, args.i32(1)));
}
NUMBER_CALL(modifySrq)

int destroy(Instance& instance, Srq* srq) {
  if (!srq) return EINVAL;
  if (srq->children > 0) return EBUSY;
  if (const int error = errnoOf(instance.verbs.ibv_destroy_srq(srq->verbs))) return error;
  srq->pd->device->tables.queues.remove(&srq->queue);
  srq->pd->children--;
  if (srq->cq) srq->cq->children--;
  if (srq->xrcd) srq->xrcd->children--;
  instance.srqs.remove(srq->number);
  for (napi_ref& memory : srq->memory) release(instance, memory);
  delete srq;
  return 0;
}

double destroySrq(const Args& args, Instance& instance) {
  return destroy(instance, instance.srqs.at(args.u32(0)));
}
NUMBER_CALL(destroySrq)

}  // namespace

uint32_t adoptSrq(const Args& args, Instance& instance, Srq* srq, int ringsAt) {
  srq->queue.kind = rings::Kind::Shared;
  srq->queue.srq = srq->verbs;
  srq->queue.ring = ringAt(args, ringsAt);
  srq->queue.submissions = ringAt(args, ringsAt + 3);
  srq->memory[0] = args.keep(ringsAt);
  srq->memory[1] = args.keep(ringsAt + 3);
  srq->pd->device->tables.queues.add(&srq->queue);
  srq->pd->children++;
  if (srq->cq) srq->cq->children++;
  if (srq->xrcd) srq->xrcd->children++;
  return srq->number = instance.srqs.add(srq);
}

void destroySharedReceives(Device& device) {
  for (Srq* srq : device.instance->srqs.items) {
    if (srq && srq->pd->device == &device) destroy(*device.instance, srq);
  }
}

void destroyCompletionQueues(Device& device) {
  for (Cq* cq : device.instance->cqs.items) {
    if (cq && cq->device == &device) destroy(*device.instance, cq);
  }
}

void registerCompletionQueues(napi_env env, napi_value exports, Instance& instance) {
  EXPORT_CALL(createCq) EXPORT_CALL(resizeCq) EXPORT_CALL(destroyCq)
}

void registerSharedReceives(napi_env env, napi_value exports, Instance& instance) {
  EXPORT_CALL(createSrq) EXPORT_CALL(replaceSrqRings) EXPORT_CALL(modifySrq) EXPORT_CALL(destroySrq)
}
