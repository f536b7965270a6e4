#include "named_memory.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shared_memory.h"
#include "unix_socket.h"

namespace dapl {
namespace {

constexpr int kBacklog = 64;
constexpr int kAnswerMs = 2000;
/// A name that nothing answers for is free when it still is after this: the process that handed the
/// memory out may just have ended, and another one that has it is about to take its place.
constexpr int kTakeOverMs = 20;
constexpr int kAttempts = 100;
const char kPrefix[] = "dapl-memory/";

/// What a process that has the memory says with the descriptor; all numbers in host order, since
/// both ends are on one host.
struct Offer {
  char magic[8];
  uint64_t bytes;
};
constexpr char kMagic[8] = {'d', 'a', 'p', 'l', 'm', 'e', 'm', '1'};

struct Failure {
  int error = 0;
  std::string message;
};

void pauseMs(int ms) {
  const timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
  nanosleep(&pause, nullptr);
}

bool sameFile(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_ino == second.st_ino &&
         first.st_dev == second.st_dev;
}

/// What an offer says, if it is one: the descriptor is then the caller's.
bool takeOffer(const Message& message, int* descriptor, uint64_t* bytes) {
  Offer offer = {};
  memcpy(&offer, message.bytes, sizeof(offer) < message.length ? sizeof(offer) : message.length);
  if (message.length != sizeof(offer) || message.descriptorCount != 1 ||
      memcmp(offer.magic, kMagic, sizeof(kMagic)) != 0 ||
      checkSharedMemory(message.descriptors[0], offer.bytes) != 0) {
    closeDescriptors(message.descriptors, message.descriptorCount);
    return false;
  }
  *descriptor = message.descriptors[0];
  *bytes = offer.bytes;
  return true;
}

/// Connects to the process that hands the memory out, and waits for what it says.
/// @returns the connection, or -errno; `descriptor` is the caller's
int ask(const std::string& name, int* descriptor, uint64_t* bytes, Failure* failure) {
  const int socket = connectAbstract(name.data(), name.size());
  if (socket < 0) return socket;
  PeerIdentity identity;
  int error = identityOf(socket, &identity);
  if (error == 0 && !isOwnUser(identity)) {
    error = -EACCES;
    failure->message = "the name is in use by uid " + std::to_string(identity.uid) +
                       ", and memory is shared within one user";
  }
  Message message;
  if (error == 0) {
    pollfd wait = {socket, POLLIN, 0};
    const int ready = poll(&wait, 1, kAnswerMs);
    error = ready > 0 ? receiveMessage(socket, &message) : -ETIMEDOUT;
    if (ready <= 0) {
      failure->message = "process " + std::to_string(identity.pid) +
                         ", which has the memory, does not answer";
    }
  }
  if (error == 0) {
    if (takeOffer(message, descriptor, bytes)) return socket;
    error = -EPROTO;
    failure->message = "what has the name is no process of this package, or of another version";
  }
  close(socket);
  return error;
}

/// A name as this process has it: it hands the memory out, or is connected to what does.
struct Named {
  std::string socketName;
  int descriptor = -1;
  uint64_t bytes = 0;
  int listener = -1;
  int toHolder = -1;
  /// Another memory has got the name: this one is had by its present users alone.
  bool nameLost = false;
  std::vector<int> holders;  // connections of processes that have it from here
  size_t users = 0;

  bool isOrphan() const { return listener < 0 && toHolder < 0 && !nameLost; }

  ~Named() {
    closeDescriptors(holders.data(), holders.size());
    for (const int fd : {descriptor, listener, toHolder}) {
      if (fd >= 0) close(fd);
    }
  }
};

/// All names of the process. A thread of its own answers: an event loop may be busy, and a process
/// may ask itself.
class NamedMemories {
 public:
  static NamedMemories& ofProcess() {
    static NamedMemories* const all = new NamedMemories;  // lives as long as its thread: for ever
    return *all;
  }

