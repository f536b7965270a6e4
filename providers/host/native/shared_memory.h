// Memory that processes share without a name: memfds (memfd_create(2)), whose size is sealed before
// another process is given them, so that none can be cut short under a mapping.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace dapl {

/// Memory of this size, mapped for reading and writing, its size sealed.
/// @param ownOnly processes that are given the descriptor can map it for reading only
/// (F_SEAL_FUTURE_WRITE, Linux 5.1: where it is not known, -EINVAL)
/// @param name what /proc shows; it says nothing else
/// @returns the descriptor (close-on-exec), or -errno
int createSharedMemory(const char* name, size_t bytes, bool ownOnly, void** data);

/// Whether it is memory of exactly this size whose size can never change: 0, or -EINVAL.
int checkSharedMemory(int descriptor, uint64_t bytes);

/// The size of sealed memory, or -EINVAL.
int64_t sharedMemoryBytes(int descriptor);

/// Maps what `checkSharedMemory` has found good. @returns nullptr with errno
void* mapSharedMemory(int descriptor, size_t bytes, bool writable);

}  // namespace dapl
