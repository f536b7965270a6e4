// What only a fake libibverbs can do, for tests: the same library as the provider's, by its path.
#include <dlfcn.h>
#include <node_api.h>

#include "fake_verbs.h"
#include "library.h"
#include "napi_util.h"

namespace {

#define FAKE_FUNCTIONS(X)                                                                 \
  X(fake_verbs_set_mode) X(fake_verbs_set_pace) X(fake_verbs_progress) X(fake_verbs_inject) \
  X(fake_verbs_clear_injections)

struct Fake {
  FAKE_FUNCTIONS(SYMBOL_MEMBER)
  SharedLibrary library;
};

Fake fake;

ibv_context* contextOf(const Args& args) {
  return reinterpret_cast<ibv_context*>(static_cast<uintptr_t>(args.u64(0)));
}

napi_value load(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const std::string missing = fake.library.load(args.text(0));
  return missing.empty() ? nullptr : text(env, missing);
}

// (context, mode)
napi_value setMode(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const auto mode = static_cast<fake_verbs_mode>(args.u32(1));
  return number(env, fake.fake_verbs_set_mode(contextOf(args), mode));
}

// (context, us)
napi_value setPace(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  fake.fake_verbs_set_pace(contextOf(args), args.u32(1));
  return nullptr;
}

// (context, limit)
napi_value progress(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  return number(env, fake.fake_verbs_progress(contextOf(args), args.u32(1)));
}

// (function, nth, errno)
napi_value inject(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const std::string name = args.text(0);
  return number(env, fake.fake_verbs_inject(name.c_str(), args.u32(1),
                                            static_cast<int>(args.u32(2))));
}

napi_value clearInjections(napi_env, napi_callback_info) {
  fake.fake_verbs_clear_injections();
  return nullptr;
}

napi_value init(napi_env env, napi_value exports) {
#define SYMBOL(name) REQUIRED_SYMBOL(fake, name)
  if (fake.library.symbols.empty()) fake.library.symbols = {FAKE_FUNCTIONS(SYMBOL)};
#undef SYMBOL
  fake.library.soname = "fake-ibverbs.so";
  exportFunction(env, exports, "load", load, nullptr);
  exportFunction(env, exports, "setMode", setMode, nullptr);
  exportFunction(env, exports, "setPace", setPace, nullptr);
  exportFunction(env, exports, "progress", progress, nullptr);
  exportFunction(env, exports, "inject", inject, nullptr);
  exportFunction(env, exports, "clearInjections", clearInjections, nullptr);
  return exports;
}

}  // namespace

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
