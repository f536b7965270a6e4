#include "packets/train_planner.h"

namespace dapl {
namespace {

/// Offsets in a MAD of what tells whose it is (IBTA 13.4.2, 12.6): class, the top byte of the
/// transaction id, the low byte of the attribute id, the top bytes of both communication ids.
constexpr size_t kMadMarks[] = {1, 8, 17, 24, 28};
constexpr size_t kMarkedBytes = 29;
constexpr uint64_t kManagement = uint64_t{1} << 48;

}  // namespace

uint64_t madMark(const uint8_t* mad, size_t bytes) {
  if (!mad || bytes < kMarkedBytes) return kManagement;
  uint64_t mark = 0;
  for (const size_t at : kMadMarks) mark = mark << 8 | mad[at];
  return kManagement | mark;
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
