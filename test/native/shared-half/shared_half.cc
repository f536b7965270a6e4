// Memory as one half of a channel has it, for a test that writes there what no port would.
#include <node_api.h>
#include <sys/mman.h>

#include <cstdint>

#include "shared_memory.h"

namespace {

void unmap(napi_env, void* data, void* bytes) {
  munmap(data, reinterpret_cast<size_t>(bytes));
}

/// sharedHalf(bytes): [descriptor, ArrayBuffer]
napi_value sharedHalf(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument = nullptr;
  napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr);
  double bytes = 0;
  napi_get_value_double(env, argument, &bytes);
  const size_t size = static_cast<size_t>(bytes);
  void* data = nullptr;
  const int fd = dapl::createSharedMemory("dapl-test", size, true, &data);
  if (fd < 0) {
    napi_throw_error(env, nullptr, "no shared memory");
    return nullptr;
  }
  napi_value result, descriptor, buffer;
  napi_create_array(env, &result);
  napi_create_int32(env, fd, &descriptor);
  napi_create_external_arraybuffer(env, data, size, unmap, reinterpret_cast<void*>(size), &buffer);
  napi_set_element(env, result, 0, descriptor);
  napi_set_element(env, result, 1, buffer);
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "sharedHalf", NAPI_AUTO_LENGTH, sharedHalf, nullptr, &function);
  napi_set_named_property(env, exports, "sharedHalf", function);
  return exports;
}
