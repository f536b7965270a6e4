// Management datagrams for JavaScript. Calls that make something return its number or -errno, the
// others 0 or errno; nothing throws.
#include "umad_binding.h"

#include <cerrno>
#include <cstring>

#include "umad_abi.h"
#include "umad_file.h"

namespace {

using umad::File;
using umad::Files;

struct Arguments {
  napi_env env;
  napi_value values[8] = {};
  Files* files = nullptr;

  Arguments(napi_env env, napi_callback_info info) : env(env) {
    size_t count = 8;
    void* data = nullptr;
    napi_get_cb_info(env, info, &count, values, nullptr, &data);
    files = static_cast<Files*>(data);
  }

  uint32_t u32(int i) const {
    uint32_t value = 0;
    napi_get_value_uint32(env, values[i], &value);
    return value;
  }

  File* file() const { return files->at(u32(0)); }

  uint8_t* bytes(int i, size_t* length) const {
    napi_typedarray_type type = napi_uint8_array;
    void* data = nullptr;
    *length = 0;
    napi_get_typedarray_info(env, values[i], &type, length, &data, nullptr, nullptr);
    if (type != napi_uint8_array) *length = 0;
    return static_cast<uint8_t*>(data);
  }
};

napi_value result(napi_env env, int64_t value) {
  napi_value number;
  napi_create_int64(env, value, &number);
  return number;
}

constexpr size_t kPathBytes = 4096;

// (path of a shared object) => what is wrong with it, or undefined
napi_value useLibrary(napi_env env, napi_callback_info info) {
  Arguments given(env, info);
  char path[kPathBytes];
  size_t length = 0;
  napi_get_value_string_utf8(env, given.values[0], path, sizeof(path), &length);
  napi_value text = nullptr;
  if (const char* problem = umad::load(path, &given.files->system)) {
    napi_create_string_utf8(env, problem, NAPI_AUTO_LENGTH, &text);
  }
  return text;
}

// (path, onEvent: (event, token, errno) => void) => file
napi_value openFile(napi_env env, napi_callback_info info) {
  Arguments given(env, info);
  char path[kPathBytes];
  size_t length = 0;
  if (napi_get_value_string_utf8(env, given.values[0], path, sizeof(path), &length) != napi_ok) {
    return result(env, -EINVAL);
  }
  return result(env, File::open(env, *given.files, path, given.values[1]));
}

// (file, class, class version, OUI, RMPP version, methods: 16 bytes, a bit each)
napi_value registerAgent(napi_env env, napi_callback_info info) {
  Arguments given(env, info);
  File* file = given.file();
  size_t length = 0;
  const uint8_t* methods = given.bytes(5, &length);
  umad::Registration registration = {};
  if (!file || length != sizeof(registration.methodMask)) return result(env, EINVAL);
  registration.qpn = 1;
  registration.managementClass = static_cast<uint8_t>(given.u32(1));
  registration.classVersion = static_cast<uint8_t>(given.u32(2));
  registration.oui = given.u32(3);
  registration.rmppVersion = static_cast<uint8_t>(given.u32(4));
  memcpy(registration.methodMask, methods, length);
  return result(env, file->registerAgent(&registration));
}

// (file, token, header and MAD): the agent's id is put into the header
napi_value writePacket(napi_env env, napi_callback_info info) {
  Arguments given(env, info);
  File* file = given.file();
  size_t length = 0;
  uint8_t* bytes = given.bytes(2, &length);
  if (!file || length < sizeof(umad::Header)) return result(env, EINVAL);
  memcpy(bytes + offsetof(umad::Header, id), &file->agentId, sizeof(file->agentId));
  return result(env, file->write(given.u32(1), bytes, length));
}

// (file, into) => length, or -errno
napi_value readPacket(napi_env env, napi_callback_info info) {
  Arguments given(env, info);
  File* file = given.file();
  size_t length = 0;
  uint8_t* bytes = given.bytes(1, &length);
  if (!file) return result(env, -EINVAL);
  return result(env, file->read(bytes, length));
}

// (file)
napi_value closeFile(napi_env env, napi_callback_info info) {
  Arguments given(env, info);
  File* file = given.file();
  if (!file) return result(env, EINVAL);
  file->close();
  return result(env, 0);
}

void endEnvironment(void* data) {
  auto* files = static_cast<Files*>(data);
  bool inUse = false;
  for (File* file : files->items) {
    if (file) inUse = file->abandon() || inUse;
  }
  if (!inUse) delete files;
}

}  // namespace

void registerUmad(napi_env env, napi_value exports) {
  auto* files = new Files();
  napi_add_env_cleanup_hook(env, endEnvironment, files);
  const napi_property_descriptor properties[] = {
      {"umadUse", nullptr, useLibrary, nullptr, nullptr, nullptr, napi_enumerable, files},
      {"umadOpen", nullptr, openFile, nullptr, nullptr, nullptr, napi_enumerable, files},
      {"umadRegister", nullptr, registerAgent, nullptr, nullptr, nullptr, napi_enumerable, files},
      {"umadWrite", nullptr, writePacket, nullptr, nullptr, nullptr, napi_enumerable, files},
      {"umadRead", nullptr, readPacket, nullptr, nullptr, nullptr, napi_enumerable, files},
      {"umadClose", nullptr, closeFile, nullptr, nullptr, nullptr, napi_enumerable, files},
  };
  napi_define_properties(env, exports, sizeof(properties) / sizeof(properties[0]), properties);
}
