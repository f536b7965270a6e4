// Notifications: the completion channel and the asynchronous events, each by its descriptor. The
// handlers run from the event loop's poll phase, hence never inside a call of the consumer.
#include <fcntl.h>

#include <cerrno>

#include "instance.h"

namespace {

void call(Instance& instance, napi_ref function, double first, double second) {
  napi_env env = instance.env;
  napi_handle_scope scope;
  napi_open_handle_scope(env, &scope);
  napi_value callback, global, result;
  napi_get_reference_value(env, function, &callback);
  napi_get_global(env, &global);
  napi_value arguments[] = {number(env, first), number(env, second)};
  napi_make_callback(env, instance.async, global, callback, 2, arguments, &result);
  bool threw = false;
  napi_is_exception_pending(env, &threw);
  if (threw) {
    napi_value error;
    napi_get_and_clear_last_exception(env, &error);
    napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}

// All events are taken off the channel before the first handler runs: a handler may destroy its
// queue, which waits for the acknowledgement of what has been fetched.
void onChannel(uv_poll_t* watch, int, int) {
  auto& instance = *static_cast<Instance*>(watch->data);
  uint32_t fired[64];
  size_t count = 0;
  ibv_cq* verbs;
  void* context;
  while (count < 64 &&
         instance.library.ibv_get_cq_event(instance.channel, &verbs, &context) == 0) {
    instance.library.ibv_ack_cq_events(verbs, 1);
    fired[count++] = static_cast<Cq*>(context)->number;
  }
  for (size_t i = 0; i < count; i++) call(instance, instance.onNotify, fired[i], 0);
}

uint32_t numberOf(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return static_cast<Cq*>(event.element.cq->cq_context)->number;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return static_cast<Qp*>(event.element.qp->qp_context)->number;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return static_cast<Srq*>(event.element.srq->srq_context)->number;
    default:
      return 0;
  }
}

void onAsync(uv_poll_t* watch, int, int) {
  auto& instance = *static_cast<Instance*>(watch->data);
  ibv_async_event event;
  if (instance.library.ibv_get_async_event(instance.context, &event) != 0) return;
  const uint32_t object = numberOf(event);
  instance.library.ibv_ack_async_event(&event);
  call(instance, instance.onEvent, event.event_type, object);
}

uv_poll_t* watchFd(Instance& instance, int fd, uv_poll_cb callback) {
  uv_loop_t* loop;
  napi_get_uv_event_loop(instance.env, &loop);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  auto* watch = new uv_poll_t;
  watch->data = &instance;
  uv_poll_init(loop, watch, fd);
  uv_poll_start(watch, UV_READABLE, callback);
  // Whether the process has a reason to live is core's to say (KEEP_ALIVE).
  uv_unref(reinterpret_cast<uv_handle_t*>(watch));
  return watch;
}

void closeWatch(uv_poll_t*& watch) {
  if (!watch) return;
  uv_poll_stop(watch);
  uv_close(reinterpret_cast<uv_handle_t*>(watch),
           [](uv_handle_t* handle) { delete reinterpret_cast<uv_poll_t*>(handle); });
  watch = nullptr;
}

}  // namespace

int startWatching(Instance& instance) {
  napi_value name;
  napi_create_string_utf8(instance.env, "verbs-rings", NAPI_AUTO_LENGTH, &name);
  if (napi_async_init(instance.env, nullptr, name, &instance.async) != napi_ok) return EIO;
  instance.channelWatch = watchFd(instance, instance.channel->fd, onChannel);
  instance.asyncWatch = watchFd(instance, instance.context->async_fd, onAsync);
  return 0;
}

void stopWatching(Instance& instance) {
  closeWatch(instance.channelWatch);
  closeWatch(instance.asyncWatch);
  if (instance.async) napi_async_destroy(instance.env, instance.async);
  instance.async = nullptr;
}
