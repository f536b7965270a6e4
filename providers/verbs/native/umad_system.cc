#include "umad_system.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace umad {

namespace {

int openDevice(const char* path, int flags) { return ::open(path, flags); }

int control(int fd, unsigned long request, void* argument) {
  return ::ioctl(fd, request, argument);
}

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

System kernel() { return {openDevice, ::close, control, ::read, ::write}; }

const char* load(const char* path, System* system) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  System found = {};
  const bool whole = find(library, "umad_open", &found.open) &&
                     find(library, "umad_close", &found.close) &&
                     find(library, "umad_ioctl", &found.ioctl) &&
                     find(library, "umad_read", &found.read) &&
                     find(library, "umad_write", &found.write);
  if (!whole) return dlerror();
  *system = found;
  return nullptr;
}

}  // namespace umad
