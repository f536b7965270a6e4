// Memory that suits registration: whole pages of its own, given back when nothing refers to it any
// more (a registration does).
#include <sys/mman.h>

#include <cerrno>

#include "file_mapping.h"
#include "named_memory.h"
#include "instance.h"

namespace {

void unmap(napi_env, void* data, void* hint) { munmap(data, reinterpret_cast<size_t>(hint)); }

// (bytes) => ArrayBuffer of zeros at a page boundary, or errno
napi_value allocate(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  double bytes = 0;
  napi_get_value_double(env, args.values[0], &bytes);
  const auto length = static_cast<size_t>(bytes);
  void* data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return number(env, errno);
  napi_value buffer = nullptr;
  void* hint = reinterpret_cast<void*>(length);
  if (napi_create_external_arraybuffer(env, data, length, unmap, hint, &buffer) != napi_ok) {
    munmap(data, length);
    return number(env, EOPNOTSUPP);  // a runtime that keeps all memory inside of its heap
  }
  return buffer;
}

}  // namespace

void registerMemory(napi_env env, napi_value exports, Instance& instance) {
  exportFunction(env, exports, "allocate", allocate, &instance);
  exportFunction(env, exports, "mapFile", dapl::mapFile, &instance);
  exportFunction(env, exports, "shareMemory", dapl::shareMemory, &instance);
}
