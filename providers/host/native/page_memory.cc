#include "page_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace dapl {
namespace {

/// Of x86-64, and of arm64 with pages of 4 KiB.
constexpr size_t kHugeBytes = 2 << 20;

/// Runs when the ArrayBuffer is collected: nothing, a registration included, holds a view any more.
void unmap(napi_env, void* data, void* hint) {
  munmap(data, reinterpret_cast<size_t>(hint));
}

size_t toNext(size_t value, size_t step) { return (value + step - 1) / step * step; }

/// @returns `bytes` (whole pages) from a boundary of huge pages, or nullptr
uint8_t* mapAligned(size_t bytes) {
  const size_t room = bytes + kHugeBytes;
  void* all = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  uint8_t* const base = static_cast<uint8_t*>(all);
  const size_t before = toNext(reinterpret_cast<uintptr_t>(base), kHugeBytes) -
                        reinterpret_cast<uintptr_t>(base);
  if (before > 0) munmap(base, before);
  munmap(base + before + bytes, room - before - bytes);
  return base + before;
}

}  // namespace

napi_value allocatePages(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument = nullptr;
  napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr);
  double length = 0;
  napi_get_value_double(env, argument, &length);
  const size_t bytes =
      toNext(static_cast<size_t>(length), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  uint8_t* data = bytes > 0 ? mapAligned(bytes) : nullptr;
  if (!data) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(data, bytes, MADV_HUGEPAGE);  // without them it is memory all the same
#endif
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, data, static_cast<size_t>(length), unmap,
                                       reinterpret_cast<void*>(bytes), &buffer) == napi_ok) {
    return buffer;
  }
  munmap(data, bytes);  // a runtime that keeps all memory inside of its heap
  return nullptr;
}

}  // namespace dapl
