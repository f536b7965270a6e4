// Between JavaScript values and ours. Nothing here throws: what is not of the type asked for is 0,
// or null.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "errno_of.h"

struct Instance;

// The arguments of one call. Numbers are u32, memory is a typed array.
struct Args {
  napi_env env;
  void* data = nullptr;  // what the function was exported with
  napi_value values[24];

  Args(napi_env env, napi_callback_info info);
  Instance& instance() const { return *static_cast<Instance*>(data); }
  uint32_t u32(int i) const;
  int32_t i32(int i) const;
  uint64_t u64(int i) const;  // a bigint
  bool has(int i) const;      // neither undefined nor left out
  std::string text(int i) const;
  void* memory(int i, size_t* lengthBytes = nullptr) const;
  uint32_t* words(int i) const { return static_cast<uint32_t*>(memory(i)); }
  napi_ref keep(int i) const;  // a strong reference
};

napi_value number(napi_env env, double value);
napi_value text(napi_env env, const std::string& value);
napi_value bigint(napi_env env, uint64_t value);
void setProperty(napi_env env, napi_value object, const char* name, napi_value value);

void exportFunction(napi_env env, napi_value exports, const char* name, napi_callback callback,
                    void* data);

// Exports `double name(const Args&, Instance&)`.
#define NUMBER_CALL(name)                                        \
  napi_value name##Call(napi_env env, napi_callback_info info) { \
    Args args(env, info);                                        \
    errno = 0;                                                   \
    return number(env, name(args, args.instance()));             \
  }
#define EXPORT_CALL(name) exportFunction(env, exports, #name, name##Call, &instance);
