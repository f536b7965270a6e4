#include "memory/peer_segments.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared_memory.h"

namespace dapl {

PeerSegments::~PeerSegments() {
  for (const auto& [number, segment] : segments_) munmap(segment.data, segment.bytes);
}

int PeerSegments::add(uint32_t number, uint64_t bytes, int descriptor) {
  int result = 0;
  void* data = nullptr;
  if (number == 0 || segments_.count(number) > 0 || checkSharedMemory(descriptor, bytes) != 0) {
    result = -EINVAL;
  } else if (segments_.size() >= limits_.segments || bytes > limits_.bytes - bytes_) {
    result = -ENOSPC;
  } else if ((data = mapSharedMemory(descriptor, bytes, false)) == nullptr) {
    result = -errno;
  }
  close(descriptor);
  if (result != 0) return result;
  segments_[number] = {static_cast<uint8_t*>(data), bytes};
  bytes_ += bytes;
  return 0;
}

void PeerSegments::remove(uint32_t number) {
  const auto found = segments_.find(number);
  if (found == segments_.end()) return;
  munmap(found->second.data, found->second.bytes);
  bytes_ -= found->second.bytes;
  segments_.erase(found);
}

}  // namespace dapl
