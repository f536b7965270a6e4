#include "unix_socket_binding.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <string>

#include "thread_descriptors.h"
#include "unix_socket.h"

namespace dapl {
namespace {

napi_value fail(napi_env env, int error) {
  napi_throw_error(env, uv_err_name(-error), strerror(error));
  return nullptr;
}

napi_value number(napi_env env, double value) {
  napi_value result = nullptr;
  napi_create_double(env, value, &result);
  return result;
}

/// A socket that JavaScript has functions of: it goes when it is closed and the last of these is
/// collected, or with the thread.
class UnixSocket {
 public:
  UnixSocket(napi_env env, int fd) : env_(env), fd_(fd) {
    napi_add_env_cleanup_hook(env, onThreadEnd, this);
  }

  int fd() const { return fd_; }

  void watch(napi_value onReadable) {
    unwatch();
    if (fd_ < 0) return;
    napi_create_reference(env_, onReadable, 1, &onReadable_);
    uv_loop_t* loop;
    napi_get_uv_event_loop(env_, &loop);
    poll_ = new uv_poll_t;
    poll_->data = this;
    uv_poll_init(loop, poll_, fd_);
    // What holds the process alive is the device, not the sockets that it meets others by.
    uv_unref(reinterpret_cast<uv_handle_t*>(poll_));
    uv_poll_start(poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
      static_cast<UnixSocket*>(poll->data)->tell();
    });
  }

  /// The descriptor is the caller's from now on.
  int release() {
    unwatch();
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

  void close() {
    const int fd = release();
    if (fd >= 0) ::close(fd);
  }

  void retain() { users_++; }
  void drop() {
    if (--users_ > 0) return;
    napi_remove_env_cleanup_hook(env_, onThreadEnd, this);
    close();
    delete this;
  }

 private:
  ~UnixSocket() = default;

  static void onThreadEnd(void* socket) { static_cast<UnixSocket*>(socket)->close(); }

  void unwatch() {
    if (onReadable_) napi_delete_reference(env_, onReadable_);
    onReadable_ = nullptr;
    if (!poll_) return;
    uv_poll_stop(poll_);
    uv_close(reinterpret_cast<uv_handle_t*>(poll_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_poll_t*>(handle); });
    poll_ = nullptr;
  }

  void tell() {
    napi_handle_scope scope;
    napi_open_handle_scope(env_, &scope);
    napi_value global = nullptr, function = nullptr, result = nullptr;
    napi_get_global(env_, &global);
    napi_get_reference_value(env_, onReadable_, &function);
    if (napi_make_callback(env_, nullptr, global, function, 0, nullptr, &result) ==
        napi_pending_exception) {
      napi_value error = nullptr;
      napi_get_and_clear_last_exception(env_, &error);
      napi_fatal_exception(env_, error);
    }
    napi_close_handle_scope(env_, scope);
  }

  napi_env env_;
  int fd_;
  int users_ = 0;
  uv_poll_t* poll_ = nullptr;
  napi_ref onReadable_ = nullptr;
};

template <size_t kCount>
struct SocketCall {
  napi_value arguments[kCount] = {};
  UnixSocket* socket = nullptr;

