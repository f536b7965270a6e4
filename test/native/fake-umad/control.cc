// What tests do to the fake. The same shared object is loaded by the provider's addon, and shares
// its state with this, which is why this is an addon too.
#include <node_api.h>

#include <cstring>
#include <thread>

#include "world.h"

namespace {

using fake::world;

struct Arguments {
  napi_env env;
  napi_value values[3] = {};

  Arguments(napi_env env, napi_callback_info info) : env(env) {
    size_t count = 3;
    napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  }
  uint32_t u32(int i) const {
    uint32_t value = 0;
    napi_get_value_uint32(env, values[i], &value);
    return value;
  }
  std::string text(int i) const {
    char text[256];
    size_t length = 0;
    napi_get_value_string_utf8(env, values[i], text, sizeof(text), &length);
    return std::string(text, length);
  }
};

#define CONTROL(name) napi_value name(napi_env env, napi_callback_info info)
#define LOCKED                     \
  const Arguments given(env, info); \
  std::lock_guard<std::mutex> lock(world().mutex)

// (path, GIDs one behind another)
CONTROL(addPort) {
  LOCKED;
  size_t length = 0;
  void* bytes = nullptr;
  napi_get_typedarray_info(env, given.values[1], nullptr, &length, &bytes, nullptr, nullptr);
  auto port = std::make_unique<fake::Port>();
  port->path = given.text(0);
  for (size_t at = 0; at + 16 <= length; at += 16) {
    fake::Gid gid;
    memcpy(gid.data(), static_cast<uint8_t*>(bytes) + at, 16);
    port->gids.push_back(gid);
  }
  world().ports[port->path] = std::move(port);
  return nullptr;
}

// (path): the device is removed
CONTROL(removePort) {
  LOCKED;
  const auto found = world().ports.find(given.text(0));
  if (found != world().ports.end()) fake::kill(*found->second);
  return nullptr;
}

// (call: open, register, unregister, read, write or close; nth, errno)
CONTROL(inject) {
  LOCKED;
  world().injections.push_back({given.text(0), given.u32(1), static_cast<int>(given.u32(2))});
  return nullptr;
}

// () => how many have not come about
CONTROL(pendingInjections) {
  LOCKED;
  napi_value result;
  napi_create_uint32(env, static_cast<uint32_t>(world().injections.size()), &result);
  return result;
}

CONTROL(clearInjections) {
  LOCKED;
  world().injections.clear();
  return nullptr;
}

CONTROL(lose) {
  LOCKED;
  world().lose = given.u32(0);
  return nullptr;
}

CONTROL(swallow) {
  LOCKED;
  world().swallow = given.u32(0);
  return nullptr;
}

CONTROL(delayWrites) {
  LOCKED;
  world().writeDelayMs = given.u32(0);
  return nullptr;
}

CONTROL(advance) {
  LOCKED;
  fake::advance(given.u32(0));
  return nullptr;
}

CONTROL(openFiles) {
  LOCKED;
  napi_value result;
  napi_create_uint32(env, static_cast<uint32_t>(world().files.size()), &result);
  return result;
}

// From now on time is the machine's.
CONTROL(runClock) {
  const Arguments given(env, info);
  std::thread([] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::lock_guard<std::mutex> lock(world().mutex);
      fake::advance(1);
    }
  }).detach();
  return nullptr;
}

// As it was at first: open files stay, but their ports are on the network no more.
CONTROL(reset) {
  LOCKED;
  for (auto& [path, port] : world().ports) port->gids.clear();
  world().injections.clear();
  world().lose = world().swallow = world().writeDelayMs = 0;
  return nullptr;
}

napi_value init(napi_env env, napi_value exports) {
  const std::pair<const char*, napi_callback> calls[] = {
      {"addPort", addPort}, {"removePort", removePort},   {"inject", inject},
      {"lose", lose},       {"swallow", swallow},         {"delayWrites", delayWrites},
      {"advance", advance}, {"openFiles", openFiles},     {"runClock", runClock},
      {"reset", reset},     {"pendingInjections", pendingInjections},
      {"clearInjections", clearInjections},
  };
  for (const auto& [name, callback] : calls) {
    napi_value function;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function);
    napi_set_named_property(env, exports, name, function);
  }
  return exports;
}

}  // namespace

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
