// The rings of the SPI (core/spi/layout/ring.ts) over ibv_post_send, ibv_post_recv,
// ibv_post_srq_recv and ibv_poll_cq. Nothing of Node in here.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "abi/verbs_abi.h"

namespace rings {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "pairs of words are read as the 64-bit numbers of struct ibv_sge");

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

// Objects by number; 0 is none.
template <typename T>
struct Table {
  std::vector<T*> items{nullptr};

  uint32_t add(T* item) {
    for (uint32_t i = 1; i < items.size(); i++) {
      if (!items[i]) {
        items[i] = item;
        return i;
      }
    }
    items.push_back(item);
    return static_cast<uint32_t>(items.size() - 1);
  }
  T* at(uint32_t number) const { return number < items.size() ? items[number] : nullptr; }
  void remove(uint32_t number) { items[number] = nullptr; }
};

enum class Kind { Send, Receive, Shared };

struct QueuePair;

// One posting side. Its id is the upper half of wr_id, the entry's index the lower.
struct Queue {
  Kind kind;
  uint32_t id = 0;        // place in Tables::queues (20 bits) and how often that was taken
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

// The driver goes by `verbs->rkey`, which must be that of the last bind posted; `rkey` is that of
// the last bind done.
struct Window {
  ibv_mw* verbs = nullptr;
  uint32_t rkey = 0;
  uint32_t regionLkey = 0;  // 0: not bound since
  const QueuePair* holder = nullptr;  // type 2: what it was bound through last
};

// Queues by the upper half of wr_id. Some drivers leave completions of a queue that is gone in the
// completion queue: their id fits no queue, since a place that is taken again has another one.
class Queues {
 public:
  void add(Queue* queue);
  void remove(Queue* queue);
  Queue* find(uint32_t id) const {
    const uint32_t place = id & PLACE_MASK;
    Queue* queue = place < items_.size() ? items_[place] : nullptr;
    return queue && queue->id == id ? queue : nullptr;
  }
  const std::vector<Queue*>& items() const { return items_; }

 private:
  static constexpr uint32_t PLACE_MASK = 0xfffff;
  std::vector<Queue*> items_;
  uint32_t taken_ = 0;
};

// What the numbers in entries and completions of one device stand for.
struct Tables {
  Queues queues;
  std::unordered_map<uint32_t, QueuePair*> pairsByQpn;
  std::unordered_map<uint32_t, ibv_mr*> regionsByLkey;
  Table<Window> windows;
  Table<ibv_ah> addressHandles;
  unsigned stalled = 0;
  // ibv_modify_qp, wherever the library has been loaded from.
  int (*modifyQp)(ibv_qp*, ibv_qp_attr*, int) = nullptr;
};

// Hand to the driver what has been produced. Return 0, or the errno with which the driver refuses
// even to flush (the device is gone), or with which a shared queue refuses a slot.
int postSends(Tables& tables, Queue& queue);
int postReceives(Tables& tables, Queue& queue);
int postShared(Queue& queue);

// Moves completions into the ring while there is room; returns how many are readable, or -1.
int poll(Tables& tables, CompletionQueue& cq);

// The queue pair has gone to RESET: what was posted is gone, and so is the memory of a refusal.
void forget(Tables& tables, Queue& queue);

}  // namespace rings
