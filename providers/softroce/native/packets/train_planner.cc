#include "packets/train_planner.h"

namespace dapl {

Train nextTrain(const uint32_t* paths, const uint32_t* sizes, size_t packets, TrainLimits limits) {
  const uint32_t size = sizes[0];
  const size_t most = packets < limits.maxSegments ? packets : limits.maxSegments;
  uint32_t bytes = size;
  uint32_t count = 1;
  while (count < most && paths[count] == paths[0] && sizes[count] <= size &&
         bytes + sizes[count] <= limits.maxBytes) {
    bytes += sizes[count++];
    if (sizes[count - 1] < size) break;  // a shorter one ends it
  }
  return {count, size};
}

}  // namespace dapl
