// The channels of a port: packets of all of them in one burst, and the way out of each.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/arena.h"
#include "port_memory.h"
#include "shm/channel.h"
#include "tables/region_table.h"

namespace dapl {

class Channels {
 public:
  /// Packets taken in at a time, payload left in place of all of them, and room for their headers.
  static constexpr uint32_t kBurst = 256;
  static constexpr uint64_t kBurstBytes = 4 << 20;
  /// Payload up to here is copied to the arena, where JavaScript can read it.
  static constexpr uint32_t kShortPayload = 256;
  static constexpr size_t kArenaBytes = kBurst * (Slot::kHeaderBytes + kShortPayload + 16);

  Channels(const PortMemory& memory, RegionTable& regions, size_t arenaAt)
      : memory_(memory), regions_(regions), arenaAt_(arenaAt) {}
  /// Memory that peers may read where it lies; nullptr for none.
  void useArena(Arena* arena) { arena_ = arena; }

  // --- their lives ---
  /// @returns 0 or errno
  int offer(uint32_t slots, uint64_t bounceBytes, uint64_t peerBytes, Channel** channel);
  Channel* find(uint32_t number);
  /// The living one that leads to an address, or nullptr.
  /// @param slot of the process there that is meant, or Channel::kAnySlot
  Channel* to(const Endpoint& address, int32_t slot);
  void remove(Channel* channel);
  /// A segment of the other side's goes.
  void unmap(Channel* channel, uint32_t segment);
  size_t attached() const { return attached_.size(); }
  void onAttached(Channel* channel) { attached_.push_back(channel); }
  void clear();
  /// Whether one may have ended since this was asked last.
  bool takeEnded();
  Channel* firstEnded();
  size_t size() const { return channels_.size(); }

  // --- receiving ---
  /// Describes a burst of packets, behind so many that are described already.
  uint32_t receive(const std::vector<Endpoint>& locals, uint32_t described);
  /// More than a burst, as far as the last one has shown.
  bool hasManyWaiting() const { return burstWasFull_; }
  /// The packets of the last burst are done with.
  void release();
  /// Copies payload that lies in place. @param source as `rx::kBody` has it, and an offset
  bool place(uint64_t source, uint32_t length, uint8_t* target) const;

  // --- sending ---
  enum class Sent { kSent, kFull, kLost };
  /// @param words of the packet; its segments have been checked
  Sent send(Channel* channel, uint8_t source, uint8_t destination, const uint32_t* words,
            uint32_t payloadBytes);
  /// The other sides see what has been sent.
  void publish();
  /// What was sent to a queue pair and is still in its memory is lost, unless it has been taken.
  void withdraw(Channel* channel, uint32_t qpn);

  // --- sleeping ---
  /// What was offered has been handed over by now.
  void letGo();
  /// Asks all to wake us. @returns false when there is something already
  bool arm();
  void disarm();
  /// What becomes readable when one of those that were armed wakes us.
  void appendWakeFds(std::vector<pollfd>* fds) const;
  /// Takes in what has woken us, where no event loop does.
  void drainWakes();
  /// Whether any has a packet.
  bool isReadable() const;
  /// One that had no room may have some.
  bool takeWritable();

 private:
  /// A packet of the last burst.
  struct Taken {
    const uint8_t* header;
    uint32_t headerBytes;
    uint32_t payloadBytes;
    const uint8_t* payload;
  };
  uint32_t receiveFrom(Channel* channel, const std::vector<Endpoint>& locals);
  const char* describe(const Channel& channel, const Slot& slot,
                       const std::vector<Endpoint>& locals);
  /// Whether a payload can be left where it lies, and its name then.
  bool inPlace(const Channel& channel, const uint8_t* data, uint32_t bytes, uint64_t* place) const;
  void publish(Channel* channel);

  PortMemory memory_;
  RegionTable& regions_;
  const size_t arenaAt_;
  size_t arenaUsed_ = 0;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Channel*> attached_;
  Arena* arena_ = nullptr;
  uint32_t nextNumber_ = 0;
  /// The burst: packets described, and of each channel how many have been read.
  Taken taken_[kBurst];
  uint32_t packets_ = 0;
  uint32_t described_ = 0;
  bool burstWasFull_ = false;
  uint64_t inPlace_ = 0;
  struct Claim {
    Channel* channel;
    uint32_t packets;
  };
  std::vector<Claim> claims_;
  size_t first_ = 0;
  std::vector<Channel*> dirty_;
  bool someFull_ = false;
  bool someEnded_ = false;
  /// For peers that were reading what was withdrawn.
  uint64_t waitedMs_ = 0;
  uint64_t waitedUntilMs_ = 0;
};

}  // namespace dapl
