// What one Node environment (the main thread, or a worker) holds: libraries and objects by number.
// Nothing is shared between environments but the libraries themselves.
#pragma once

#include <uv.h>

#include <utility>
#include <vector>

#include "napi_util.h"
#include "objects.h"
#include "verbs_library.h"

struct Shutdown;

struct Instance {
  napi_env env;
  uv_loop_t* loop = nullptr;
  napi_async_context async = nullptr;
  Shutdown* shutdown = nullptr;
  bool ending = false;

  std::vector<SharedLibrary> libraries;
  Verbs verbs;

  Table<Device> devices;
  Table<Pd> pds;
  Table<Region> regions;
  Table<Cq> cqs;
  Table<Srq> srqs;
  Table<Qp> qps;
  Table<Xrcd> xrcds;

  // Called, last one first, when the environment ends, before devices are closed: for what other
  // files hold. Watches of theirs are closed there.
  std::vector<std::pair<void (*)(void*), void*>> cleanups;
};

void release(Instance& instance, napi_ref& reference);

// One function per group of calls; each adds its own to `exports` (and its library, cleanups).
void registerDevices(napi_env env, napi_value exports, Instance& instance);
void registerObjects(napi_env env, napi_value exports, Instance& instance);
void registerCompletionQueues(napi_env env, napi_value exports, Instance& instance);
void registerQueuePairs(napi_env env, napi_value exports, Instance& instance);
void registerSharedReceives(napi_env env, napi_value exports, Instance& instance);
void registerMulticast(napi_env env, napi_value exports, Instance& instance);
void registerMemory(napi_env env, napi_value exports, Instance& instance);
void registerData(napi_env env, napi_value exports, Instance& instance);
// Weak: an addon without these files has none of their calls.
#define OPTIONAL_GROUP __attribute__((weak))
OPTIONAL_GROUP void registerRdmacm(napi_env env, napi_value exports, Instance& instance);
OPTIONAL_GROUP void registerUmad(napi_env env, napi_value exports, Instance& instance);
OPTIONAL_GROUP void registerXrc(napi_env env, napi_value exports, Instance& instance);
