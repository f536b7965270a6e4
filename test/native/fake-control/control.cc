// What only a fake libibverbs can do, for tests in JavaScript: the functions of fake_verbs.h, of
// the library that is loaded by path (one file is one library for everybody in the process).
#include <dlfcn.h>
#include <node_api.h>

#include <cerrno>
#include <string>

#include "fake_verbs.h"

namespace {

#define FUNCTIONS(X)                                                                              \
  X(fake_verbs_set_mode) X(fake_verbs_set_pace) X(fake_verbs_progress) X(fake_verbs_elapse)        \
  X(fake_verbs_inject) X(fake_verbs_function) X(fake_verbs_calls)                                  \
  X(fake_verbs_clear_injections) X(fake_verbs_fail_request) X(fake_verbs_objects)                  \
  X(fake_verbs_add_device) X(fake_verbs_remove_device) X(fake_verbs_restore_device)                \
  X(fake_verbs_restore) X(fake_verbs_set_link) X(fake_verbs_set_gid) X(fake_verbs_set_features)    \
  X(fake_verbs_set_memlock) X(fake_verbs_set_failure)

struct Fake {
#define MEMBER(name) decltype(&::name) name = nullptr;
  FUNCTIONS(MEMBER)
#undef MEMBER
} fake;  // one library a process, whatever the threads
void* library = nullptr;

class Arguments {
 public:
  Arguments(napi_env env, napi_callback_info info) : env_(env), values_{} {
    size_t count = 5;
    napi_get_cb_info(env, info, &count, values_, nullptr, nullptr);
  }
  uint32_t u32(int i) const {
    uint32_t value = 0;
    napi_get_value_uint32(env_, values_[i], &value);
    return value;
  }
  uint64_t u64(int i) const {
    double value = 0;
    napi_get_value_double(env_, values_[i], &value);
    return static_cast<uint64_t>(value);
  }
  std::string text(int i) const {
    char value[4096] = "";
    size_t length = 0;
    napi_get_value_string_utf8(env_, values_[i], value, sizeof(value), &length);
    return {value, length};
  }
  // Null when it is not bytes.
  const uint8_t* bytes(int i) const {
    void* data = nullptr;
    napi_get_typedarray_info(env_, values_[i], nullptr, nullptr, &data, nullptr, nullptr);
    return static_cast<const uint8_t*>(data);
  }

 private:
  napi_env env_;
  napi_value values_[5];
};

napi_value number(napi_env env, double value) {
  napi_value result;
  napi_create_double(env, value, &result);
  return result;
}

// (path) => what is missing, or undefined
napi_value load(napi_env env, napi_callback_info info) {
  const Arguments args(env, info);
  void* handle = dlopen(args.text(0).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* missing = handle ? nullptr : dlerror();
#define LOOK_UP(name)                                                          \
  if (handle) {                                                                \
    fake.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));     \
    if (!fake.name) missing = #name;                                           \
  }
  FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  library = handle;
  napi_value result = nullptr;
  if (missing) napi_create_string_utf8(env, missing, NAPI_AUTO_LENGTH, &result);
  return result;
}

// (name) => whether callers find it by name: the others are behind a context
napi_value isExported(napi_env env, napi_callback_info info) {
  return number(env, dlsym(library, Arguments(env, info).text(0).c_str()) != nullptr);
}

// The name of the nth function that can be made to fail, or undefined.
napi_value functionName(napi_env env, napi_callback_info info) {
  napi_value result = nullptr;
  const char* name = fake.fake_verbs_function(Arguments(env, info).u32(0));
  if (name) napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &result);
  return result;
}

#define NUMBER(name, expression)                                \
  napi_value name(napi_env env, napi_callback_info info) {      \
    const Arguments args(env, info);                            \
    return number(env, expression);                             \
  }
#define NOTHING(name, statement)                                \
  napi_value name(napi_env env, napi_callback_info info) {      \
    [[maybe_unused]] const Arguments args(env, info);           \
    statement;                                                  \
    return nullptr;                                             \
  }

NUMBER(setMode, fake.fake_verbs_set_mode(nullptr, static_cast<fake_verbs_mode>(args.u32(0))))
NOTHING(setPace, fake.fake_verbs_set_pace(nullptr, args.u32(0)))
NUMBER(progress, fake.fake_verbs_progress(nullptr, args.u32(0)))
NOTHING(elapse, fake.fake_verbs_elapse(nullptr, args.u32(0)))
NUMBER(inject, fake.fake_verbs_inject(args.text(0).c_str(), args.u32(1), int(args.u32(2))))
NOTHING(setFailure, fake.fake_verbs_set_failure(static_cast<fake_verbs_failure>(args.u32(0))))
NUMBER(calls, fake.fake_verbs_calls(args.text(0).c_str()))
NOTHING(clearInjections, fake.fake_verbs_clear_injections())
NOTHING(failRequest,
        fake.fake_verbs_fail_request(args.u32(0), static_cast<ibv_wc_status>(args.u32(1))))
NUMBER(objects, fake.fake_verbs_objects(args.text(0).empty() ? nullptr : args.text(0).c_str()))
NUMBER(addDevice, fake.fake_verbs_add_device(args.text(0).c_str(), args.u32(1)))
NUMBER(removeDevice, fake.fake_verbs_remove_device(args.text(0).c_str(), int(args.u32(1))))
NUMBER(restoreDevice, fake.fake_verbs_restore_device(args.text(0).c_str()))
NOTHING(restore, fake.fake_verbs_restore())
NUMBER(setLink, fake.fake_verbs_set_link(args.text(0).c_str(), args.u32(1), int(args.u32(2))))
NUMBER(setGid, fake.fake_verbs_set_gid(args.text(0).c_str(), args.u32(1), args.u32(2),
                                       args.bytes(3), args.u32(4)))
NUMBER(setFeatures, fake.fake_verbs_set_features(args.text(0).c_str(), args.u32(1)))
NOTHING(setMemlock, fake.fake_verbs_set_memlock(args.u64(0)))

napi_value init(napi_env env, napi_value exports) {
#define EXPORT(name)                                                                       \
  {                                                                                        \
    napi_value function;                                                                   \
    napi_create_function(env, #name, NAPI_AUTO_LENGTH, name, nullptr, &function);          \
    napi_set_named_property(env, exports, #name, function);                                \
  }
  EXPORT(load) EXPORT(isExported) EXPORT(functionName) EXPORT(setMode) EXPORT(setPace)
  EXPORT(progress) EXPORT(elapse) EXPORT(inject) EXPORT(calls) EXPORT(clearInjections)
  EXPORT(failRequest) EXPORT(setFailure)
  EXPORT(objects) EXPORT(addDevice) EXPORT(removeDevice) EXPORT(restoreDevice) EXPORT(restore)
  EXPORT(setLink) EXPORT(setGid) EXPORT(setFeatures) EXPORT(setMemlock)
#undef EXPORT
  return exports;
}

}  // namespace

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
