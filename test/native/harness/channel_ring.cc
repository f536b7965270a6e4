// The rings of a channel between two threads, under a sanitizer: every packet comes once, in order,
// with its bytes; what is withdrawn is read by nobody afterwards.
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "shm/consumer.h"
#include "shm/producer.h"

using namespace dapl;

namespace {

constexpr uint32_t kSlots = 64;
constexpr uint64_t kBounce = 2 << 20;
constexpr uint32_t kPackets = 200000;
constexpr uint32_t kLent = 4096;

void check(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

/// Page-aligned zeros.
Half makeHalf() {
  const size_t bytes = Half::bytesOf(kSlots, kBounce);
  void* data = aligned_alloc(Half::kPage, (bytes + Half::kPage - 1) / Half::kPage * Half::kPage);
  memset(data, 0, bytes);
  return Half(static_cast<uint8_t*>(data), kSlots, kBounce);
}

Slot slotOf(uint32_t number, uint32_t payloadBytes) {
  Slot slot{};
  slot.kind = Slot::kPacket;
  slot.headerBytes = 12;
  slot.payloadBytes = payloadBytes;
  memcpy(slot.header, &number, 4);
  return slot;
}

uint32_t numberOf(const Slot& slot) {
  uint32_t number;
  memcpy(&number, slot.header, 4);
  return number;
}

uint32_t sizeOf(uint32_t number) { return number % 3 == 0 ? 0 : number * 97 % 70000; }

void produce(Producer* producer) {
  for (uint32_t number = 0; number < kPackets; number++) {
    const uint32_t bytes = sizeOf(number);
    Producer::Room room = producer->room(bytes);
    for (; room != Producer::Room::kThere; room = producer->want(bytes)) {
      check(room == Producer::Room::kFull, "the consumer says what cannot be");
      sched_yield();
    }
    Slot slot = slotOf(number, bytes);
    if (bytes > 0) memset(producer->bounce(bytes, &slot.place), number & 0xFF, bytes);
    producer->put(slot, false, 0);
    producer->publish();
  }
}

void consume(Consumer* consumer, const Half& peer) {
  for (uint32_t expected = 0; expected < kPackets;) {
    const uint32_t count = consumer->take(16);
    check(count != Consumer::kBroken, "the producer says what cannot be");
    for (uint32_t i = 0; i < count; i++, expected++) {
      const Slot slot = consumer->read(i);
      check(numberOf(slot) == expected, "out of order");
      check(slot.payloadBytes == sizeOf(expected), "of another size");
      if (slot.payloadBytes == 0) continue;
      const uint8_t* const payload = peer.bounce() + slot.offset();
      check(payload[0] == (expected & 0xFF), "other bytes at the beginning");
      check(payload[slot.payloadBytes - 1] == (expected & 0xFF), "other bytes at the end");
    }
    consumer->release(count);
    if (count == 0 && consumer->arm()) sched_yield();
    consumer->disarm();
  }
}

/// A message whose memory is taken back while the other side may be about to read it.
void withdraw() {
  const Half a = makeHalf();
  const Half b = makeHalf();
  Producer producer(a, b);
  Consumer consumer(b, a);
  std::vector<uint8_t> lent(kLent);
  constexpr uint32_t kRounds = 50000;
  uint32_t read = 0;
  std::thread reader([&] {
    for (uint32_t seen = 0; seen < kRounds;) {
      const uint32_t count = consumer.take(4);
      for (uint32_t i = 0; i < count; i++, seen++) {
        const Slot slot = consumer.read(i);
        if (slot.kind == Slot::kWithdrawn) continue;
        const uint8_t expected = static_cast<uint8_t>(numberOf(slot));
        check(lent[0] == expected && lent[kLent - 1] == expected, "bytes of later");
        read++;
      }
      consumer.release(count);
      if (count == 0) sched_yield();
    }
  });
  for (uint32_t round = 0; round < kRounds; round++) {
    memset(lent.data(), round & 0xFF, kLent);
    while (producer.room(0) != Producer::Room::kThere) sched_yield();
    producer.put(slotOf(round, kLent), true, 7);
    producer.publish();
    if (round % 3 == 0) sched_yield();
    while (producer.withdraw(7) == Producer::Withdrawal::kInUse) sched_yield();
  }
  reader.join();
  printf("withdrawn: %u of %u had been read\n", read, kRounds);
  free(a.base());
  free(b.base());
}

}  // namespace

int main() {
  const Half a = makeHalf();
  const Half b = makeHalf();
  Producer producer(a, b);
  Consumer consumer(b, a);
  std::thread sender([&] { produce(&producer); });
  consume(&consumer, a);
  sender.join();
  free(a.base());
  free(b.base());
  withdraw();
  return 0;
}
