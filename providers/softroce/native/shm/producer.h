// The sending end of a channel: puts packets into the own half. It believes nothing that the other
// side says about itself, and nothing that it says can make it write outside of its own memory.
#pragma once

#include <cstdint>
#include <vector>

#include "shm/half.h"

namespace dapl {

class Producer {
 public:
  enum class Room { kThere, kFull, kBroken };
  enum class Withdrawal { kDone, kInUse };

  Producer(const Half& own, const Half& peer);

  /// Whether one more packet fits, with `bounceBytes` of payload that has to be copied.
  Room room(uint32_t bounceBytes);
  /// Where that payload is to be copied to; `room` has said yes.
  uint8_t* bounce(uint32_t bytes, uint64_t* place);
  /// Puts a packet; `room` has said yes.
  /// @param withdrawable of queue pair `qpn`, if its payload was left in memory that may change
  void put(const Slot& packet, bool withdrawable, uint32_t qpn);
  /// The other side sees what has been put. @returns whether it sleeps and has to be woken for it
  bool publish();
  uint32_t unpublished() const { return put_ - published_; }

  /// Waits for room: the other side wakes us when it has done with something. @returns as `room`,
  /// for what has been done with meanwhile
  Room want(uint32_t bounceBytes);

  /// Packets of a queue pair whose payload was left in place are lost from now on, unless the other
  /// side has them already: kInUse while it may be reading such a payload.
  Withdrawal withdraw(uint32_t qpn);

 private:
  /// What is remembered of each slot: what stands in shared memory is for the other side.
  struct Memo {
    uint64_t bounceEnd;
    uint32_t qpn;
    bool withdrawable;
  };
  /// @returns false when the other side says what cannot be
  bool look();

  Half own_;
  Half peer_;
  std::vector<Memo> memos_;
  uint32_t put_ = 0;
  uint32_t published_ = 0;
  uint32_t consumed_ = 0;
  /// Positions in the bounce area, counted on from lap to lap.
  uint64_t bounceHead_ = 0;
  uint64_t bounceTail_ = 0;
  /// Of the last sleep that was ended from here.
  uint32_t woken_ = 0;
  uint32_t withdrawables_ = 0;
  bool wants_ = false;
};

}  // namespace dapl
