// Management datagrams for JavaScript: what providers/verbs/addon/umad.ts declares.
#include <cerrno>
#include <cstring>

#include "abi/umad_abi.h"
#include "umad/umad_file.h"

namespace {

using umad::File;
using umad::Files;

// Exports `double name(const Args&, Files&)`.
#define UMAD_CALL(name)                                          \
  napi_value name##Call(napi_env env, napi_callback_info info) { \
    Args args(env, info);                                        \
    auto& files = *static_cast<Files*>(args.data);               \
    return number(env, name(args, files));                       \
  }

// (path, onEvent: (event, token, errno) => void) => file
double umadOpen(const Args& args, Files& files) {
  napi_ref onEvent = args.keep(1);
  const int opened = File::open(files, args.text(0).c_str(), onEvent);
  if (opened < 0) release(*files.instance, onEvent);
  return opened;
}
UMAD_CALL(umadOpen)

// (file, class, class version, OUI, RMPP version, methods: 16 bytes, a bit each)
double umadRegister(const Args& args, Files& files) {
  File* file = files.items.at(args.u32(0));
  size_t length = 0;
  const void* methods = args.memory(5, &length);
  umad::Registration registration = {};
  if (!file || length != sizeof(registration.methodMask)) return EINVAL;
  registration.qpn = 1;
  registration.managementClass = static_cast<uint8_t>(args.u32(1));
  registration.classVersion = static_cast<uint8_t>(args.u32(2));
  registration.oui = args.u32(3);
  registration.rmppVersion = static_cast<uint8_t>(args.u32(4));
  memcpy(registration.methodMask, methods, length);
  return file->registerAgent(&registration);
}
UMAD_CALL(umadRegister)

// (file, token, header and MAD): the agent's id is put into the header
double umadWrite(const Args& args, Files& files) {
  File* file = files.items.at(args.u32(0));
  size_t length = 0;
  auto* bytes = static_cast<uint8_t*>(args.memory(2, &length));
  if (!file || length < sizeof(umad::Header)) return EINVAL;
  memcpy(bytes + offsetof(umad::Header, id), &file->agentId, sizeof(file->agentId));
  return file->write(args.u32(1), bytes, length);
}
UMAD_CALL(umadWrite)

// (file, into) => length, or -errno
double umadRead(const Args& args, Files& files) {
  File* file = files.items.at(args.u32(0));
  size_t length = 0;
  auto* bytes = static_cast<uint8_t*>(args.memory(1, &length));
  if (!file) return -EINVAL;
  return static_cast<double>(file->read(bytes, length));
}
UMAD_CALL(umadRead)

// (file)
double umadClose(const Args& args, Files& files) {
  File* file = files.items.at(args.u32(0));
  if (!file) return EINVAL;
  file->close();
  return 0;
}
UMAD_CALL(umadClose)

// Files whose last job is under way end behind it; the environment waits for that.
void endFiles(void* data) {
  for (File* file : static_cast<Files*>(data)->items.items) {
    if (file) file->abandon();
  }
}

}  // namespace

void registerUmad(napi_env env, napi_value exports, Instance& instance) {
  auto* files = new Files();
  files->instance = &instance;
  instance.libraries.push_back(files->system.library());
  instance.cleanups.emplace_back(endFiles, files);
  exportFunction(env, exports, "umadOpen", umadOpenCall, files);
  exportFunction(env, exports, "umadRegister", umadRegisterCall, files);
  exportFunction(env, exports, "umadWrite", umadWriteCall, files);
  exportFunction(env, exports, "umadRead", umadReadCall, files);
  exportFunction(env, exports, "umadClose", umadCloseCall, files);
}
