// The system calls that reach a umad device: the kernel's, or those of a library that stands in for
// it in tests (load('umad', path)). There is no libibumad underneath: it would add a package to
// install, and waits of its own, to two ioctls, a read and a write.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "library.h"

int umad_open(const char* path, int flags);
int umad_close(int fd);
int umad_ioctl(int fd, unsigned long request, void* argument);
ssize_t umad_read(int fd, void* into, size_t lengthBytes);
ssize_t umad_write(int fd, const void* from, size_t lengthBytes);

struct UmadSystem {
  decltype(&::umad_open) umad_open = [](const char* path, int flags) { return open(path, flags); };
  decltype(&::umad_close) umad_close = [](int fd) { return close(fd); };
  decltype(&::umad_ioctl) umad_ioctl = [](int fd, unsigned long request, void* argument) {
    return ioctl(fd, request, argument);
  };
  decltype(&::umad_read) umad_read = [](int fd, void* into, size_t lengthBytes) {
    return read(fd, into, lengthBytes);
  };
  decltype(&::umad_write) umad_write = [](int fd, const void* from, size_t lengthBytes) {
    return write(fd, from, lengthBytes);
  };

  // Only ever loaded with a path.
  SharedLibrary library() {
    return {"umad",
            "",
            {REQUIRED_SYMBOL(*this, umad_open) REQUIRED_SYMBOL(*this, umad_close)
                 REQUIRED_SYMBOL(*this, umad_ioctl) REQUIRED_SYMBOL(*this, umad_read)
                     REQUIRED_SYMBOL(*this, umad_write)}};
  }
};
