// Between JavaScript values and ours. A worker thread may be ended while a call is under way: from
// then on the runtime makes nothing any more, so what it was to make is null, and the call returns.
#pragma once

#include <node_api.h>
#include <string.h>

#include <cstdint>
#include <string>

#include "icrc/icrc.h"
#include "port.h"

namespace dapl {

struct Bytes {
  uint8_t* data = nullptr;
  size_t length = 0;
};

inline napi_value throwRange(napi_env env, const std::string& message) {
  napi_throw_range_error(env, "ERR_OUT_OF_RANGE", message.c_str());
  return nullptr;
}

inline napi_value number(napi_env env, double value) {
  napi_value result = nullptr;
  napi_create_double(env, value, &result);
  return result;
}

inline napi_value unsignedNumber(napi_env env, uint32_t value) {
  napi_value result = nullptr;
  napi_create_uint32(env, value, &result);
  return result;
}

inline uint32_t toUint32(napi_env env, napi_value value) {
  uint32_t result = 0;
  napi_get_value_uint32(env, value, &result);
  return result;
}

/// The bytes of a typed array of any kind.
inline Bytes toBytes(napi_env env, napi_value value) {
  Bytes bytes;
  napi_typedarray_type type;
  void* data = nullptr;
  size_t length = 0;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, nullptr, nullptr) != napi_ok) {
    return bytes;
  }
  const size_t width = type == napi_float64_array ? 8 : type == napi_uint32_array ? 4 : 1;
  bytes.data = static_cast<uint8_t*>(data);
  bytes.length = length * width;
  return bytes;
}

inline napi_value property(napi_env env, napi_value object, const char* name) {
  napi_value value = nullptr;
  napi_get_named_property(env, object, name, &value);
  return value;
}

inline Endpoint toEndpoint(napi_env env, napi_value gid, napi_value port) {
  Endpoint endpoint{};
  const Bytes bytes = toBytes(env, gid);
  if (bytes.length >= 16) memcpy(endpoint.gid, bytes.data, 16);
  endpoint.port = static_cast<uint16_t>(toUint32(env, port));
  return endpoint;
}

/// Arguments of a call, and the port that it is for: the function carries it, since unwrapping an
/// object costs more than all the rest of a call.
template <size_t kCount>
struct Call {
  napi_value arguments[kCount] = {};
  Port* port = nullptr;

  Call(napi_env env, napi_callback_info info) {
    size_t count = kCount;
    void* data = nullptr;
    napi_get_cb_info(env, info, &count, arguments, nullptr, &data);
    port = static_cast<Port*>(data);
    if (port && !port->isOpen()) port = nullptr;
  }
};

struct Method {
  const char* name;
  napi_callback callback;
};

const char* codeOf(int error);

/// What a port's object has for its channels (shm/channel_binding.cc).
extern const Method kChannelMethods[];
extern const size_t kChannelMethodCount;

/// openPort(gids, scopeIds, udpPort, maxPacketBytes, arrays): an object of functions
napi_value openPort(napi_env env, napi_callback_info info);

}  // namespace dapl
