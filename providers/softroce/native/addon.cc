// What the addon exports: openPort, and the pure functions that tests and tools use.
#include "icrc/crc32.h"
#include "file_mapping.h"
#include "group_binding.h"
#include "named_memory.h"
#include "napi_helpers.h"
#include "page_memory.h"
#include "packets/train_planner.h"
#include "socket/exit_packet.h"
#include "unix_socket_binding.h"

#include <iterator>
#include <vector>

namespace dapl {
namespace {

/// findLink(gid): [mtuBytes, scopeId], or undefined when no interface has the address
napi_value findLinkOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  const Bytes gid = toBytes(env, call.arguments[0]);
  Link link;
  if (gid.length != 16 || !findLink(gid.data, &link)) return nullptr;
  napi_value result = nullptr;
  napi_create_array_with_length(env, 2, &result);
  napi_set_element(env, result, 0, number(env, link.mtuBytes));
  napi_set_element(env, result, 1, number(env, link.scopeId));
  return result;
}

/// crc32Variants(): names of those that this machine can run, slowest first
napi_value crc32VariantNames(napi_env env, napi_callback_info) {
  size_t count;
  const Crc32Variant* variants = crc32Variants(&count);
  napi_value result = nullptr;
  napi_create_array(env, &result);
  uint32_t index = 0;
  for (size_t i = 0; i < count; i++) {
    if (!variants[i].available) continue;
    napi_value name = nullptr;
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

/// planTrains(paths, slots, sizes, maxSegments, maxBytes, out): trains written as
/// {first, count, size}
napi_value planTrains(napi_env env, napi_callback_info info) {
  const Call<6> call(env, info);
  const Bytes paths = toBytes(env, call.arguments[0]);
  const Bytes slots = toBytes(env, call.arguments[1]);
  const Bytes sizes = toBytes(env, call.arguments[2]);
  const TrainLimits limits = {toUint32(env, call.arguments[3]), toUint32(env, call.arguments[4])};
  const Bytes out = toBytes(env, call.arguments[5]);
  const size_t packets = sizes.length / 4;
  if (paths.length != sizes.length || slots.length != sizes.length ||
      out.length < 12 * packets) {
    return throwRange(env, "the arrays do not match");
  }
  const uint32_t* slot = reinterpret_cast<const uint32_t*>(slots.data);
  const std::vector<uint64_t> marks(slot, slot + packets);
  uint32_t* words = reinterpret_cast<uint32_t*>(out.data);
  uint32_t trains = 0;
  for (size_t first = 0; first < packets; trains++) {
    const Planned planned = {reinterpret_cast<uint32_t*>(paths.data) + first, &marks[first],
                             reinterpret_cast<uint32_t*>(sizes.data) + first, packets - first};
    const Train train = nextTrain(planned, limits);
    words[3 * trains] = static_cast<uint32_t>(first);
    words[3 * trains + 1] = train.count;
    words[3 * trains + 2] = train.segmentBytes;
    first += train.count;
  }
  return unsignedNumber(env, trains);
}

/// watchSignal(number): packets leave by it, where its default action ends the process
napi_value watchSignalOf(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  watchSignal(static_cast<int>(toUint32(env, call.arguments[0])));
  return nullptr;
}

constexpr Method kFunctions[] = {
    {"openPort", openPort},     {"findLink", findLinkOf},
    {"crc32", crc32Of},         {"crc32Variants", crc32VariantNames},
    {"icrc", icrcValue},        {"solveIdentification", solve},
    {"planTrains", planTrains}, {"mapFile", mapFile},
    {"allocatePages", allocatePages}, {"watchSignal", watchSignalOf},
    {"shareMemory", shareMemory}, {"memoryDescriptor", memoryDescriptor},
    {"listenUnix", listenUnix}, {"connectUnix", connectUnix},
};

napi_value initialize(napi_env env, napi_value exports) {
  std::vector<Method> functions(std::begin(kFunctions), std::end(kFunctions));
  functions.insert(functions.end(), kGroupFunctions, kGroupFunctions + kGroupFunctionCount);
  for (const Method& method : functions) {
    napi_value function = nullptr;
    napi_create_function(env, method.name, NAPI_AUTO_LENGTH, method.callback, nullptr, &function);
    napi_set_named_property(env, exports, method.name, function);
  }
  napi_set_named_property(env, exports, "arenaBytes",
                          number(env, static_cast<double>(Port::kArenaBytes)));
  return exports;
}

}  // namespace
}  // namespace dapl

NAPI_MODULE_INIT() { return dapl::initialize(env, exports); }
