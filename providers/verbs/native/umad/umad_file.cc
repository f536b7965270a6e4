#include "umad/umad_file.h"

#include <cerrno>
#include <utility>

#include "abi/umad_abi.h"

namespace umad {

namespace {

// Written by one job at most; in between, what has arrived is read.
constexpr size_t kBatch = 16;

int errnoOf(ssize_t result) { return result < 0 ? errno : 0; }

}  // namespace

int File::open(Files& files, const char* path, napi_ref onEvent) {
  const int fd = files.system.umad_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -errno;
  auto* file = new File(files, fd, onEvent);
  file->number_ = files.items.add(file);
  return static_cast<int>(file->number_);
}

int File::registerAgent(void* registration) {
  if (registered_ || closing_) return EINVAL;
  const int error = errnoOf(system_.umad_ioctl(fd_, kRegisterAgent2, registration));
  if (error) return error;
  agentId = static_cast<Registration*>(registration)->id;
  registered_ = true;
  return watch();
}

int File::write(uint32_t token, const uint8_t* bytes, size_t lengthBytes) {
  if (closing_) return ENODEV;
  waiting_.push_back({token, 0, std::vector<uint8_t>(bytes, bytes + lengthBytes)});
  if (!job_) startJob();
  return 0;
}

ssize_t File::read(uint8_t* into, size_t lengthBytes) {
  if (job_) return -EAGAIN;
  const ssize_t length = system_.umad_read(fd_, into, lengthBytes);
  return length < 0 ? -errno : length;
}

void File::close() {
  if (closing_) return;
  closing_ = true;
  if (!job_) startJob();
}

void File::abandon() {
  abandoned_ = true;
  closeWatch(watch_);
  if (job_) return;  // its end ends the rest
  system_.umad_close(fd_);
  end();
}

int File::watch() {
  if (watch_) {
    resumeWatch(watch_);
    return 0;
  }
  watch_ = openWatch(
      *files_.instance, fd_,
      [](void* data) { static_cast<File*>(data)->tell(Event::Readable, 0, 0); }, this);
  return watch_ ? 0 : errno;
}

void File::startJob() {
  if (closing_) closeWatch(watch_);
  else if (watch_) pauseWatch(watch_);
  const size_t count = waiting_.size() < kBatch ? waiting_.size() : kBatch;
  const auto last = waiting_.begin() + static_cast<ptrdiff_t>(count);
  writing_.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(last));
  waiting_.erase(waiting_.begin(), last);
  closeInJob_ = closing_ && waiting_.empty();
  const napi_env env = files_.instance->env;
  napi_create_async_work(
      env, nullptr, text(env, "dapl.umad"),
      [](napi_env, void* data) { static_cast<File*>(data)->runJob(); },
      [](napi_env, napi_status, void* data) { static_cast<File*>(data)->endJob(); }, this, &job_);
  files_.instance->shutdown->open++;
  napi_queue_async_work(env, job_);
}

// On a thread of the pool; no other touches the file or `writing_` meanwhile.
void File::runJob() {
  for (Packet& packet : writing_) {
    packet.error = errnoOf(system_.umad_write(fd_, packet.bytes.data(), packet.bytes.size()));
  }
  if (!closeInJob_) return;
  uint32_t id = agentId;
  if (registered_) system_.umad_ioctl(fd_, kUnregisterAgent, &id);
  system_.umad_close(fd_);
}

void File::endJob() {
  Shutdown* shutdown = files_.instance->shutdown;
  napi_delete_async_work(files_.instance->env, job_);
  job_ = nullptr;
  const std::vector<Packet> written = std::move(writing_);
  writing_.clear();
  const bool closed = closeInJob_;
  if (abandoned_) {
    if (!closed) system_.umad_close(fd_);
    end();
  } else {
    // What has been written is known before anything that answers it is read.
    for (const Packet& packet : written) tell(Event::Written, packet.token, packet.error);
    if (closed) {
      tell(Event::Closed, 0, 0);
      end();
    } else if (!job_) {  // else a handler has written more
      if (closing_ || !waiting_.empty()) {
        startJob();
      } else {
        watch();
      }
    }
  }
  shutdown->open--;
  shutdown->settle();
}

void File::tell(Event event, uint32_t token, int error) {
  const double arguments[] = {static_cast<double>(event), static_cast<double>(token),
                              static_cast<double>(error)};
  callHandler(*files_.instance, onEvent_, arguments, 3);
}

void File::end() {
  closeWatch(watch_);
  files_.items.remove(number_);
  release(*files_.instance, onEvent_);
  delete this;
}

}  // namespace umad