  /// @returns a copy of the descriptor, counted until `leave`; or -1
  int join(const std::string& name, uint64_t bytes, Failure* failure) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (names_.count(name) == 0) {
      // The thread goes on meanwhile: the process that is asked may be asking this one.
      lock.unlock();
      std::unique_ptr<Named> first = found(name, bytes, failure);
      if (!first) return -1;
      lock.lock();
      if (names_.count(name) == 0) names_[name] = std::move(first);
      wakeThread();
    }
    Named* const named = names_[name].get();
    if (named->bytes != bytes) {
      *failure = {EINVAL, "the memory of that name has " + std::to_string(named->bytes) + " bytes"};
      if (named->users == 0) names_.erase(name);
      return -1;
    }
    named->users++;
    return named->descriptor;
  }

  /// @returns -1 where the process has no such memory
  int descriptorOf(const std::string& name) {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto entry = names_.find(name);
    return entry == names_.end() ? -1 : entry->second->descriptor;
  }

  void leave(const std::string& name) {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto entry = names_.find(name);
    if (entry == names_.end() || --entry->second->users > 0) return;
    names_.erase(entry);
    wakeThread();
  }

 private:
  NamedMemories() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  /// The memory of another process, or new memory where nothing has the name.
  std::unique_ptr<Named> found(const std::string& name, uint64_t bytes, Failure* failure) {
    auto named = std::make_unique<Named>();
    named->socketName = kPrefix + name;
    for (int attempt = 0; attempt < kAttempts; attempt++) {
      const int socket = ask(named->socketName, &named->descriptor, &named->bytes, failure);
      if (socket >= 0) {
        named->toHolder = socket;
        return named;
      }
      // Too many ask at once, or it ended while it was asked.
      if (socket == -EAGAIN || socket == -EPIPE) {
        pauseMs(1);
      } else if (socket != -ECONNREFUSED) {
        failure->error = -socket;
        return nullptr;
      } else if (attempt == 0) {
        pauseMs(kTakeOverMs);
      } else if (create(named.get(), bytes, failure)) {
        return named;
      } else if (failure->error != EADDRINUSE) {
        return nullptr;
      }
    }
    *failure = {ETIMEDOUT, "no answer from the process that has the memory"};
    return nullptr;
  }

  bool create(Named* named, uint64_t bytes, Failure* failure) {
    *failure = {};
    const std::string& name = named->socketName;
    const int listener = listenAbstract(name.data(), name.size(), kBacklog);
    if (listener < 0) {
      failure->error = -listener;
      return false;
    }
    void* data = nullptr;
    const int descriptor = createSharedMemory("dapl", bytes, false, &data);
    if (descriptor < 0) {
      close(listener);
      failure->error = -descriptor;
      return false;
    }
    munmap(data, bytes);
    named->listener = listener;
    named->descriptor = descriptor;
    named->bytes = bytes;
    return true;
  }

  void wakeThread() {
    if (!started_) {
      started_ = true;
      std::thread([this] { serve(); }).detach();
    }
    const uint64_t one = 1;
    const ssize_t ignored = write(wake_, &one, sizeof(one));
    static_cast<void>(ignored);  // a full counter wakes, too
  }

  void serve() {
    for (;;) {
      std::vector<pollfd> waits = {{wake_, POLLIN, 0}};
      int timeoutMs = -1;
      {
        std::lock_guard<std::mutex> guard(mutex_);
        for (const auto& [name, named] : names_) {
          if (named->isOrphan()) timeoutMs = 1;
          for (const int fd : {named->listener, named->toHolder}) {
            if (fd >= 0) waits.push_back({fd, POLLIN, 0});
          }
          for (const int holder : named->holders) waits.push_back({holder, POLLIN, 0});
        }
      }
      poll(waits.data(), waits.size(), timeoutMs);
      uint64_t count;
      const ssize_t ignored = read(wake_, &count, sizeof(count));
      static_cast<void>(ignored);
      std::lock_guard<std::mutex> guard(mutex_);
      for (auto& [name, named] : names_) look(named.get());
    }
  }

