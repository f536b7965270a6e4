#include "napi_util.h"

Args::Args(napi_env env, napi_callback_info info) : env(env), values{} {
  size_t count = 24;
  napi_get_cb_info(env, info, &count, values, nullptr, &data);
}

uint32_t Args::u32(int i) const {
  uint32_t value = 0;
  napi_get_value_uint32(env, values[i], &value);
  return value;
}

int32_t Args::i32(int i) const {
  int32_t value = 0;
  napi_get_value_int32(env, values[i], &value);
  return value;
}

uint64_t Args::u64(int i) const {
  uint64_t value = 0;
  bool lossless = false;
  napi_get_value_bigint_uint64(env, values[i], &value, &lossless);
  return value;
}

bool Args::has(int i) const {
  napi_valuetype type = napi_undefined;
  if (values[i]) napi_typeof(env, values[i], &type);
  return type != napi_undefined;
}

std::string Args::text(int i) const {
  size_t length = 0;
  if (!has(i) || napi_get_value_string_utf8(env, values[i], nullptr, 0, &length) != napi_ok) {
    return "";
  }
  std::string result(length, '\0');
  napi_get_value_string_utf8(env, values[i], &result[0], length + 1, &length);
  return result;
}

void* Args::memory(int i, size_t* lengthBytes) const {
  napi_typedarray_type type = napi_uint8_array;
  size_t length = 0;
  void* data = nullptr;
  napi_get_typedarray_info(env, values[i], &type, &length, &data, nullptr, nullptr);
  const bool isBytes = type == napi_uint8_array || type == napi_int8_array;
  if (lengthBytes) *lengthBytes = isBytes ? length : length * 4;
  return data;
}

napi_ref Args::keep(int i) const {
  napi_ref reference = nullptr;
  napi_create_reference(env, values[i], 1, &reference);
  return reference;
}

napi_value number(napi_env env, double value) {
  napi_value result = nullptr;
  napi_create_double(env, value, &result);
  return result;
}

napi_value text(napi_env env, const std::string& value) {
  napi_value result = nullptr;
  napi_create_string_utf8(env, value.c_str(), value.size(), &result);
  return result;
}

napi_value bigint(napi_env env, uint64_t value) {
  napi_value result = nullptr;
  napi_create_bigint_uint64(env, value, &result);
  return result;
}

void setProperty(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

void exportFunction(napi_env env, napi_value exports, const char* name, napi_callback callback,
                    void* data) {
  napi_value function = nullptr;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, data, &function);
  napi_set_named_property(env, exports, name, function);
}
