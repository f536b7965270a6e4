// Which packets leave as one segmented datagram (UDP_SEGMENT). Pure: paths, marks and sizes in,
// runs out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapl {

struct TrainLimits {
  uint32_t maxSegments;
  uint32_t maxBytes;
};

struct Train {
  uint32_t count;
  /// Size of every packet but the last, which may be shorter.
  uint32_t segmentBytes;
};

/// Packets to be planned; there is at least one.
struct Planned {
  const uint32_t* paths;
  /// What says which of the processes behind an address takes a packet (slotOfQpn, madMark): the
  /// system steers a train whole, by its first packet.
  const uint64_t* marks;
  const uint32_t* sizes;
  size_t count;
};

/// The longest train that starts with the first packet: one path and mark, equal sizes, within the
/// limits.
Train nextTrain(const Planned& packets, TrainLimits limits);

/// Marks of two packets to an address are equal only where the same process takes both, whatever
/// the slots of the peer (docs/shared.md). Of data: the top byte of the destination QPN.
/// @param bth 12 bytes
inline uint64_t slotOfQpn(const uint8_t* bth) { return bth[5]; }
/// Of MADs to QP1: all that a steering program looks at.
inline bool isToQp1(const uint8_t* bth) { return bth[5] == 0 && bth[6] == 0 && bth[7] == 1; }
uint64_t madMark(const uint8_t* mad, size_t bytes);

}  // namespace dapl
