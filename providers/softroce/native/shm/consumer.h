// The receiving end of a channel: takes packets out of the other side's half. Everything there may
// change at any time, so each word is loaded once, then checked, then used.
#pragma once

#include <cstdint>

#include "shm/half.h"

namespace dapl {

class Consumer {
 public:
  Consumer(const Half& own, const Half& peer) : own_(own), peer_(peer) {}

  static constexpr uint32_t kBroken = UINT32_MAX;
  /// Packets that can be read, at most `most`, or kBroken. They are claimed: as long as they are,
  /// payload that the other side has left in place stays as it was.
  uint32_t take(uint32_t most);
  /// A copy of the `index`-th of the packets taken.
  Slot read(uint32_t index) const;
  /// The first `count` of those taken are done with, the others have not been read.
  /// @returns whether the other side waits for room
  bool release(uint32_t count);
  bool isEmpty() const {
    return __atomic_load_n(peer_.producer(), __ATOMIC_ACQUIRE) == consumed_ + taken_;
  }

  /// Asks to be woken by the next packet. @returns false when there is one already
  bool arm();
  void disarm();

 private:
  Half own_;
  Half peer_;
  uint32_t consumed_ = 0;
  uint32_t taken_ = 0;
  uint32_t armed_ = 0;
};

}  // namespace dapl
