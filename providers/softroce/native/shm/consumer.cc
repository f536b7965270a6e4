#include "shm/consumer.h"

namespace dapl {

uint32_t Consumer::take(uint32_t most) {
  const uint32_t produced = __atomic_load_n(peer_.producer(), __ATOMIC_ACQUIRE);
  const uint32_t waiting = produced - consumed_;
  if (waiting > peer_.slots()) return kBroken;
  taken_ = waiting < most ? waiting : most;
  if (taken_ == 0) return 0;
  // Dekker: the other side withdraws a packet, then looks here (Producer::withdraw).
  __atomic_store_n(own_.taken(), consumed_ + taken_, __ATOMIC_SEQ_CST);
  return taken_;
}

Slot Consumer::read(uint32_t index) const {
  uint64_t words[sizeof(Slot) / 8];
  const uint64_t* const slot = peer_.slot(consumed_ + index);
  words[0] = __atomic_load_n(slot, __ATOMIC_SEQ_CST);
  for (size_t i = 1; i < sizeof(Slot) / 8; i++) {
    words[i] = __atomic_load_n(slot + i, __ATOMIC_RELAXED);
  }
  Slot packet;
  memcpy(&packet, words, sizeof(packet));
  return packet;
}

bool Consumer::release(uint32_t count) {
  if (taken_ == 0) return false;
  const bool all = count == taken_;
  consumed_ += count;
  taken_ = 0;
  if (!all) __atomic_store_n(own_.taken(), consumed_, __ATOMIC_RELEASE);
  // Dekker: the other side writes `wanted`, then looks here.
  __atomic_store_n(own_.consumed(), consumed_, __ATOMIC_SEQ_CST);
  return __atomic_load_n(peer_.wanted(), __ATOMIC_SEQ_CST) != 0;
}

bool Consumer::arm() {
  armed_ |= 1;
  __atomic_store_n(own_.armed(), armed_, __ATOMIC_SEQ_CST);
  return __atomic_load_n(peer_.producer(), __ATOMIC_SEQ_CST) == consumed_ + taken_;
}

void Consumer::disarm() {
  if ((armed_ & 1) == 0) return;
  armed_ += 1;
  __atomic_store_n(own_.armed(), armed_, __ATOMIC_RELEASE);
}

}  // namespace dapl
