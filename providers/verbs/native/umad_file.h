// One open umad device with one agent. A file of its own for each agent: what one of them waits for
// in the kernel holds no other one up, and closing the file returns all that is its own.
#pragma once

#include <node_api.h>
#include <uv.h>

#include <cstdint>
#include <vector>

#include "umad_system.h"

namespace umad {

// What a file tells its owner in JavaScript: (event, token, errno).
enum class Event : uint32_t {
  Readable = 0,  // or gone: reading says which
  Written = 1,   // the packet of that token, or it was refused with errno
  Closed = 2,    // the last thing it says
};

struct Packet {
  uint32_t token;
  int error;
  std::vector<uint8_t> bytes;
};

class File;

// The files of an environment, by number; 0 is none.
struct Files {
  System system = kernel();
  std::vector<File*> items{nullptr};

  File* at(uint32_t number) const { return number < items.size() ? items[number] : nullptr; }
};

class File {
 public:
  // Its number, or -errno. It ends by itself: behind Event::Closed, or with the environment.
  static int open(napi_env env, Files& files, const char* path, napi_value onEvent);

  // Also begins to watch. Returns errno.
  int registerAgent(void* registration);

  // Never blocks: the packet is copied, and a thread of the pool writes it. Writing waits for the
  // neighbour's hardware address, up to a second, and holds the file's lock meanwhile, which reading
  // needs as well; so nothing is read while something is written. Returns errno.
  int write(uint32_t token, const uint8_t* bytes, size_t lengthBytes);

  // The length, or -errno: EAGAIN when nothing is there, or something is being written.
  ssize_t read(uint8_t* into, size_t lengthBytes);

  // What has been given to `write` is written first. Unregistering waits for the port's work queue:
  // a thread of the pool does it.
  void close();

  // The environment ends: at once, and nobody is told. True when a job has to end first.
  bool abandon();

  uint32_t agentId = 0;

 private:
  File(napi_env env, Files& files, int fd)
      : env_(env), files_(files), system_(files.system), fd_(fd) {}
  ~File() = default;

  int startWatching();
  void stopWatching();
  void startJob();
  void runJob();
  void endJob();
  void tell(Event event, uint32_t token, int error);
  void end();

  napi_env env_;
  Files& files_;
  const System system_;
  int fd_;
  uint32_t number_ = 0;
  napi_ref onEvent_ = nullptr;
  napi_async_context context_ = nullptr;
  uv_poll_t* watch_ = nullptr;
  napi_async_work job_ = nullptr;
  std::vector<Packet> waiting_;
  std::vector<Packet> writing_;  // the job's while there is one
  bool registered_ = false;
  bool closing_ = false;
  bool closeInJob_ = false;
  bool abandoned_ = false;
};

}  // namespace umad
