// The port as an object of JavaScript functions.
#include <errno.h>

#include <iterator>
#include <vector>

#include "napi_helpers.h"
#include "socket/multicast_socket.h"
#include "socket/exit_packet.h"

namespace dapl {

const char* codeOf(int error) {
  switch (error) {
    case EADDRINUSE: return "EADDRINUSE";
    case EADDRNOTAVAIL: return "EADDRNOTAVAIL";
    case EACCES: return "EACCES";
    case EPERM: return "EPERM";
    case EMFILE: return "EMFILE";
    case ENFILE: return "ENFILE";
    case ENOMEM: return "ENOMEM";
    case EINVAL: return "EINVAL";
    case EAFNOSUPPORT: return "EAFNOSUPPORT";
    case ENETUNREACH: return "ENETUNREACH";
    case ENODEV: return "ENODEV";
    case ENOBUFS: return "ENOBUFS";
    default: return "EIO";
  }
}

namespace {

void throwErrno(napi_env env, int error, size_t index) {
  napi_value code = nullptr, message = nullptr, object = nullptr;
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
  if (memory.arenaBytes < Port::kArenaBytes || counters < 8 * kCounters) memory.arena = nullptr;
  return memory;
}

napi_value receive(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  return unsignedNumber(env, call.port ? call.port->receive() : 0);
}

napi_value readClock(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (call.port) call.port->readClock();
  return nullptr;
}

/// rest(mostUs)
napi_value rest(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (call.port) call.port->rest(toUint32(env, call.arguments[0]));
  return nullptr;
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

/// useArena(limitBytes, onChange)
napi_value useArena(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  double limit = 0;
  napi_get_value_double(env, call.arguments[0], &limit);
  if (!call.port) return nullptr;
  napi_ref onChange = nullptr;
  napi_create_reference(env, call.arguments[1], 1, &onChange);
  call.port->useArena(static_cast<uint64_t>(limit), onChange);
  return nullptr;
}

/// segments(): [number, descriptor, bytes] of each; the descriptors stay the arena's
napi_value segments(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  napi_value all = nullptr;
  napi_create_array(env, &all);
  if (!call.port || !call.port->arena()) return all;
  uint32_t index = 0;
  for (const Arena::Segment& segment : call.port->arena()->segments()) {
    napi_value one = nullptr;
    napi_create_array_with_length(env, 3, &one);
    napi_set_element(env, one, 0, unsignedNumber(env, segment.number));
    napi_set_element(env, one, 1, number(env, segment.descriptor));
    napi_set_element(env, one, 2, number(env, static_cast<double>(segment.bytes)));
    napi_set_element(env, all, index++, one);
  }
  return all;
}

/// allocate(bytes): memory of the arena, or undefined where it has no more
napi_value allocate(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  double bytes = 0;
  napi_get_value_double(env, call.arguments[0], &bytes);
  if (!call.port || !call.port->arena()) return nullptr;
  return call.port->arena()->allocate(env, static_cast<size_t>(bytes));
}

/// addPath(gid, port, localIndex, channel): the number of a channel, or -1 for UDP
napi_value addPath(napi_env env, napi_callback_info info) {
  const Call<4> call(env, info);
  if (!call.port) return throwRange(env, "the port is closed");
  const uint32_t local = toUint32(env, call.arguments[2]);
  if (local >= call.port->addresses()) return throwRange(env, "no such local address");
  const Endpoint destination = toEndpoint(env, call.arguments[0], call.arguments[1]);
  const bool toGroup = isMulticast(destination.gid);
  const int noRoute = toGroup ? call.port->routeToGroup(destination, local) : 0;
  if (noRoute != 0) {
    throwErrno(env, noRoute, local);
    return nullptr;
  }
  int32_t number = -1;
  napi_get_value_int32(env, call.arguments[3], &number);
  Channel* const channel =
      number < 0 ? nullptr : call.port->channels().find(static_cast<uint32_t>(number));
  const bool leadsThere = channel && channel->isAlive() && channel->addressOf(destination) >= 0;
  if (number >= 0 && !leadsThere) return throwRange(env, "no channel leads there");
  return unsignedNumber(env, call.port->sender().addPath(destination, local, channel));
}

napi_value removePath(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const uint32_t path = toUint32(env, call.arguments[0]);
  if (!call.port || call.port->sender().removePath(path)) return nullptr;
  return throwRange(env, "no path " + std::to_string(path));
}

/// joinGroup(gid, port, localIndex): the number of the membership
napi_value joinGroup(napi_env env, napi_callback_info info) {
  const Call<3> call(env, info);
  if (!call.port) return throwRange(env, "the port is closed");
  const uint32_t local = toUint32(env, call.arguments[2]);
  if (local >= call.port->addresses()) return throwRange(env, "no such local address");
  const Endpoint group = toEndpoint(env, call.arguments[0], call.arguments[1]);
  const int64_t joined = call.port->joinGroup(group, local);
  if (joined >= 0) return unsignedNumber(env, static_cast<uint32_t>(joined));
  throwErrno(env, static_cast<int>(-joined), local);
  return nullptr;
}

napi_value leaveGroup(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (call.port) call.port->leaveGroup(toUint32(env, call.arguments[0]));
  return nullptr;
}

/// keepExitPacket(path, packet): a number to drop it by
napi_value keepExitPacket(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  if (!call.port) return throwRange(env, "the port is closed");
  const Bytes packet = toBytes(env, call.arguments[1]);
  if (packet.length < kBthBytes) return throwRange(env, "shorter than a BTH");
  const int64_t number =
      call.port->keepExitPacket(toUint32(env, call.arguments[0]), packet.data, packet.length);
  if (number >= 0) return unsignedNumber(env, static_cast<uint32_t>(number));
  return throwRange(env, "no such path, or more than " + std::to_string(kExitPacketBytes) +
                             " bytes before the zeros at its end");
}

napi_value dropExitPacketOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (call.port) dropExitPacket(toUint32(env, call.arguments[0]));
  return nullptr;
}

/// watch(onReadable, onWritable, onReport, onChannelEnd)
napi_value watch(napi_env env, napi_callback_info info) {
  const Call<4> call(env, info);
  if (!call.port) return nullptr;
  Port::Handlers handlers;
  napi_create_reference(env, call.arguments[0], 1, &handlers.readable);
  napi_create_reference(env, call.arguments[1], 1, &handlers.writable);
  napi_create_reference(env, call.arguments[2], 1, &handlers.report);
  napi_create_reference(env, call.arguments[3], 1, &handlers.channelEnd);
  call.port->watch(handlers);
  return nullptr;
}

napi_value setProcessHold(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  bool alive = false;
  napi_get_value_bool(env, call.arguments[0], &alive);
  if (call.port) call.port->setProcessHold(alive);
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

constexpr Method kPortMethods[] = {
    {"receive", receive},           {"place", placeAll},
    {"send", send},                 {"addRegion", addRegion},
    {"removeRegion", removeRegion}, {"addPath", addPath},
    {"removePath", removePath},     {"watch", watch},
    {"setProcessHold", setProcessHold}, {"dropped", dropped},
    {"readClock", readClock},       {"close", closePort},
    {"keepExitPacket", keepExitPacket},   {"dropExitPacket", dropExitPacketOf},
    {"rest", rest},                 {"useArena", useArena},
    {"joinGroup", joinGroup},       {"leaveGroup", leaveGroup},
    {"allocate", allocate},         {"segments", segments},
};

/// Each function keeps the port; with the last of them it goes.
napi_value portObject(napi_env env, Port* port) {
  napi_value object = nullptr;
  napi_create_object(env, &object);
  port->retain();
  std::vector<Method> methods(std::begin(kPortMethods), std::end(kPortMethods));
  methods.insert(methods.end(), kChannelMethods, kChannelMethods + kChannelMethodCount);
  for (const Method& method : methods) {
    napi_value function = nullptr;
    if (napi_create_function(env, method.name, NAPI_AUTO_LENGTH, method.callback, port,
                             &function) != napi_ok) {
      break;
    }
    port->retain();
    napi_add_finalizer(
        env, function, port,
        [](napi_env, void* data, void*) { static_cast<Port*>(data)->letGo(); }, nullptr, nullptr);
    napi_set_named_property(env, object, method.name, function);
  }
  port->letGo();
  return object;
}

}  // namespace

napi_value openPort(napi_env env, napi_callback_info info) {
  const Call<8> call(env, info);
  const napi_value* arguments = call.arguments;
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
  const Bytes descriptorBytes = toBytes(env, arguments[7]);
  if (descriptorBytes.length != 0 && descriptorBytes.length != 4 * addresses) {
    return throwRange(env, "one socket for each address");
  }
  std::vector<uint32_t> descriptors(descriptorBytes.length / 4);
  if (!descriptors.empty()) {
    memcpy(descriptors.data(), descriptorBytes.data, descriptorBytes.length);
  }
  std::vector<napi_ref> references;
  const PortMemory memory = shareMemory(env, arguments[4], &references);
  Port* port = new Port(env, memory, references);
  double clockOffsetUs = 0;
  napi_get_value_double(env, arguments[6], &clockOffsetUs);
  port->setClock(clockOffsetUs);
  if (!memory.arena) {
    port->letGo();
    return throwRange(env, "the shared arrays are too small");
  }
  size_t failed = 0;
  bool exactIcrc = false;
  napi_get_value_bool(env, arguments[5], &exactIcrc);
  const int error = port->open(locals, scopes, descriptors, toUint32(env, arguments[3]), exactIcrc,
                               &failed);
  if (error != 0) {
    port->letGo();
    throwErrno(env, error, failed);
    return nullptr;
  }
  return portObject(env, port);
}

}  // namespace dapl
