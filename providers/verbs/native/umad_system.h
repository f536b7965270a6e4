// The system calls that reach a umad device: the kernel's, or those of a library that stands in for
// it in tests.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace umad {

struct System {
  int (*open)(const char* path, int flags);
  int (*close)(int fd);
  int (*ioctl)(int fd, unsigned long request, void* argument);
  ssize_t (*read)(int fd, void* into, size_t lengthBytes);
  ssize_t (*write)(int fd, const void* from, size_t lengthBytes);
};

System kernel();

// Looks up `umad_open`, `umad_close`, … in a shared object. Returns what is wrong, or nullptr.
const char* load(const char* path, System* system);

}  // namespace umad
