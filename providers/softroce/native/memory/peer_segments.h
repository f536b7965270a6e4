// Segments of a peer's arena, mapped for reading: everything that the peer says of them is checked
// here before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace dapl {

class PeerSegments {
 public:
  struct Limits {
    size_t segments;
    uint64_t bytes;  // of all of them
  };

  explicit PeerSegments(const Limits& limits) : limits_(limits) {}
  PeerSegments(const PeerSegments&) = delete;
  ~PeerSegments();

  /// Takes the descriptor, whatever comes of it. @returns 0, -EINVAL (no sealed memory of this
  /// size, a number in use or 0), -ENOSPC (a limit), or -errno of mapping it
  int add(uint32_t number, uint64_t bytes, int descriptor);
  /// What it is called with unknown numbers for, it ignores: the peer may end what was never used.
  void remove(uint32_t number);
  /// The address of a range, or nullptr when it is not wholly inside of a segment.
  const uint8_t* resolve(uint32_t number, uint64_t offset, uint64_t length) const;

 private:
  struct Segment {
    uint8_t* data;
    uint64_t bytes;
  };

  const Limits limits_;
  uint64_t bytes_ = 0;
  std::unordered_map<uint32_t, Segment> segments_;
};

inline const uint8_t* PeerSegments::resolve(uint32_t number, uint64_t offset,
                                            uint64_t length) const {
  const auto found = segments_.find(number);
  if (found == segments_.end()) return nullptr;
  const Segment& segment = found->second;
  if (offset > segment.bytes || length > segment.bytes - offset) return nullptr;
  return segment.data + offset;
}

}  // namespace dapl
