// Sends packets in trains: headers, payload from registered memory, pad and ICRC, one system call
// for each train.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tables/page_ring.h"
#include "port_memory.h"
#include "shm/channels.h"
#include "tables/region_table.h"
#include "socket/socket_owner.h"
#include "packets/train_planner.h"
#include "socket/udp_socket.h"

namespace dapl {

struct Path {
  bool used = false;
  uint32_t localIndex = 0;
  Endpoint destination{};
  SocketAddress address{};
  socklen_t addressBytes = 0;
  bool ipv4 = false;
  /// With identification 0.
  HeaderRegisters registers;
  /// The destination is this very host, so that whole pages can be handed over.
  bool sameHost = false;
  /// Payload in place shows a process that does not take it in what its memory holds later.
  SocketOwner owner;
  /// It goes over a channel, and nothing of it over UDP. Of one that is gone nothing is left.
  bool overChannel = false;
  Channel* channel = nullptr;
  uint8_t channelDestination = 0;
  /// Of a path to this host that has carried a long train.
  std::unique_ptr<PageRing> ring;
};

class Sender {
 public:
  Sender(const PortMemory& memory, RegionTable& regions, std::vector<UdpSocket>& sockets,
         Channels& channels);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// @param channel that it goes over, or nullptr for UDP
  uint32_t addPath(const Endpoint& destination, uint32_t localIndex, Channel* channel);
  bool removePath(uint32_t path);
  bool hasPath(uint32_t number) const { return number < paths_.size() && paths_[number].used; }
  const Path& path(uint32_t number) const { return paths_[number]; }
  uint32_t paths() const { return static_cast<uint32_t>(paths_.size()); }
  /// What still goes to a channel is lost from now on.
  void forget(const Channel* channel);

  /// The system would not send a packet.
  struct Refusal {
    uint32_t path;
    int error;
    /// Of the IP packet.
    uint32_t packetBytes;
  };
  struct Result {
    /// First packet not taken.
    uint32_t next = 0;
    /// Index of a descriptor that breaks the contract (nothing of it was sent), or -1.
    int64_t invalid = -1;
    bool wouldBlock = false;
    /// For want of room in a channel.
    bool channelFull = false;
    /// Local indices (bits) of sockets with an error report waiting.
    uint64_t delayedErrors = 0;
    /// One for packets of a path in a row that had the same fate.
    std::vector<Refusal> refusals;
  };
  Result send(uint32_t from, uint32_t to);

 private:
  enum class Outcome { kSent, kWouldBlock, kRefused, kSegmentationRefused };

  bool measure(uint32_t packet);
  /// @param words of a packet that has been measured
  uint64_t markOf(const uint32_t* words);
  /// @returns how many packets were taken
  uint32_t sendOverChannel(uint32_t packet, Path& path, Result* result);
  uint32_t build(uint32_t first, uint32_t count);
  void append(const uint32_t* words, Path& path, uint32_t bytes, uint32_t index);
  uint32_t appendPayload(const uint32_t* words, uint32_t reg);
  void closeScratch();
  uint32_t registerOf(Path& path, uint32_t bytes, uint32_t index);
  PageRing* ringFor(uint32_t first, Train train);
  Outcome sendPages(uint32_t first, Train train, PageRing* ring, Result* result);
  Outcome sendLoaded(const Path& path, Train train, size_t bytes, Result* result);
  size_t layOutInPlace(uint32_t packet, Path& path, PageRing* ring);
  uint8_t* layOut(uint32_t packet, Path& path, uint32_t index, uint8_t* at);
  Outcome transmit(const Path& path, uint32_t count, uint32_t segmentBytes, int flags,
                   Result* result);
  uint32_t sendTrain(uint32_t first, Train train, Result* result);
  uint32_t retreat(uint32_t first, Train train, Result* result);
  void noteRefusal(uint32_t first, uint32_t count, Result* result);

  PortMemory memory_;
  RegionTable& regions_;
  std::vector<UdpSocket>& sockets_;
  Channels& channels_;
  std::vector<Path> paths_;
  std::vector<uint32_t> freePaths_;
  TrainLimits limits_;
  /// Path, mark and size of every packet of the present call, for the planner.
  std::vector<uint32_t> packetPaths_;
  std::vector<uint64_t> packetMarks_;
  std::vector<uint32_t> packetBytes_;
  std::vector<uint32_t> payloadBytes_;
  PagePipe pages_;
  /// Rings that there may still be.
  uint32_t ringsLeft_ = 0;
  uint32_t pageFailures_ = 0;
  /// Of the last packet that was refused.
  int refusedBy_ = 0;
  std::vector<iovec> vectors_;
  size_t vectorCount_ = 0;
  /// Headers, trailers and small payloads of a train, in the order of the wire.
  std::vector<uint8_t> scratch_;
  size_t scratchUsed_ = 0;
  size_t scratchSent_ = 0;
};

}  // namespace dapl
