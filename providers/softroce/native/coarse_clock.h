// A clock that costs next to nothing, and is as coarse as the system's tick.
#pragma once

#include <time.h>

#include <cstdint>

namespace dapl {

/// Milliseconds, monotonic.
inline uint64_t coarseMs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

}  // namespace dapl