  void look(Named* named) {
    if (named->toHolder >= 0) hear(named);
    if (named->isOrphan()) takeOver(named);
    std::vector<int> alive;
    for (const int holder : named->holders) {
      if (hasEnded(holder)) close(holder);
      else alive.push_back(holder);
    }
    named->holders = alive;
    while (named->listener >= 0) {
      const int asker = acceptFrom(named->listener);
      if (asker < 0) return;
      PeerIdentity identity;
      Offer offer = {{}, named->bytes};
      memcpy(offer.magic, kMagic, sizeof(kMagic));
      const bool given = identityOf(asker, &identity) == 0 && isOwnUser(identity) &&
                         sendMessage(asker, &offer, sizeof(offer), &named->descriptor, 1) == 0;
      if (given) named->holders.push_back(asker);
      else close(asker);
    }
  }

  /// Nothing is sent on such a connection after the offer: readable is at its end.
  static bool hasEnded(int socket) {
    pollfd state = {socket, POLLIN, 0};
    return poll(&state, 1, 0) > 0;
  }

  /// What the process that hands the memory out says: that it is the same, and then its end.
  void hear(Named* named) {
    Message message;
    const int result = receiveMessage(named->toHolder, &message);
    if (result == -EAGAIN) return;
    int descriptor = -1;
    uint64_t bytes = 0;
    if (result == 0 && takeOffer(message, &descriptor, &bytes)) {
      named->nameLost = !sameFile(descriptor, named->descriptor);
      close(descriptor);
      if (!named->nameLost) return;
    }
    close(named->toHolder);
    named->toHolder = -1;
  }

  /// The process that handed the memory out has ended: this one does, or another that was quicker.
  void takeOver(Named* named) {
    const std::string& name = named->socketName;
    named->listener = listenAbstract(name.data(), name.size(), kBacklog);
    if (named->listener >= 0) return;
    named->listener = -1;
    const int socket = connectAbstract(name.data(), name.size());
    if (socket >= 0) named->toHolder = socket;
  }

  const int wake_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Named>> names_;
  bool started_ = false;
};

struct Mapping {
  std::string name;
  void* data;
  size_t bytes;
};

/// Runs when the ArrayBuffer is collected: nothing, a registration included, holds a view any more.
void unmap(napi_env, void*, void* hint) {
  Mapping* const mapping = static_cast<Mapping*>(hint);
  munmap(mapping->data, mapping->bytes);
  NamedMemories::ofProcess().leave(mapping->name);
  delete mapping;
}

napi_value fail(napi_env env, const Failure& failure) {
  const char* const message =
      failure.message.empty() ? strerror(failure.error) : failure.message.c_str();
  napi_throw_error(env, uv_err_name(-failure.error), message);
  return nullptr;
}

std::string toName(napi_env env, napi_value value) {
  char name[kMaxSocketName + 1];
  size_t length = 0;
  napi_get_value_string_utf8(env, value, name, sizeof(name), &length);
  return std::string(name, length);
}

}  // namespace

napi_value shareMemory(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2] = {};
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  double bytes = 0;
  napi_get_value_double(env, arguments[1], &bytes);
  const std::string text = toName(env, arguments[0]);
  const size_t size = static_cast<size_t>(bytes);

  Failure failure;
  NamedMemories& memories = NamedMemories::ofProcess();
  const int descriptor = memories.join(text, size, &failure);
  if (descriptor < 0) return fail(env, failure);
  void* const data = mapSharedMemory(descriptor, size, true);
  if (!data) {
    failure.error = errno;
    memories.leave(text);
    return fail(env, failure);
  }
  Mapping* const mapping = new Mapping{text, data, size};
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, data, size, unmap, mapping, &buffer) != napi_ok) {
    unmap(env, nullptr, mapping);
    return fail(env, {EOPNOTSUPP, "this runtime allows no memory from outside of its heap"});
  }
  return buffer;
}

napi_value memoryDescriptor(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument = nullptr;
  napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr);
  const int descriptor = NamedMemories::ofProcess().descriptorOf(toName(env, argument));
  if (descriptor < 0) return fail(env, {ENOENT, "there is no memory of that name here"});
  napi_value number = nullptr;
  napi_create_int32(env, descriptor, &number);
  return number;
}

}  // namespace dapl
