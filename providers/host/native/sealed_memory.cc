#include "sealed_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif

namespace dapl {
namespace {

// FUTURE_WRITE also forbids to punch holes, which a reader would fill at its own cost.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

int failed(int fd, void* data, size_t bytes) {
  const int error = errno;
  if (data != MAP_FAILED) munmap(data, bytes);
  close(fd);
  return error;
}

}  // namespace

int createSealed(const char* name, size_t bytes, int* fd, void** data) {
  *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd < 0) return errno;
  *data = MAP_FAILED;
  if (ftruncate(*fd, static_cast<off_t>(bytes)) != 0) return failed(*fd, *data, bytes);
  *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (*data == MAP_FAILED) return failed(*fd, *data, bytes);
  // The own mapping is older than the seal, and stays writable.
  if (fcntl(*fd, F_ADD_SEALS, kSeals) != 0) return failed(*fd, *data, bytes);
  return 0;
}

int mapSealed(int fd, size_t bytes, void** data) {
  struct stat status;
  struct statfs system;
  if (fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0) return errno;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return EINVAL;
  // Huge pages have seals, too, but a reader that finds none left is ended.
  if (static_cast<uint64_t>(system.f_type) != TMPFS_MAGIC) return EINVAL;
  if (bytes == 0 || status.st_size < 0 || static_cast<uint64_t>(status.st_size) != bytes) {
    return EINVAL;
  }
  *data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  return *data == MAP_FAILED ? errno : 0;
}

}  // namespace dapl
