#include "device_events.h"

#include "errno_of.h"
#include "watch.h"

namespace {

// More wait for the next turn of the loop, so that no device starves the rest.
constexpr int EVENTS_A_TURN = 64;

// The kernel has taken the device away, or will tell no more of it.
void tellFailure(Device& device, int call) {
  const double told[] = {IBV_EVENT_DEVICE_FATAL, static_cast<double>(failure()),
                         static_cast<double>(call)};
  callHandler(*device.instance, device.onEvent, told, 3);
}

// An event is acknowledged before its handler runs: destroying what it is about waits for that. And
// the next one is fetched after the handler, so that none is of an object that is gone.
void onChannel(void* data) {
  auto& instance = *static_cast<Device*>(data)->instance;
  const uint32_t which = static_cast<Device*>(data)->number;
  for (int i = 0; i < EVENTS_A_TURN; i++) {
    Device* device = instance.devices.at(which);  // a handler may have closed it
    ibv_cq* verbs;
    void* context;
    if (device != data || !device->channelWatch) return;
    errno = 0;
    if (instance.verbs.ibv_get_cq_event(device->channel, &verbs, &context) != 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      closeWatch(device->channelWatch);  // it would report that for ever
      return tellFailure(*device, 1);
    }
    instance.verbs.ibv_ack_cq_events(verbs, 1);
    const double cq = static_cast<Cq*>(context)->number;
    callHandler(instance, device->onNotify, &cq, 1);
  }
}

uint32_t numberOf(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return static_cast<Cq*>(event.element.cq->cq_context)->number;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return static_cast<Qp*>(event.element.qp->qp_context)->number;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return static_cast<Srq*>(event.element.srq->srq_context)->number;
    default:
      return 0;
  }
}

void onAsync(void* data) {
  auto& instance = *static_cast<Device*>(data)->instance;
  const uint32_t which = static_cast<Device*>(data)->number;
  for (int i = 0; i < EVENTS_A_TURN; i++) {
    Device* device = instance.devices.at(which);
    ibv_async_event event;
    if (device != data || !device->asyncWatch) return;
    errno = 0;
    if (instance.verbs.ibv_get_async_event(device->context, &event) != 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      closeWatch(device->asyncWatch);
      return tellFailure(*device, 0);
    }
    const double told[] = {static_cast<double>(event.event_type),
                           static_cast<double>(numberOf(event))};
    instance.verbs.ibv_ack_async_event(&event);
    callHandler(instance, device->onEvent, told, 2);
  }
}

}  // namespace

void drainAsyncEvents(Instance& instance) {
  for (size_t i = 0; i < instance.devices.items.size(); i++) {
    Device* device = instance.devices.items[i];
    if (device && device->asyncWatch) onAsync(device);
  }
}

int startEvents(Device& device) {
  Instance& instance = *device.instance;
  device.channelWatch = openWatch(instance, device.channel->fd, onChannel, &device);
  if (!device.channelWatch) return errno;
  device.asyncWatch = openWatch(instance, device.context->async_fd, onAsync, &device);
  return device.asyncWatch ? 0 : errno;
}

void stopEvents(Device& device) {
  closeWatch(device.channelWatch);
  closeWatch(device.asyncWatch);
}

void setEventsAlive(Device& device, bool alive) {
  if (device.channelWatch) setAlive(device.channelWatch, alive);
  if (device.asyncWatch) setAlive(device.asyncWatch, alive);
}
