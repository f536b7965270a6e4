#include "umad_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "umad_abi.h"

namespace umad {

namespace {

// Written by one job at most; in between, what has arrived is read.
constexpr size_t kBatch = 16;

int errnoOf(ssize_t result) { return result < 0 ? errno : 0; }

}  // namespace

int File::open(napi_env env, Files& files, const char* path, napi_value onEvent) {
  const int fd = files.system.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -errno;
  auto* file = new File(env, files, fd);
  napi_value name;
  napi_create_string_utf8(env, "umad", NAPI_AUTO_LENGTH, &name);
  napi_create_reference(env, onEvent, 1, &file->onEvent_);
  napi_async_init(env, nullptr, name, &file->context_);
  size_t number = 1;
  while (number < files.items.size() && files.items[number]) number++;
  if (number == files.items.size()) files.items.push_back(nullptr);
  files.items[number] = file;
  file->number_ = static_cast<uint32_t>(number);
  return static_cast<int>(number);
}

int File::registerAgent(void* registration) {
  if (const int error = errnoOf(system_.ioctl(fd_, kRegisterAgent2, registration))) return error;
  agentId = static_cast<Registration*>(registration)->id;
  registered_ = true;
  return startWatching();
}

int File::write(uint32_t token, const uint8_t* bytes, size_t lengthBytes) {
  if (closing_) return ENODEV;
  waiting_.push_back({token, 0, std::vector<uint8_t>(bytes, bytes + lengthBytes)});
  if (!job_) startJob();
  return 0;
}

ssize_t File::read(uint8_t* into, size_t lengthBytes) {
  if (job_) return -EAGAIN;
  if (fd_ < 0) return -ENODEV;
  const ssize_t length = system_.read(fd_, into, lengthBytes);
  return length < 0 ? -errno : length;
}

void File::close() {
  if (closing_) return;
  closing_ = true;
  if (!job_) startJob();
}

bool File::abandon() {
  abandoned_ = true;
  stopWatching();
  if (job_) return true;
  if (fd_ >= 0) system_.close(fd_);
  end();
  return false;
}

int File::startWatching() {
  if (!registered_ || closing_ || abandoned_) return 0;
  if (!watch_) {
    uv_loop_t* loop = nullptr;
    napi_get_uv_event_loop(env_, &loop);
    auto* watch = new uv_poll_t;
    watch->data = this;
    if (const int error = uv_poll_init(loop, watch, fd_)) {
      delete watch;
      return -error;
    }
    watch_ = watch;
  }
  // Whether the process has a reason to live is core's to say (KEEP_ALIVE).
  uv_unref(reinterpret_cast<uv_handle_t*>(watch_));
  return -uv_poll_start(watch_, UV_READABLE, [](uv_poll_t* watch, int, int) {
    static_cast<File*>(watch->data)->tell(Event::Readable, 0, 0);
  });
}

void File::stopWatching() {
  if (!watch_) return;
  uv_poll_stop(watch_);
  uv_close(reinterpret_cast<uv_handle_t*>(watch_),
           [](uv_handle_t* handle) { delete reinterpret_cast<uv_poll_t*>(handle); });
  watch_ = nullptr;
}

void File::startJob() {
  if (closing_) {
    stopWatching();
  } else if (watch_) {
    uv_poll_stop(watch_);
  }
  const size_t count = waiting_.size() < kBatch ? waiting_.size() : kBatch;
  writing_.assign(std::make_move_iterator(waiting_.begin()),
                  std::make_move_iterator(waiting_.begin() + static_cast<long>(count)));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<long>(count));
  closeInJob_ = closing_ && waiting_.empty();
  napi_value name;
  napi_create_string_utf8(env_, "umad", NAPI_AUTO_LENGTH, &name);
  napi_create_async_work(
      env_, nullptr, name, [](napi_env, void* data) { static_cast<File*>(data)->runJob(); },
      [](napi_env, napi_status, void* data) { static_cast<File*>(data)->endJob(); }, this, &job_);
  napi_queue_async_work(env_, job_);
}

// On a thread of the pool; nobody else touches the file or `writing_` meanwhile.
void File::runJob() {
  for (Packet& packet : writing_) {
    packet.error = errnoOf(system_.write(fd_, packet.bytes.data(), packet.bytes.size()));
  }
  if (!closeInJob_) return;
  if (registered_) {
    uint32_t id = agentId;
    system_.ioctl(fd_, kUnregisterAgent, &id);
  }
  system_.close(fd_);
}

void File::endJob() {
  napi_delete_async_work(env_, job_);
  job_ = nullptr;
  const std::vector<Packet> written = std::move(writing_);
  writing_.clear();
  const bool closed = closeInJob_;
  if (closed) fd_ = -1;
  if (abandoned_) {
    if (!closed) system_.close(fd_);
    end();
    return;
  }
  // What has been written is known before anything that answers it is read.
  for (const Packet& packet : written) tell(Event::Written, packet.token, packet.error);
  if (closed) {
    tell(Event::Closed, 0, 0);
    end();
    return;
  }
  if (job_) return;  // a handler has written more
  startWatching();
  tell(Event::Readable, 0, 0);
  if (!job_ && (closing_ || !waiting_.empty())) startJob();
}

void File::tell(Event event, uint32_t token, int error) {
  napi_handle_scope scope;
  if (napi_open_handle_scope(env_, &scope) != napi_ok) return;
  napi_value callback, receiver, result, arguments[3];
  napi_get_reference_value(env_, onEvent_, &callback);
  napi_get_global(env_, &receiver);
  napi_create_uint32(env_, static_cast<uint32_t>(event), &arguments[0]);
  napi_create_uint32(env_, token, &arguments[1]);
  napi_create_int32(env_, error, &arguments[2]);
  napi_make_callback(env_, context_, receiver, callback, 3, arguments, &result);
  bool threw = false;
  napi_is_exception_pending(env_, &threw);
  if (threw) {
    napi_value thrown;
    napi_get_and_clear_last_exception(env_, &thrown);
    napi_fatal_exception(env_, thrown);
  }
  napi_close_handle_scope(env_, scope);
}

void File::end() {
  stopWatching();
  files_.items[number_] = nullptr;
  if (context_) napi_async_destroy(env_, context_);
  if (onEvent_) napi_delete_reference(env_, onEvent_);
  delete this;
}

}  // namespace umad
