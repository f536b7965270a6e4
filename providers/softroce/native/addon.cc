// The Node-API face of the port: class Port, and the pure functions that tests and tools use.
#include <errno.h>
#include <node_api.h>
#include <string.h>

#include <string>
#include <vector>

#include "crc32.h"
#include "icrc.h"
#include "port.h"
#include "train_planner.h"

namespace dapl {
namespace {

struct Bytes {
  uint8_t* data = nullptr;
  size_t length = 0;
};

napi_value throwRange(napi_env env, const std::string& message) {
  napi_throw_range_error(env, "ERR_OUT_OF_RANGE", message.c_str());
  return nullptr;
}

napi_value number(napi_env env, double value) {
  napi_value result;
  napi_create_double(env, value, &result);
  return result;
}

napi_value unsignedNumber(napi_env env, uint32_t value) {
  napi_value result;
  napi_create_uint32(env, value, &result);
  return result;
}

uint32_t toUint32(napi_env env, napi_value value) {
  uint32_t result = 0;
  napi_get_value_uint32(env, value, &result);
  return result;
}

/// The bytes of a typed array of any kind.
Bytes toBytes(napi_env env, napi_value value) {
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

napi_value property(napi_env env, napi_value object, const char* name) {
  napi_value value = nullptr;
  napi_get_named_property(env, object, name, &value);
  return value;
}

Endpoint toEndpoint(napi_env env, napi_value gid, napi_value port) {
  Endpoint endpoint{};
  const Bytes bytes = toBytes(env, gid);
  if (bytes.length >= 16) memcpy(endpoint.gid, bytes.data, 16);
  endpoint.port = static_cast<uint16_t>(toUint32(env, port));
  return endpoint;
}

/// Arguments of a call, and the port that it is made on.
template <size_t kCount>
struct Call {
  napi_value arguments[kCount] = {};
  Port* port = nullptr;

  Call(napi_env env, napi_callback_info info) {
    size_t count = kCount;
    napi_value self;
    napi_get_cb_info(env, info, &count, arguments, &self, nullptr);
    void* wrapped = nullptr;
    if (napi_unwrap(env, self, &wrapped) != napi_ok) return;
    port = static_cast<Port*>(wrapped);
    if (!port->isOpen()) port = nullptr;
  }
};

const char* codeOf(int error) {
  switch (error) {
    case EADDRINUSE: return "EADDRINUSE";
    case EADDRNOTAVAIL: return "EADDRNOTAVAIL";
    case EACCES: return "EACCES";
    case EPERM: return "EPERM";
    case EMFILE: return "EMFILE";
    case EAFNOSUPPORT: return "EAFNOSUPPORT";
    default: return "EIO";
  }
}

void throwErrno(napi_env env, int error, size_t index) {
  napi_value code, message, object;
  napi_create_string_utf8(env, codeOf(error), NAPI_AUTO_LENGTH, &code);
  napi_create_string_utf8(env, strerror(error), NAPI_AUTO_LENGTH, &message);
  napi_create_error(env, code, message, &object);
  napi_set_named_property(env, object, "addressIndex", number(env, static_cast<double>(index)));
  napi_throw(env, object);
}

template <typename T>
size_t share(napi_env env, napi_value arrays, const char* name, T** data,
             std::vector<napi_ref>* references) {
  const napi_value array = property(env, arrays, name);
  const Bytes bytes = toBytes(env, array);
  napi_ref reference = nullptr;
  napi_create_reference(env, array, 1, &reference);
  references->push_back(reference);
  *data = reinterpret_cast<T*>(bytes.data);
  return bytes.length;
}

PortMemory shareMemory(napi_env env, napi_value arrays, std::vector<napi_ref>* references) {
  PortMemory memory;
  memory.arenaBytes = share(env, arrays, "rxArena", &memory.arena, references);
  memory.receivedCapacity =
      share(env, arrays, "rxPackets", &memory.received, references) / (4 * rx::kWords);
  memory.placementCapacity =
      share(env, arrays, "placements", &memory.placements, references) / (4 * place::kWords);
  memory.packetCapacity =
      share(env, arrays, "txPackets", &memory.packets, references) / (4 * tx::kWords);
  memory.segmentCapacity =
      share(env, arrays, "txSegments", &memory.segments, references) / (4 * segment::kWords);
  const size_t counters = share(env, arrays, "counters", &memory.counters, references);
  if (memory.arenaBytes < Receiver::kArenaBytes || counters < 8 * kCounters) memory.arena = nullptr;
  return memory;
}

/// new Port(gids, scopeIds, udpPort, maxPacketBytes, arrays)
napi_value newPort(napi_env env, napi_callback_info info) {
  size_t count = 5;
  napi_value arguments[5] = {}, self;
  napi_get_cb_info(env, info, &count, arguments, &self, nullptr);
  const Bytes gids = toBytes(env, arguments[0]);
  const Bytes scopeBytes = toBytes(env, arguments[1]);
  const size_t addresses = gids.length / 16;
  if (addresses < 1 || addresses > Receiver::kMaxSockets || scopeBytes.length != 4 * addresses) {
    return throwRange(env, "a port has 1 to 64 addresses, not " + std::to_string(addresses));
  }
  std::vector<Endpoint> locals(addresses);
  std::vector<uint32_t> scopes(addresses);
  memcpy(scopes.data(), scopeBytes.data, scopeBytes.length);
  for (size_t i = 0; i < addresses; i++) {
    memcpy(locals[i].gid, gids.data + 16 * i, 16);
    locals[i].port = static_cast<uint16_t>(toUint32(env, arguments[2]));
  }
  std::vector<napi_ref> references;
  const PortMemory memory = shareMemory(env, arguments[4], &references);
  Port* port = new Port(env, memory, references);
  const auto finalize = [](napi_env, void* data, void*) { static_cast<Port*>(data)->release(); };
  if (!memory.arena) {
    port->release();
    return throwRange(env, "the shared arrays are too small");
  }
  size_t failed = 0;
  const int error = port->open(locals, scopes, toUint32(env, arguments[3]), &failed);
  if (error != 0) {
    port->release();
    throwErrno(env, error, failed);
    return nullptr;
  }
  napi_wrap(env, self, port, finalize, nullptr, nullptr);
  return self;
}

napi_value receive(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  return unsignedNumber(env, call.port ? call.port->receive() : 0);
}

napi_value placeAll(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const int64_t bad = call.port ? call.port->place(toUint32(env, call.arguments[0])) : 0;
  if (bad < 0) return nullptr;
  return throwRange(env, call.port ? "placement " + std::to_string(bad) + " is out of bounds"
                                   : "the port is closed");
}

napi_value send(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  const uint32_t from = toUint32(env, call.arguments[0]);
  const uint32_t to = toUint32(env, call.arguments[1]);
  if (!call.port) return unsignedNumber(env, to);
  const Sender::Result result = call.port->send(from, to);
  if (result.invalid >= 0 && !result.wouldBlock) {
    return throwRange(env, "packet " + std::to_string(result.invalid) + " is not valid: path, " +
                               "header length, segments or size");
  }
  return unsignedNumber(env, result.next);
}

napi_value addRegion(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (!call.port) return throwRange(env, "the port is closed");
  return unsignedNumber(env, call.port->regions().add(env, call.arguments[0]));
}

napi_value removeRegion(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const uint32_t region = toUint32(env, call.arguments[0]);
  if (!call.port || call.port->regions().remove(env, region)) return nullptr;
  return throwRange(env, "no region " + std::to_string(region));
}

/// addPath(gid, port, localIndex)
napi_value addPath(napi_env env, napi_callback_info info) {
  const Call<3> call(env, info);
  if (!call.port) return throwRange(env, "the port is closed");
  const uint32_t local = toUint32(env, call.arguments[2]);
  if (local >= call.port->addresses()) return throwRange(env, "no such local address");
  const Endpoint destination = toEndpoint(env, call.arguments[0], call.arguments[1]);
  return unsignedNumber(env, call.port->sender().addPath(destination, local));
}

napi_value removePath(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const uint32_t path = toUint32(env, call.arguments[0]);
  if (!call.port || call.port->sender().removePath(path)) return nullptr;
  return throwRange(env, "no path " + std::to_string(path));
}

/// watch(onReadable, onWritable, onUnreachable)
napi_value watch(napi_env env, napi_callback_info info) {
  const Call<3> call(env, info);
  if (!call.port) return nullptr;
  Port::Handlers handlers;
  napi_create_reference(env, call.arguments[0], 1, &handlers.readable);
  napi_create_reference(env, call.arguments[1], 1, &handlers.writable);
  napi_create_reference(env, call.arguments[2], 1, &handlers.unreachable);
  call.port->watch(handlers);
  return nullptr;
}

napi_value setKeepAlive(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  bool alive = false;
  napi_get_value_bool(env, call.arguments[0], &alive);
  if (call.port) call.port->setKeepAlive(alive);
  return nullptr;
}

napi_value dropped(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  return unsignedNumber(env, call.port ? call.port->dropped() : 0);
}

/// close(onClosed)
napi_value closePort(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (!call.port) return nullptr;
  napi_ref closed = nullptr;
  napi_create_reference(env, call.arguments[0], 1, &closed);
  call.port->close(closed);
  return nullptr;
}

/// findLink(gid): [mtuBytes, scopeId], or undefined when no interface has the address
napi_value findLinkOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const Bytes gid = toBytes(env, call.arguments[0]);
  Link link;
  if (gid.length != 16 || !findLink(gid.data, &link)) return nullptr;
  napi_value result;
  napi_create_array_with_length(env, 2, &result);
  napi_set_element(env, result, 0, number(env, link.mtuBytes));
  napi_set_element(env, result, 1, number(env, link.scopeId));
  return result;
}

/// crc32Variants(): names of those that this machine can run, slowest first
napi_value crc32VariantNames(napi_env env, napi_callback_info) {
  size_t count;
  const Crc32Variant* variants = crc32Variants(&count);
  napi_value result;
  napi_create_array(env, &result);
  uint32_t index = 0;
  for (size_t i = 0; i < count; i++) {
    if (!variants[i].available) continue;
    napi_value name;
    napi_create_string_utf8(env, variants[i].name, NAPI_AUTO_LENGTH, &name);
    napi_set_element(env, result, index++, name);
  }
  return result;
}

/// crc32(variant index among the available, bytes): as zlib's crc32
napi_value crc32Of(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  uint32_t wanted = toUint32(env, call.arguments[0]);
  const Bytes bytes = toBytes(env, call.arguments[1]);
  size_t count;
  const Crc32Variant* variants = crc32Variants(&count);
  for (size_t i = 0; i < count; i++) {
    if (!variants[i].available || wanted-- > 0) continue;
    return unsignedNumber(env, ~variants[i].update(0xFFFFFFFF, bytes.data, bytes.length, 0));
  }
  return throwRange(env, "no such variant");
}

/// icrc(sourceGid, sourcePort, destinationGid, destinationPort, id, BTH to pad)
napi_value icrcValue(napi_env env, napi_callback_info info) {
  const Call<6> call(env, info);
  const Endpoint source = toEndpoint(env, call.arguments[0], call.arguments[1]);
  const Endpoint destination = toEndpoint(env, call.arguments[2], call.arguments[3]);
  const uint32_t id = toUint32(env, call.arguments[4]);
  const Bytes bytes = toBytes(env, call.arguments[5]);
  if (bytes.length < kBthBytes) return throwRange(env, "shorter than a BTH");
  uint32_t reg = headerRegister(source, destination, bytes.length + kIcrcBytes);
  if (isIpv4(source.gid)) reg ^= identificationEffect(static_cast<uint16_t>(id));
  return unsignedNumber(env, icrcOf(reg, bytes.data, bytes.length));
}

/// solveIdentification(received ICRC XOR that with id 0, bytes from BTH to pad): the id, or -1
napi_value solve(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  uint16_t id;
  const bool solved = solveIdentification(toUint32(env, call.arguments[0]),
                                          toUint32(env, call.arguments[1]), &id);
  return number(env, solved ? id : -1);
}

/// planTrains(paths, sizes, maxSegments, maxBytes, out): trains written as {first, count, size}
napi_value planTrains(napi_env env, napi_callback_info info) {
  const Call<5> call(env, info);
  const Bytes paths = toBytes(env, call.arguments[0]);
  const Bytes sizes = toBytes(env, call.arguments[1]);
  const TrainLimits limits = {toUint32(env, call.arguments[2]), toUint32(env, call.arguments[3])};
  const Bytes out = toBytes(env, call.arguments[4]);
  const size_t packets = sizes.length / 4;
  if (paths.length != sizes.length || out.length < 12 * packets) {
    return throwRange(env, "the arrays do not match");
  }
  uint32_t* words = reinterpret_cast<uint32_t*>(out.data);
  uint32_t trains = 0;
  for (size_t first = 0; first < packets; trains++) {
    const Train train = nextTrain(reinterpret_cast<uint32_t*>(paths.data) + first,
                                  reinterpret_cast<uint32_t*>(sizes.data) + first,
                                  packets - first, limits);
    words[3 * trains] = static_cast<uint32_t>(first);
    words[3 * trains + 1] = train.count;
    words[3 * trains + 2] = train.segmentBytes;
    first += train.count;
  }
  return unsignedNumber(env, trains);
}

napi_property_descriptor method(const char* name, napi_callback callback) {
  return {name, nullptr, callback, nullptr, nullptr, nullptr, napi_enumerable, nullptr};
}

napi_value initialize(napi_env env, napi_value exports) {
  const napi_property_descriptor methods[] = {
      method("receive", receive),           method("place", placeAll),
      method("send", send),                 method("addRegion", addRegion),
      method("removeRegion", removeRegion), method("addPath", addPath),
      method("removePath", removePath),     method("watch", watch),
      method("setKeepAlive", setKeepAlive), method("dropped", dropped),
      method("close", closePort),
  };
  napi_value portClass;
  napi_define_class(env, "Port", NAPI_AUTO_LENGTH, newPort, nullptr,
                    sizeof(methods) / sizeof(methods[0]), methods, &portClass);
  const napi_property_descriptor functions[] = {
      method("findLink", findLinkOf),    method("crc32Variants", crc32VariantNames),
      method("crc32", crc32Of),          method("icrc", icrcValue),
      method("planTrains", planTrains),  method("solveIdentification", solve),
  };
  napi_define_properties(env, exports, sizeof(functions) / sizeof(functions[0]), functions);
  napi_set_named_property(env, exports, "Port", portClass);
  napi_set_named_property(env, exports, "arenaBytes",
                          number(env, static_cast<double>(Receiver::kArenaBytes)));
  return exports;
}

}  // namespace
}  // namespace dapl

NAPI_MODULE_INIT() { return dapl::initialize(env, exports); }
