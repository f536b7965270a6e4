// Predicts the next IPv4 identifications of a host. A Linux kernel (`__ip_select_ident`) takes them
// from one counter for all packets between two addresses. It steps by one for each packet, and by a
// random part of the time since the last one.
#pragma once

#include <cstdint>

namespace dapl {

class IdentificationWindow {
 public:
  /// @param nowMs of any clock that does not run backwards
  bool expects(uint16_t id, uint64_t nowMs) const {
    const uint64_t idleMs = nowMs - lastMs_ + kClockStepMs;
    const uint64_t forward = kSlack + idleMs * kIdsPerMs;
    const uint16_t step = static_cast<uint16_t>(id - last_ + kSlack);
    return known_ && step <= kSlack + forward;
  }
  void note(uint16_t id, uint64_t nowMs) {
    last_ = id;
    lastMs_ = nowMs;
    known_ = true;
  }

 private:
  /// Packets of several queue pairs overtake each other by less, also through GRO.
  static constexpr uint64_t kSlack = 256;
  /// What else the host may send to us meanwhile: after a second of silence all is possible.
  static constexpr uint64_t kIdsPerMs = 64;
  /// The coarse clock's.
  static constexpr uint64_t kClockStepMs = 4;

  uint16_t last_ = 0;
  bool known_ = false;
  uint64_t lastMs_ = 0;
};

}  // namespace dapl
