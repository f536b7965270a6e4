// Memory that one process writes and others read: memfds that can neither shrink nor be written
// to by anybody but their maker. Nothing of it has a name in the file system.
#pragma once

#include <cstddef>

namespace dapl {

/// Makes memory of `bytes` (whole pages) that is mapped for writing here, and nowhere else from now
/// on. @param name for /proc/PID/maps only
/// @returns 0 or errno; the caller closes `fd` and unmaps `data`
int createSealed(const char* name, size_t bytes, int* fd, void** data);

/// Maps what another process has made by `createSealed`, for reading. Memory that could shrink
/// would end this process when it reads beyond the new end, so anything else is refused.
/// @param bytes its size as the other process has stated it
/// @returns 0 or errno: EINVAL for what is no such memory; `fd` stays open
int mapSealed(int fd, size_t bytes, void** data);

}  // namespace dapl
