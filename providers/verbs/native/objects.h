// The objects of verbs with what we add. Each counts its children and holds its parents; those that
// have children refuse to go (EBUSY), whatever a driver would do.
#pragma once

#include <node_api.h>

#include <memory>
#include <vector>

#include "queues/rings.h"

using rings::Table;

struct Instance;
struct Watch;

// One opened ibv_context with its completion channel.
struct Device {
  explicit Device(Instance& instance) : instance(&instance) {}

  Instance* instance;
  uint32_t number = 0;
  uint32_t children = 0;
  ibv_context* context = nullptr;
  ibv_comp_channel* channel = nullptr;
  Watch* channelWatch = nullptr;
  Watch* asyncWatch = nullptr;
  napi_ref onNotify = nullptr;  // (cq) => void
  napi_ref onEvent = nullptr;   // (type, number of the object or 0) => void
  rings::Tables tables;
};

struct Pd {
  Device* device;
  uint32_t number = 0;
  uint32_t children = 0;
  ibv_pd* verbs = nullptr;
};

// An XRC domain.
struct Xrcd {
  Device* device;
  uint32_t number = 0;
  uint32_t children = 0;
  struct ibv_xrcd* verbs = nullptr;
};

struct Region {
  Pd* pd;
  uint32_t number = 0;
  ibv_mr* verbs = nullptr;
  napi_ref memory = nullptr;  // keeps it from being collected
  std::shared_ptr<void> store{};  // keeps it when it is taken from its buffer
};

struct Cq : rings::CompletionQueue {
  Device* device;
  uint32_t number = 0;
  uint32_t children = 0;
  napi_ref memory = nullptr;
};

struct Srq {
  explicit Srq(Pd* pd) : pd(pd) {}

  Pd* pd;
  Cq* cq = nullptr;  // an XRC SRQ's, and its domain
  Xrcd* xrcd = nullptr;
  uint32_t number = 0;
  uint32_t children = 0;
  ibv_srq* verbs = nullptr;
  napi_ref memory[2] = {};
  rings::Queue queue;
};

// A group that a queue pair is attached to, and the socket that makes the host a member, if any.
struct Membership {
  ibv_gid group;
  int socket;
};

struct Qp : rings::QueuePair {
  Device* device;
  Pd* pd = nullptr;      // null for an XRC target
  Xrcd* xrcd = nullptr;  // its domain
  Cq* sendCq = nullptr;
  Cq* receiveCq = nullptr;
  Srq* srq = nullptr;
  uint32_t number = 0;
  napi_ref memory[2] = {};
  rings::Queue sendQueue, receiveQueue;
  std::vector<Membership> memberships;
};

struct Args;

// For the files that make queues in other ways (XRC). The object has been created with itself as
// its context; it becomes known: rings from the arguments at `ringsAt`, tables, parents' counts.
uint32_t adoptQp(const Args& args, Instance& instance, Qp* qp, int ringsAt);
uint32_t adoptSrq(const Args& args, Instance& instance, Srq* srq, int ringsAt);
// Memory at `at`, entry count and stride behind it.
rings::Ring ringAt(const Args& args, int at);

// Windows of type 2 end with the queue pair that they were bound through. rxe waits for them in
// vain when it goes first: each gets another window of the driver's in its place, with a key of its
// own.
void reopenWindows(const Qp& qp);

// Drivers refuse to destroy a queue pair that is attached.
void leaveGroups(Instance& instance, Qp& qp);

// Undo, in order and whatever fails: what is left of a device, and of an environment.
void destroyObjects(Device& device);
void destroyQueuePairs(Device& device);
void destroySharedReceives(Device& device);
void destroyCompletionQueues(Device& device);
void destroyMemory(Device& device);
// Weak: without XRC there are none.
__attribute__((weak)) void closeXrcDomains(Device& device);
int closeDevice(Device& device);
