// A channel to another device of this host: two halves, two ends of a socket that wake, and memory
// of the other side that payload is read from where it lies.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "icrc/icrc.h"
#include "shm/consumer.h"
#include "shm/producer.h"

namespace dapl {

class Channel {
 public:
  static constexpr uint32_t kLongestPayload = 1 << 20;

  explicit Channel(uint32_t number) : number_(number) {}
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
  };
  /// Maps the other half. Takes the descriptors, whatever comes of it.
  /// @returns nullptr, or what is wrong with it
  const char* attach(const Peer& peer);

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
  /// @returns 0 or errno; takes the descriptor
  int mapSegment(uint16_t segment, int fd, size_t bytes);
  size_t mappedBytes() const { return mappedBytes_; }
  /// Where a payload lies in the other side's memory, or nullptr.
  const uint8_t* resolve(const Slot& packet) const;
  void useSegment(uint16_t segment) { usable_.push_back(segment); }
  void forgetSegment(uint16_t segment);
  bool mayName(uint16_t segment) const;

  /// When the other side began to take no more, in coarse milliseconds; 0 while it does.
  uint64_t fullSinceMs = 0;
  /// In the list of those to be published.
  bool dirty = false;

 private:
  struct Segment {
    uint16_t number;
    uint8_t* data;
    size_t bytes;
  };
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
  std::unique_ptr<Producer> producer_;
  std::unique_ptr<Consumer> consumer_;
  std::vector<Segment> segments_;
  size_t mappedBytes_ = 0;
  std::vector<uint16_t> usable_;
  const char* endedBy_ = nullptr;
  bool ownThreads_ = false;
};

}  // namespace dapl
