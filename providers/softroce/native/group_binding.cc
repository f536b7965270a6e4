#include "group_binding.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <iterator>

#include "shared_memory.h"
#include "socket/group_socket.h"
#include "socket/socket_owner.h"
#include "socket/udp_socket.h"
#include "thread_descriptors.h"

namespace dapl {
namespace {

napi_value fail(napi_env env, int error) {
  napi_throw_error(env, uv_err_name(-error), strerror(error));
  return nullptr;
}

napi_value undefinedOr(napi_env env, int error) {
  return error == 0 ? nullptr : fail(env, error);
}

/// What is no descriptor is -1, of which the system says EBADF.
int toDescriptor(napi_env env, napi_value value) {
  int32_t descriptor = -1;
  napi_get_value_int32(env, value, &descriptor);
  return descriptor;
}

napi_value kept(napi_env env, int descriptor) {
  keepDescriptor(env, descriptor);
  return number(env, descriptor);
}

/// bindGroupSocket(gid, scopeId, udpPort): descriptor
napi_value bindGroupSocket(napi_env env, napi_callback_info info) {
  const Call<3> call(env, info);
  UdpSocket socket;
  socket.local = toEndpoint(env, call.arguments[0], call.arguments[2]);
  socket.scopeId = toUint32(env, call.arguments[1]);
  const int error = openUdpSocket(&socket, true);
  return error == 0 ? kept(env, socket.fd) : fail(env, error);
}

/// attachSteering(descriptor, program)
napi_value attachSteeringTo(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  const Bytes program = toBytes(env, call.arguments[1]);
  if (program.length % sizeof(Instruction) != 0) return fail(env, EINVAL);
  return undefinedOr(env, attachSteering(toDescriptor(env, call.arguments[0]),
                                         reinterpret_cast<const Instruction*>(program.data),
                                         program.length / sizeof(Instruction)));
}

/// dropAll(descriptor)
napi_value dropAllOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  return undefinedOr(env, dropAll(toDescriptor(env, call.arguments[0])));
}

/// takeAll(descriptor)
napi_value takeAllOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  return undefinedOr(env, takeAll(toDescriptor(env, call.arguments[0])));
}

/// drain(descriptor): datagrams
napi_value drainOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  uint32_t datagrams = 0;
  const int error = drain(toDescriptor(env, call.arguments[0]), &datagrams);
  return error == 0 ? unsignedNumber(env, datagrams) : fail(env, error);
}

/// duplicate(descriptor): another one
napi_value duplicate(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const int descriptor = fcntl(toDescriptor(env, call.arguments[0]), F_DUPFD_CLOEXEC, 0);
  return descriptor >= 0 ? kept(env, descriptor) : fail(env, errno);
}

/// closeDescriptor(descriptor)
napi_value closeDescriptor(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  closeKept(env, toDescriptor(env, call.arguments[0]));
  return nullptr;
}

void unmap(napi_env, void* data, void* bytes) { munmap(data, reinterpret_cast<size_t>(bytes)); }

/// Unmaps it where the runtime keeps all memory inside of its heap.
bool wrap(napi_env env, void* data, size_t bytes, napi_value* buffer) {
  if (napi_create_external_arraybuffer(env, data, bytes, unmap, reinterpret_cast<void*>(bytes),
                                       buffer) == napi_ok) {
    return true;
  }
  munmap(data, bytes);
  return false;
}

size_t toLength(napi_env env, napi_value value) {
  double bytes = 0;
  napi_get_value_double(env, value, &bytes);
  return bytes >= 1 && bytes <= UINT32_MAX ? static_cast<size_t>(bytes) : 0;
}

/// createSharedTable(name, bytes): { memory, descriptor }
napi_value createSharedTable(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  char name[201];
  size_t length = 0;
  napi_get_value_string_utf8(env, call.arguments[0], name, sizeof(name), &length);
  const size_t bytes = toLength(env, call.arguments[1]);
  if (bytes == 0) return fail(env, EINVAL);
  void* data = nullptr;
  const int descriptor = createSharedMemory(name, bytes, false, &data);
  if (descriptor < 0) return fail(env, -descriptor);
  keepDescriptor(env, descriptor);
  napi_value memory = nullptr, table = nullptr;
  if (!wrap(env, data, bytes, &memory)) {
    closeKept(env, descriptor);
    return fail(env, EOPNOTSUPP);
  }
  napi_create_object(env, &table);
  napi_set_named_property(env, table, "memory", memory);
  napi_set_named_property(env, table, "descriptor", number(env, descriptor));
  return table;
}

/// mapSharedTable(descriptor, bytes): memory
napi_value mapSharedTable(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  const int descriptor = toDescriptor(env, call.arguments[0]);
  const size_t bytes = toLength(env, call.arguments[1]);
  if (checkSharedMemory(descriptor, bytes) != 0) return fail(env, EINVAL);
  void* const data = mapSharedMemory(descriptor, bytes, true);
  if (!data) return fail(env, errno);
  napi_value memory = nullptr;
  return wrap(env, data, bytes, &memory) ? memory : fail(env, EOPNOTSUPP);
}

/// socketUsers(gid, udpPort): user ids
napi_value socketUsersOf(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  SocketAddress address;
  toSocketAddress(toEndpoint(env, call.arguments[0], call.arguments[1]), 0, &address);
  napi_value users = nullptr;
  napi_create_array(env, &users);
  uint32_t index = 0;
  for (const uint32_t user : socketUsers(address)) {
    napi_set_element(env, users, index++, unsignedNumber(env, user));
  }
  return users;
}

}  // namespace

const Method kGroupFunctions[] = {
    {"bindGroupSocket", bindGroupSocket},
    {"attachSteering", attachSteeringTo},
    {"dropAll", dropAllOf},
    {"takeAll", takeAllOf},
    {"drain", drainOf},
    {"duplicate", duplicate},
    {"closeDescriptor", closeDescriptor},
    {"createSharedTable", createSharedTable},
    {"mapSharedTable", mapSharedTable},
    {"socketUsers", socketUsersOf},
};
const size_t kGroupFunctionCount = std::size(kGroupFunctions);

}  // namespace dapl
