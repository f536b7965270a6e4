// The addon: one instance an environment, its libraries, and its end.
#include <new>

#include "watch.h"

void release(Instance& instance, napi_ref& reference) {
  if (reference && !instance.ending) napi_delete_reference(instance.env, reference);
  reference = nullptr;
}

namespace {

// (name of the library, path or undefined) => what is missing in words, or undefined
napi_value load(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const std::string name = args.text(0);
  std::string missing = "no library is called " + name;
  for (SharedLibrary& library : args.instance().libraries) {
    if (name == library.name) missing = library.load(args.text(1));
  }
  return missing.empty() ? nullptr : text(env, missing);
}

// (name of the library) => the functions that are looked up in it
napi_value functions(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const std::string name = args.text(0);
  napi_value names = nullptr;
  napi_create_array(env, &names);
  uint32_t count = 0;
  for (const SharedLibrary& library : args.instance().libraries) {
    if (name != library.name) continue;
    for (const Symbol& symbol : library.symbols) {
      napi_set_element(env, names, count++, text(env, symbol.name));
    }
  }
  return names;
}

// Objects go while the memory that devices write into is still there.
void endInstance(napi_async_cleanup_hook_handle hook, void* data) {
  auto& instance = *static_cast<Instance*>(data);
  instance.ending = true;
  while (!instance.cleanups.empty()) {
    const auto cleanup = instance.cleanups.back();
    instance.cleanups.pop_back();
    cleanup.first(cleanup.second);
  }
  for (Device* device : instance.devices.items) {
    if (!device) continue;
    destroyObjects(*device);
    closeDevice(*device);
  }
  Shutdown* shutdown = instance.shutdown;
  shutdown->ending = true;
  shutdown->hook = hook;
  shutdown->settle();
}

napi_value init(napi_env env, napi_value exports) {
  auto* instance = new Instance();
  instance->env = env;
  instance->shutdown = new Shutdown();
  napi_get_uv_event_loop(env, &instance->loop);
  napi_async_init(env, nullptr, text(env, "dapl.verbs"), &instance->async);
  instance->libraries.push_back(instance->verbs.library());
  napi_set_instance_data(
      env, instance, [](napi_env, void* data, void*) { delete static_cast<Instance*>(data); },
      nullptr);
  napi_add_async_cleanup_hook(env, endInstance, instance, nullptr);
  exportFunction(env, exports, "load", load, instance);
  exportFunction(env, exports, "functions", functions, instance);
  registerDevices(env, exports, *instance);
  registerObjects(env, exports, *instance);
  registerCompletionQueues(env, exports, *instance);
  registerQueuePairs(env, exports, *instance);
  registerSharedReceives(env, exports, *instance);
  registerMulticast(env, exports, *instance);
  registerMemory(env, exports, *instance);
  registerData(env, exports, *instance);
  if (registerRdmacm) registerRdmacm(env, exports, *instance);
  if (registerUmad) registerUmad(env, exports, *instance);
  if (registerXrc) registerXrc(env, exports, *instance);
  return exports;
}

}  // namespace

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
