#include "shm/producer.h"

namespace dapl {
namespace {

constexpr uint64_t kLine = 64;

uint64_t toLines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

Producer::Producer(const Half& own, const Half& peer)
    : own_(own), peer_(peer), memos_(own.slots()) {}

bool Producer::look() {
  const uint32_t consumed = __atomic_load_n(peer_.consumed(), __ATOMIC_ACQUIRE);
  const uint32_t more = consumed - consumed_;
  if (more == 0) return true;
  if (more > published_ - consumed_) return false;
  for (uint32_t i = consumed_; i != consumed; i++) {
    Memo& memo = memos_[i & (own_.slots() - 1)];
    if (memo.withdrawable) withdrawables_--;
    memo.withdrawable = false;
    bounceTail_ = memo.bounceEnd;
  }
  consumed_ = consumed;
  return true;
}

Producer::Room Producer::room(uint32_t bounceBytes) {
  const uint64_t size = own_.bounceBytes();
  for (int looks = 0;; looks++) {
    if (bounceTail_ == bounceHead_) {  // from the beginning again: that is in the caches
      bounceHead_ = bounceTail_ = (bounceHead_ + size - 1) / size * size;
    }
    const uint64_t at = bounceHead_ % size;
    const uint64_t bytes = toLines(bounceBytes);
    const uint64_t skipped = at + bytes > size ? size - at : 0;
    const bool fits = bounceHead_ + skipped + bytes - bounceTail_ <= size;
    if (put_ - consumed_ < own_.slots() && fits) return Room::kThere;
    if (looks > 0) return Room::kFull;
    if (!look()) return Room::kBroken;
  }
}

uint8_t* Producer::bounce(uint32_t bytes, uint64_t* place) {
  const uint64_t size = own_.bounceBytes();
  const uint64_t taken = toLines(bytes);
  if (bounceHead_ % size + taken > size) bounceHead_ += size - bounceHead_ % size;
  const uint64_t at = bounceHead_ % size;
  bounceHead_ += taken;
  *place = Slot::placeOf(Slot::kBounce, at);
  return own_.bounce() + at;
}

void Producer::put(const Slot& packet, bool withdrawable, uint32_t qpn) {
  uint64_t words[sizeof(Slot) / 8];
  memcpy(words, &packet, sizeof(packet));
  uint64_t* const slot = own_.slot(put_);
  for (size_t i = 0; i < sizeof(Slot) / 8; i++) {
    __atomic_store_n(slot + i, words[i], __ATOMIC_RELAXED);
  }
  memos_[put_ & (own_.slots() - 1)] = {bounceHead_, qpn, withdrawable};
  if (withdrawable) withdrawables_++;
  put_++;
  if (!wants_) return;
  wants_ = false;
  __atomic_store_n(own_.wanted(), 0u, __ATOMIC_RELEASE);
}

bool Producer::publish() {
  if (put_ == published_) return false;
  published_ = put_;
  // Dekker: the other side writes `armed`, then looks here. One of us sees the other's word.
  __atomic_store_n(own_.producer(), put_, __ATOMIC_SEQ_CST);
  const uint32_t armed = __atomic_load_n(peer_.armed(), __ATOMIC_SEQ_CST);
  if ((armed & 1) == 0 || armed == woken_) return false;
  woken_ = armed;
  return true;
}

Producer::Room Producer::want(uint32_t bounceBytes) {
  wants_ = true;
  // Dekker, with `consumed` for `producer`.
  __atomic_store_n(own_.wanted(), 1u, __ATOMIC_SEQ_CST);
  const uint32_t consumed = __atomic_load_n(peer_.consumed(), __ATOMIC_SEQ_CST);
  return consumed == consumed_ ? Room::kFull : room(bounceBytes);
}

Producer::Withdrawal Producer::withdraw(uint32_t qpn) {
  if (withdrawables_ == 0 || !look()) return Withdrawal::kDone;
  bool any = false;
  for (uint32_t i = consumed_; i != put_; i++) {
    const Memo& memo = memos_[i & (own_.slots() - 1)];
    if (!memo.withdrawable || memo.qpn != qpn) continue;
    uint64_t* const slot = own_.slot(i);
    uint64_t word = __atomic_load_n(slot, __ATOMIC_RELAXED);
    const uint8_t kind = Slot::kWithdrawn;
    memcpy(&word, &kind, 1);
    // Dekker: the other side writes `taken`, then looks here.
    __atomic_store_n(slot, word, __ATOMIC_SEQ_CST);
    any = true;
  }
  if (!any) return Withdrawal::kDone;
  const uint32_t taken = __atomic_load_n(peer_.taken(), __ATOMIC_SEQ_CST);
  for (uint32_t i = consumed_; i != put_ && static_cast<int32_t>(taken - i) > 0; i++) {
    const Memo& memo = memos_[i & (own_.slots() - 1)];
    if (memo.withdrawable && memo.qpn == qpn) return Withdrawal::kInUse;
  }
  return Withdrawal::kDone;
}

}  // namespace dapl
