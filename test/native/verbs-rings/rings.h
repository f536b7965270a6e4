// The rings of the SPI (core/spi/ring.ts) over ibv_post_send, ibv_post_recv, ibv_post_srq_recv and
// ibv_poll_cq. Nothing of Node in here.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "verbs_abi.h"

namespace rings {

// Producer and consumer index a cache line apart, then the entries.
struct Ring {
  uint32_t* control = nullptr;
  uint32_t mask = 0;
  uint32_t strideBytes = 0;

  uint32_t* entry(uint32_t index) const {
    auto* bytes = reinterpret_cast<uint8_t*>(control) + 128;
    return reinterpret_cast<uint32_t*>(bytes + size_t{index & mask} * strideBytes);
  }
  uint32_t producer() const { return __atomic_load_n(&control[0], __ATOMIC_ACQUIRE); }
  uint32_t consumer() const { return __atomic_load_n(&control[16], __ATOMIC_ACQUIRE); }
  void setProducer(uint32_t index) { __atomic_store_n(&control[0], index, __ATOMIC_RELEASE); }
  void setConsumer(uint32_t index) { __atomic_store_n(&control[16], index, __ATOMIC_RELEASE); }
};

enum class Kind { Send, Receive, Shared };

struct QueuePair;

// One posting side. Its number is the upper half of wr_id, the entry's index the lower.
struct Queue {
  Kind kind;
  uint32_t number;
  Ring ring;              // entries; a shared queue's slots
  Ring submissions;       // a shared queue's order of slots
  uint32_t fetched = 0;   // first index that the driver has not got
  QueuePair* pair = nullptr;
  ibv_srq* srq = nullptr;
  uint32_t srqn = 0;
  bool refused = false;   // the driver refused entry `refusedIndex` with `refusedErrno`
  bool stalled = false;   // ... and had no room yet for the request that takes its place
  uint32_t refusedIndex = 0;
  int refusedErrno = 0;
};

struct QueuePair {
  ibv_qp* verbs = nullptr;
  uint32_t context = 0;
  Queue* send = nullptr;
  Queue* receive = nullptr;
};

struct CompletionQueue {
  ibv_cq* verbs = nullptr;
  Ring ring;
};

// What the numbers in entries and completions stand for.
struct Tables {
  std::vector<Queue*> queues;
  std::unordered_map<uint32_t, QueuePair*> pairsByQpn;
  std::unordered_map<uint32_t, ibv_mr*> regionsByLkey;
  std::unordered_map<uint32_t, ibv_mw*> windowsByHandle;
  unsigned stalled = 0;
  // ibv_modify_qp, wherever the library has been loaded from.
  int (*modifyQp)(ibv_qp*, ibv_qp_attr*, int) = nullptr;
};

// Hand to the driver what has been produced. Return 0, or the errno with which the driver refuses
// even to flush (the device is gone), or with which a shared queue refuses a slot.
int postSends(Tables& tables, Queue& queue);
int postReceives(Tables& tables, Queue& queue);
int postShared(Tables& tables, Queue& queue);

// Moves completions into the ring while there is room; returns how many are readable, or -1.
int poll(Tables& tables, CompletionQueue& cq);

// The queue pair has gone to RESET: what was posted is gone, and so is the memory of a refusal.
void forget(Tables& tables, Queue& queue);

}  // namespace rings