  SocketCall(napi_env env, napi_callback_info info) {
    size_t count = kCount;
    void* data = nullptr;
    napi_get_cb_info(env, info, &count, arguments, nullptr, &data);
    socket = static_cast<UnixSocket*>(data);
  }
};

struct SocketMethod {
  const char* name;
  napi_callback callback;
};

template <size_t kCount>
napi_value socketObject(napi_env env, int fd, const SocketMethod (&methods)[kCount]) {
  UnixSocket* const socket = new UnixSocket(env, fd);
  napi_value object = nullptr;
  napi_create_object(env, &object);
  socket->retain();
  for (const SocketMethod& method : methods) {
    napi_value function = nullptr;
    // Refused to a thread that has been ended meanwhile.
    if (napi_create_function(env, method.name, NAPI_AUTO_LENGTH, method.callback, socket,
                             &function) != napi_ok) {
      break;
    }
    socket->retain();
    napi_add_finalizer(
        env, function, socket,
        [](napi_env, void* data, void*) { static_cast<UnixSocket*>(data)->drop(); }, nullptr,
        nullptr);
    napi_set_named_property(env, object, method.name, function);
  }
  socket->drop();
  return object;
}

/// send(bytes, descriptors): false while the peer's queue is full
napi_value sendOn(napi_env env, napi_callback_info info) {
  const SocketCall<2> call(env, info);
  void* bytes = nullptr;
  size_t length = 0;
  napi_get_typedarray_info(env, call.arguments[0], nullptr, &length, &bytes, nullptr, nullptr);
  uint32_t count = 0;
  napi_get_array_length(env, call.arguments[1], &count);
  if (count > kMaxDescriptors) return fail(env, EMSGSIZE);
  int descriptors[kMaxDescriptors];
  for (uint32_t i = 0; i < count; i++) {
    napi_value element = nullptr;
    int32_t value = -1;
    napi_get_element(env, call.arguments[1], i, &element);
    napi_get_value_int32(env, element, &value);
    descriptors[i] = value;
  }
  const int result = sendMessage(call.socket->fd(), bytes, length, descriptors, count);
  if (result != 0 && result != -EAGAIN) return fail(env, -result);
  napi_value sent = nullptr;
  napi_get_boolean(env, result == 0, &sent);
  return sent;
}

/// @param keep the descriptors are the thread's
napi_value receiveFrom(napi_env env, const UnixSocket& from, bool keep) {
  Message message;
  const int result = receiveMessage(from.fd(), &message);
  if (result == -EAGAIN) return nullptr;
  napi_value object = nullptr;
  if (result == -EPIPE) {
    napi_get_null(env, &object);
    return object;
  }
  if (result != 0) return fail(env, -result);
  void* room = nullptr;
  napi_value buffer = nullptr, bytes = nullptr, descriptors = nullptr;
  if (napi_create_arraybuffer(env, message.length, &room, &buffer) != napi_ok) {
    // The thread has been ended meanwhile: what has come for it is lost with it.
    for (size_t i = 0; i < message.descriptorCount; i++) close(message.descriptors[i]);
    return nullptr;
  }
  memcpy(room, message.bytes, message.length);
  napi_create_typedarray(env, napi_uint8_array, message.length, buffer, 0, &bytes);
  napi_create_array_with_length(env, message.descriptorCount, &descriptors);
  for (size_t i = 0; i < message.descriptorCount; i++) {
    if (keep) keepDescriptor(env, message.descriptors[i]);
    napi_set_element(env, descriptors, static_cast<uint32_t>(i),
                     number(env, message.descriptors[i]));
  }
  napi_create_object(env, &object);
  napi_set_named_property(env, object, "bytes", bytes);
  napi_set_named_property(env, object, "descriptors", descriptors);
  return object;
}

/// receive(): { bytes, descriptors }; undefined while nothing waits, null at the end
napi_value receiveOn(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  return receiveFrom(env, *call.socket, false);
}

/// take(): as receive, and the descriptors are the thread's
napi_value takeFrom(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  return receiveFrom(env, *call.socket, true);
}

/// identity(): { pid, uid, isOwnUser } of the process at the other end, as the system vouches
napi_value identityOfPeer(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  PeerIdentity identity;
  const int result = identityOf(call.socket->fd(), &identity);
  if (result != 0) return fail(env, -result);
  napi_value object = nullptr;
  napi_create_object(env, &object);
  napi_set_named_property(env, object, "pid", number(env, identity.pid));
  napi_set_named_property(env, object, "uid", number(env, identity.uid));
  napi_value own = nullptr;
  napi_get_boolean(env, isOwnUser(identity), &own);
  napi_set_named_property(env, object, "isOwnUser", own);
  return object;
}

/// watch(onReadable): called while something waits, or the end
napi_value watchSocket(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  call.socket->watch(call.arguments[0]);
  return nullptr;
}

/// release(): the descriptor, which is the caller's from now on
napi_value releaseSocket(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  return number(env, call.socket->release());
}

napi_value closeSocket(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  call.socket->close();
  return nullptr;
}

constexpr SocketMethod kConnected[] = {
    {"send", sendOn},             {"receive", receiveOn}, {"take", takeFrom},
    {"identity", identityOfPeer}, {"watch", watchSocket}, {"release", releaseSocket},
    {"close", closeSocket},
};

/// accept(): a connected socket, or undefined while nothing waits
napi_value acceptOn(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  const int fd = acceptFrom(call.socket->fd());
  if (fd == -EAGAIN || fd == -ECONNABORTED) return nullptr;
  return fd < 0 ? fail(env, -fd) : socketObject(env, fd, kConnected);
}

constexpr SocketMethod kListening[] = {
    {"accept", acceptOn},
    {"watch", watchSocket},
    {"close", closeSocket},
};

std::string nameOf(napi_env env, napi_value value) {
  char name[kMaxSocketName + 2];
  size_t length = 0;
  napi_get_value_string_utf8(env, value, name, sizeof(name), &length);
  return std::string(name, length);
}

}  // namespace

napi_value listenUnix(napi_env env, napi_callback_info info) {
  const SocketCall<2> call(env, info);
  const std::string name = nameOf(env, call.arguments[0]);
  uint32_t backlog = 0;
  napi_get_value_uint32(env, call.arguments[1], &backlog);
  const int fd = listenAbstract(name.data(), name.size(), static_cast<int>(backlog));
  return fd < 0 ? fail(env, -fd) : socketObject(env, fd, kListening);
}

napi_value connectUnix(napi_env env, napi_callback_info info) {
  const SocketCall<1> call(env, info);
  const std::string name = nameOf(env, call.arguments[0]);
  const int fd = connectAbstract(name.data(), name.size());
  return fd < 0 ? fail(env, -fd) : socketObject(env, fd, kConnected);
}

}  // namespace dapl
