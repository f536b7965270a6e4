#include "memory/backing_store.h"

#include <dlfcn.h>

namespace {

// `std::shared_ptr<BackingStore> v8::ArrayBuffer::GetBackingStore()`, which takes what stands for
// its object in Node-API too: the handle. In Itanium's ABI for C++ that is this function.
using GetBackingStore = std::shared_ptr<void> (*)(napi_value arrayBuffer);
constexpr const char* GET = "_ZN2v811ArrayBuffer15GetBackingStoreEv";
// A runtime with this has the shared_ptr that we are compiled with.
constexpr const char* SAME_LIBRARY =
    "_ZN2v811ArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE";
// Neither is promised to be as it was in another version: these have been tried.
constexpr uint32_t FIRST_MAJOR = 20;
constexpr uint32_t LAST_MAJOR = 26;

GetBackingStore find(napi_env env) {
  const napi_node_version* version = nullptr;
  if (napi_get_node_version(env, &version) != napi_ok) return nullptr;
  if (version->major < FIRST_MAJOR || version->major > LAST_MAJOR) return nullptr;
  if (!dlsym(RTLD_DEFAULT, SAME_LIBRARY)) return nullptr;
  return reinterpret_cast<GetBackingStore>(dlsym(RTLD_DEFAULT, GET));
}

}  // namespace

std::shared_ptr<void> backingStoreOf(napi_env env, napi_value typedArray) {
  static const GetBackingStore get = find(env);
  napi_value buffer = nullptr;
  bool isPlain = false;
  if (!get ||
      napi_get_typedarray_info(env, typedArray, nullptr, nullptr, nullptr, &buffer, nullptr) !=
          napi_ok ||
      napi_is_arraybuffer(env, buffer, &isPlain) != napi_ok || !isPlain) {
    return nullptr;
  }
  return get(buffer);
}
