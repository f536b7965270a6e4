// Which packets leave as one segmented datagram (UDP_SEGMENT). Pure: paths and sizes in, runs out.
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

/// The longest train that starts with the first packet: one path, equal sizes, within the limits.
/// There is at least one packet.
Train nextTrain(const uint32_t* paths, const uint32_t* sizes, size_t packets, TrainLimits limits);

}  // namespace dapl
