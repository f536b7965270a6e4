// One open umad device with one agent. A file of its own for each agent: what one of them waits for
// in the kernel holds no other one up, and closing the file returns all that is its own.
#pragma once

#include <vector>

#include "instance.h"
#include "umad/umad_system.h"
#include "watch.h"

namespace umad {

// What a file tells its owner in JavaScript: (event, token, errno).
enum class Event {
  Readable = 0,  // or gone: reading says which
  Written = 1,   // the packet of that token, or it was refused with errno
  Closed = 2,    // the last thing it says
};

class File;

// The files of an environment.
struct Files {
  Instance* instance;
  UmadSystem system;
  Table<File> items;
};

struct Packet {
  uint32_t token;
  int error;
  std::vector<uint8_t> bytes;
};

class File {
 public:
  // Its number, or -errno. It ends by itself: behind Event::Closed, or with the environment.
  static int open(Files& files, const char* path, napi_ref onEvent);

  // Also begins to watch. Returns errno.
  int registerAgent(void* registration);

  // Never blocks: the packet is copied, and a thread of the pool writes it. Writing waits for the
  // neighbour's hardware address, up to a second, and holds the file's lock meanwhile, which
  // reading and polling need as well; so nothing is read while something is written. Errno.
  int write(uint32_t token, const uint8_t* bytes, size_t lengthBytes);

  // The length, or -errno: EAGAIN when nothing is there, or something is being written.
  ssize_t read(uint8_t* into, size_t lengthBytes);

  // What has been given to `write` is written first. Unregistering waits for the port's work queue:
  // a thread of the pool does it.
  void close();

  // The environment ends: at once, and nothing is told.
  void abandon();

  uint32_t agentId = 0;

 private:
  File(Files& files, int fd, napi_ref onEvent)
      : files_(files), system_(files.system), fd_(fd), onEvent_(onEvent) {}
  ~File() = default;

  int watch();
  void startJob();
  void runJob();
  void endJob();
  void tell(Event event, uint32_t token, int error);
  void end();

  Files& files_;
  const UmadSystem system_;
  int fd_;
  napi_ref onEvent_;
  uint32_t number_ = 0;
  Watch* watch_ = nullptr;
  napi_async_work job_ = nullptr;
  std::vector<Packet> waiting_;
  std::vector<Packet> writing_;  // the job's while there is one
  bool registered_ = false;
  bool closing_ = false;
  bool closeInJob_ = false;
  bool abandoned_ = false;
};

}  // namespace umad
