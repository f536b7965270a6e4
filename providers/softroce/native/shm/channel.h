// A channel to another device of this host: two halves, two ends of a socket that wake, and memory
// of the other side that payload is read from where it lies.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "icrc/icrc.h"
#include "memory/peer_segments.h"
#include "shm/consumer.h"
#include "shm/producer.h"

namespace dapl {

class Channel {
 public:
  static constexpr uint32_t kLongestPayload = 1 << 20;

  static constexpr size_t kMostSegments = 4096;
  static constexpr int32_t kAnySlot = -1;

  /// @param peerBytes of the other side's memory that may be mapped
  Channel(uint32_t number, uint64_t peerBytes)
      : number_(number), segments_({kMostSegments, peerBytes}) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Makes the own half. @returns 0 or errno
  int offer(uint32_t slots, uint64_t bounceBytes);
  struct Offer {
    uint64_t generation;
    int memoryFd;
    size_t memoryBytes;
    int wakeFd;
  };
  Offer offered() const { return {generation_, memoryFd_, bytes_, peerWakeFd_}; }

  struct Peer {
    uint64_t generation;
    int memoryFd;
    size_t memoryBytes;
    int wakeFd;
    std::vector<Endpoint> addresses;
    /// Which of the processes that share the addresses; kAnySlot for one that has them alone.
    int32_t slot = kAnySlot;
  };
  /// Maps the other half. Takes the descriptors, whatever comes of it.
  /// @returns nullptr, or what is wrong with it
  const char* attach(const Peer& peer);

  /// The other side has been given what was offered: only its end of the socket is to be open.
  void letGo();

  uint32_t number() const { return number_; }
  bool isAttached() const { return producer_ != nullptr; }
  /// Attached, and nothing has ended it.
  bool isAlive() const { return isAttached() && !endedBy_; }
  /// Why it has ended, or nullptr.
  const char* endedBy() const { return endedBy_; }
  /// @param reason a literal; the first one counts
  void end(const char* reason) {
    if (!endedBy_) endedBy_ = reason;
  }
  Producer& producer() { return *producer_; }
  Consumer& consumer() { return *consumer_; }
  const std::vector<Endpoint>& addresses() const { return addresses_; }
  /// Index of an address of the other side's, or -1.
  int addressOf(const Endpoint& address) const;
  bool isOfSlot(int32_t slot) const {
    return slot_ == kAnySlot || slot == kAnySlot || slot_ == slot;
  }
  /// The other side is this thread itself, so that nothing of it happens meanwhile.
  bool isOwnThreads() const { return ownThreads_; }

  /// What wakes this side; readable at the end of the other one, too.
  int wakeFd() const { return wakeFd_; }
  void wake();
  /// Takes in what has woken us; ends the channel when the other side is gone.
  void drainWakes();
  /// The same without taking anything in.
  void lookForEnd();

  // --- memory in place ---
  PeerSegments& segments() { return segments_; }
  /// Where a payload lies in the other side's memory, or nullptr.
  const uint8_t* resolve(const Slot& packet) const;
  /// The other side has mapped a segment of ours: packets may name it.
  void useSegment(uint32_t segment) { usable_.insert(segment); }
  bool mayName(uint32_t segment) const {
    return segment <= UINT16_MAX && usable_.count(segment) > 0;
  }

  /// When the other side began to take no more, in coarse milliseconds; 0 while it does.
  uint64_t fullSinceMs = 0;
  /// In the list of those to be published.
  bool dirty = false;

 private:
  const char* check(const Peer& peer);

  const uint32_t number_;
  uint64_t generation_ = 0;
  Half own_;
  Half peer_;
  size_t bytes_ = 0;
  size_t peerBytes_ = 0;
  int memoryFd_ = -1;
  int wakeFd_ = -1;
  /// The other end of it, until it has been handed over.
  int peerWakeFd_ = -1;
  /// By which the other side is woken.
  int toPeerFd_ = -1;
  std::vector<Endpoint> addresses_;
  int32_t slot_ = kAnySlot;
  std::unique_ptr<Producer> producer_;
  std::unique_ptr<Consumer> consumer_;
  PeerSegments segments_;
  std::unordered_set<uint32_t> usable_;
  const char* endedBy_ = nullptr;
  bool ownThreads_ = false;
};

}  // namespace dapl
