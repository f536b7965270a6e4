// The arrays that the port shares with JavaScript: word layouts of core/spi/port/packet-port.ts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapl {

namespace rx {
enum { kOffset, kLength, kFlags, kLocalGidIndex, kSourceGid, kSourcePort = 8, kBody, kWords = 16 };
constexpr uint32_t kFlagIpv6 = 1;
constexpr uint32_t kFlagRecoveredId = 2;
constexpr uint32_t kGroupBit = 0x80000000;
}  // namespace rx

namespace place {
enum { kSource, kLength, kRegion, kOffsetLow, kOffsetHigh, kWords = 6 };
}

namespace tx {
enum { kPath, kHeaderLength, kFirstSegment, kSegmentCount, kHeader, kWords = 16 };
constexpr uint32_t kMaxHeaderBytes = 48;
/// Payload up to here is always copied while it is sent.
constexpr uint32_t kCopiedPayloadBytes = 4096;
}  // namespace tx

namespace segment {
enum { kRegion, kOffsetLow, kOffsetHigh, kLength, kWords = 4 };
}

/// Order of the Float64Array of counters; native-port.ts names them.
enum Counter {
  kReceivedPackets,
  kSentPackets,
  kMalformed,
  kBadIcrc,
  kRecoveredId,
  kSendErrors,
  kSentTrains,
  kReceivedTrains,
  kSegmentationOff,
  kUnseenHeader,
  kTooLongPackets,
  kIcmpUnreachable,
  kIcmpTooBig,
  kChannelReceived,
  kChannelSent,
  kChannelDropped,
  /// No count: the time of the last look at the clock, in microseconds of performance.now().
  kClockUs,
  kCounters,
};

struct PortMemory {
  uint8_t* arena = nullptr;
  size_t arenaBytes = 0;
  uint32_t* received = nullptr;
  size_t receivedCapacity = 0;
  uint32_t* placements = nullptr;
  size_t placementCapacity = 0;
  uint32_t* packets = nullptr;
  size_t packetCapacity = 0;
  uint32_t* segments = nullptr;
  size_t segmentCapacity = 0;
  double* counters = nullptr;
};

inline uint64_t join(uint32_t low, uint32_t high) {
  return static_cast<uint64_t>(high) << 32 | low;
}

}  // namespace dapl
