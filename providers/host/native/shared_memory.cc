#include "shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace dapl {
namespace {

// Of <linux/fcntl.h>, which older C libraries do not repeat.
constexpr int kSealSeal = 0x1, kSealShrink = 0x2, kSealGrow = 0x4, kSealFutureWrite = 0x10;
// Of <linux/magic.h>: memfds but for those of huge pages, which may end the process when touched.
constexpr long kTmpfsMagic = 0x01021994;
constexpr int kSizeSeals = kSealSeal | kSealShrink | kSealGrow;
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#endif

int failing(int descriptor, void* data, size_t bytes, int error) {
  if (data != MAP_FAILED) munmap(data, bytes);
  close(descriptor);
  return -error;
}

}  // namespace

int createSharedMemory(const char* name, size_t bytes, bool ownOnly, void** data) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return -errno;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    return failing(descriptor, MAP_FAILED, 0, errno);
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return failing(descriptor, mapped, 0, errno);
  const int seals = kSizeSeals | (ownOnly ? kSealFutureWrite : 0);
  if (fcntl(descriptor, F_ADD_SEALS, seals) != 0) return failing(descriptor, mapped, bytes, errno);
  *data = mapped;
  return descriptor;
}

int64_t sharedMemoryBytes(int descriptor) {
  // Only memfds (and tmpfs files that allow it) have seals: anything else fails here.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) return -EINVAL;
  struct stat status;
  struct statfs system;
  if (fstat(descriptor, &status) != 0 || status.st_size <= 0) return -EINVAL;
  if (fstatfs(descriptor, &system) != 0 || system.f_type != kTmpfsMagic) return -EINVAL;
  return status.st_size;
}

int checkSharedMemory(int descriptor, uint64_t bytes) {
  const int64_t actual = sharedMemoryBytes(descriptor);
  return actual > 0 && static_cast<uint64_t>(actual) == bytes ? 0 : -EINVAL;
}

void* mapSharedMemory(int descriptor, size_t bytes, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace dapl
