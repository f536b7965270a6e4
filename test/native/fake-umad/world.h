// A kernel's umad devices without a kernel: ports by path, on one network, in one process. It does
// what ib_mad and ib_umad of Linux 6.1 do, in the cases that tests need: registration, routing,
// matching, repeating, what comes back; that responses over IPv4 match nothing; and what goes
// wrong. Transfers of the kernel's RMPP go in one piece. Time is virtual unless told to run.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "abi/umad_abi.h"

namespace fake {

using Gid = std::array<uint8_t, 16>;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kMaxAgents = 32;
constexpr size_t kMadBytes = 256;
constexpr size_t kHeaderBytes = sizeof(umad::Header);

struct Agent {
  uint32_t hiTid;
  umad::Registration registration;
  bool kernelRmpp() const { return registration.rmppVersion != 0; }
};

// A send that the kernel has not done with.
struct Send {
  Bytes packet;  // as written, with the transaction id that went out
  uint64_t deadlineMs;
  uint32_t waitMs;
  uint32_t retries;
  bool silent;  // forgotten without a word when its time is over
};

struct Port;

struct File {
  Port* port;
  int fd;
  int other;  // the end of the socket pair that makes `fd` readable
  bool dead = false;
  bool signalled = false;
  std::array<std::unique_ptr<Agent>, kMaxAgents> agents;
  std::deque<Bytes> received;
  std::vector<Send> sends;
};

struct Port {
  std::string path;
  std::vector<Gid> gids;
  bool gone = false;
};

struct Datagram {
  Gid source;
  Gid destination;
  Bytes mad;
  bool transfer;  // of the kernel's RMPP
};

struct Injection {
  std::string call;
  uint32_t nth;
  int error;
};

// One per process, under `mutex`.
struct World {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Port>> ports;
  std::map<int, std::unique_ptr<File>> files;
  std::vector<Injection> injections;
  uint64_t nowMs = 0;
  uint32_t nextHiTid = 1;
  uint32_t lose = 0;     // datagrams to come
  uint32_t swallow = 0;  // sends to come: neither delivered nor heard of again
  uint32_t writeDelayMs = 0;
  uint32_t carried = 0;  // datagrams
};

World& world();

Port* portWith(const Gid& gid);
bool isIpv4(const Gid& gid);

// routing.cc, with the mutex held
Gid sourceOf(const File& file, const umad::Header& header);
void transmit(File& file, const Agent& agent, const Bytes& packet);
void give(File& file, uint32_t agentId, Bytes packet);
void advance(uint64_t ms);
bool hasMethod(const Port& port, const umad::Registration& wanted);

// calls.cc, with the mutex held
int injected(const char* call);
void signal(File& file);
void kill(Port& port);

}  // namespace fake
