// How many damaged packets pass the ICRC check of the port: its own code, without sockets, so that
// millions of packets take seconds.
#include <node_api.h>

#include <cstring>

#include "icrc/icrc.h"
#include "tables/peer_table.h"

namespace {

using dapl::Endpoint;

constexpr size_t kPayload = 48;
constexpr size_t kBytes = dapl::kBthBytes + kPayload + dapl::kIcrcBytes;

/// xorshift64*
struct Random {
  uint64_t state;
  uint32_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<uint32_t>((state * 0x2545F4914F6CDD1D) >> 32);
  }
};

/// How the sender numbers its packets.
enum Numbering { kFromZero, kOneCounter, kAtRandom };

struct Sender {
  uint32_t numbering;
  uint16_t last = 12345;

  uint16_t next(Random& random) {
    if (numbering == kFromZero) return random.next() % 44;
    if (numbering == kAtRandom) return static_cast<uint16_t>(random.next());
    return last = static_cast<uint16_t>(last + 1 + random.next() % 3);
  }
};

void write32(uint8_t* at, uint32_t value) { memcpy(at, &value, 4); }

void seal(uint8_t* packet, const Endpoint& from, const Endpoint& to, uint16_t id, Random& random) {
  for (size_t i = 0; i < kBytes; i += 4) write32(packet + i, random.next());
  uint32_t header = dapl::headerRegister(from, to, kBytes);
  if (dapl::isIpv4(from.gid)) header ^= dapl::identificationEffect(id);
  write32(packet + kBytes - 4, dapl::icrcOf(header, packet, kBytes - 4));
}

/// Damage of at least 33 bits, for shorter bursts never pass.
void damage(uint8_t* packet, Random& random) {
  const size_t words = kBytes / 4;
  const size_t first = 3 + random.next() % (words - 6);
  for (size_t i = 0; i < 3; i++) {
    const uint32_t change = random.next();
    for (int byte = 0; byte < 4; byte++) {
      packet[4 * (first + i) + byte] ^= static_cast<uint8_t>(change >> (8 * byte));
    }
  }
}

struct Result {
  double passed = 0;
  double refusedGood = 0;
};

Result measure(uint32_t numbering, bool ipv6, double packets, uint64_t seed) {
  Random random = {seed | 1};
  Endpoint from{}, to{};
  memset(from.gid, 0x20, 16);
  memset(to.gid, 0x20, 16);
  if (!ipv6) {
    const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    memcpy(from.gid, mapped, 12);
    memcpy(to.gid, mapped, 12);
    to.gid[15]++;
  }
  from.port = 50000;
  to.port = 4791;
  dapl::PeerTable table;
  Sender sender = {numbering};
  Result result;
  uint8_t packet[kBytes];
  for (double i = 0; i < packets; i++) {
    const auto found = table.find(from, to, 0);
    seal(packet, from, to, sender.next(random), random);
    found.peer.beginDatagram();
    if (found.peer.verify(packet, kBytes, found.host, 1) == dapl::Verdict::kBad) {
      result.refusedGood++;
    }
    damage(packet, random);
    found.peer.beginDatagram();
    if (found.peer.verify(packet, kBytes, found.host, 1) != dapl::Verdict::kBad) result.passed++;
  }
  return result;
}

/// measure(numbering, ipv6, packets, seed): [damaged ones that passed, right ones refused]
napi_value measureOf(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value arguments[4];
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  uint32_t numbering, seed;
  bool ipv6;
  double packets;
  napi_get_value_uint32(env, arguments[0], &numbering);
  napi_get_value_bool(env, arguments[1], &ipv6);
  napi_get_value_double(env, arguments[2], &packets);
  napi_get_value_uint32(env, arguments[3], &seed);
  const Result result = measure(numbering, ipv6, packets, seed);
  napi_value pair, passed, refused;
  napi_create_array_with_length(env, 2, &pair);
  napi_create_double(env, result.passed, &passed);
  napi_create_double(env, result.refusedGood, &refused);
  napi_set_element(env, pair, 0, passed);
  napi_set_element(env, pair, 1, refused);
  return pair;
}

}  // namespace

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "measure", NAPI_AUTO_LENGTH, measureOf, nullptr, &function);
  napi_set_named_property(env, exports, "measure", function);
  return exports;
}
