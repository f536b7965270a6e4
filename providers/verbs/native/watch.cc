#include "watch.h"

#include <fcntl.h>

#include <cerrno>

void Shutdown::settle() {
  if (open > 0 || !ending) return;
  napi_remove_async_cleanup_hook(hook);
  delete this;
}

Watch* openWatch(Instance& instance, int fd, void (*onReadable)(void*), void* data) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return nullptr;
  auto* watch = new Watch{{}, instance.shutdown, onReadable, data};
  if (const int failure = uv_poll_init(instance.loop, &watch->handle, fd)) {
    delete watch;
    errno = -failure;
    return nullptr;
  }
  watch->handle.data = watch;
  watch->shutdown->open++;
  resumeWatch(watch);
  setAlive(watch, false);
  return watch;
}

void pauseWatch(Watch* watch) { uv_poll_stop(&watch->handle); }

void resumeWatch(Watch* watch) {
  uv_poll_start(&watch->handle, UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto* fired = static_cast<Watch*>(handle->data);
    fired->onReadable(fired->data);
  });
}

void setAlive(Watch* watch, bool alive) {
  auto* handle = reinterpret_cast<uv_handle_t*>(&watch->handle);
  if (alive) uv_ref(handle);
  else uv_unref(handle);
}

void closeWatch(Watch*& watch) {
  if (!watch) return;
  uv_poll_stop(&watch->handle);
  uv_close(reinterpret_cast<uv_handle_t*>(&watch->handle), [](uv_handle_t* handle) {
    auto* closed = static_cast<Watch*>(handle->data);
    Shutdown* shutdown = closed->shutdown;
    delete closed;
    shutdown->open--;
    shutdown->settle();
  });
  watch = nullptr;
}

void callHandler(Instance& instance, napi_ref function, const double* arguments, size_t count) {
  napi_env env = instance.env;
  napi_handle_scope scope;
  if (napi_open_handle_scope(env, &scope) != napi_ok) return;
  napi_value callback = nullptr, global = nullptr, result = nullptr, values[8] = {};
  napi_get_reference_value(env, function, &callback);
  napi_get_global(env, &global);
  for (size_t i = 0; i < count && i < 8; i++) values[i] = number(env, arguments[i]);
  napi_make_callback(env, instance.async, global, callback, count, values, &result);
  bool threw = false;
  napi_is_exception_pending(env, &threw);
  napi_value error = nullptr;
  if (threw && napi_get_and_clear_last_exception(env, &error) == napi_ok) {
    napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}
