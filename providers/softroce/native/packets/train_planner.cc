#include "packets/train_planner.h"

namespace dapl {
namespace {

/// Offsets in a MAD of what tells whose it is (IBTA 13.4.3, 12.6): class, method, the top byte of
/// the transaction id, the low byte of the attribute id, the top bytes of both communication ids.
constexpr size_t kMadMarks[] = {1, 3, 8, 17, 24, 28};
constexpr size_t kRemoteId = 28;
constexpr size_t kMarkedBytes = 32;
constexpr uint64_t kManagement = uint64_t{1} << 56;
constexpr uint64_t kNoRemoteId = uint64_t{1} << 48;

}  // namespace

uint64_t madMark(const uint8_t* mad, size_t bytes) {
  if (!mad || bytes < kMarkedBytes) return kManagement;
  uint64_t mark = 0;
  for (const size_t at : kMadMarks) mark = mark << 8 | mad[at];
  const uint8_t* const remote = mad + kRemoteId;
  const bool isNone = (remote[0] | remote[1] | remote[2] | remote[3]) == 0;
  return kManagement | (isNone ? kNoRemoteId : 0) | mark;
}

Train nextTrain(const Planned& packets, TrainLimits limits) {
  const uint32_t size = packets.sizes[0];
  const size_t most = packets.count < limits.maxSegments ? packets.count : limits.maxSegments;
  uint32_t bytes = size;
  uint32_t count = 1;
  while (count < most && packets.paths[count] == packets.paths[0] &&
         packets.marks[count] == packets.marks[0] && packets.sizes[count] <= size &&
         bytes + packets.sizes[count] <= limits.maxBytes) {
    bytes += packets.sizes[count++];
    if (packets.sizes[count - 1] < size) break;  // a shorter one ends it
  }
  return {count, size};
}

}  // namespace dapl
