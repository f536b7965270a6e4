#include "icrc/icrc.h"

#include <cstring>

#include "icrc/crc32_math.h"

namespace dapl {
namespace {

using crc32_math::multiply;

/// The register after eight bytes of ones, which stand for the link header of native InfiniBand.
constexpr uint32_t afterOnes() {
  uint32_t reg = 0xFFFFFFFF;
  for (int bit = 0; bit < 64; bit++) {
    reg = ((reg ^ 1) & 1) ? (reg >> 1) ^ crc32_math::kPolynomial : reg >> 1;
  }
  return reg;
}
constexpr uint32_t kAfterOnes = afterOnes();
static_assert(kAfterOnes == 0xDEBB20E3, "CRC register after eight bytes of ones");

/// From the identification (IPv4 bytes 4 and 5) to the BTH.
constexpr unsigned kBytesFromIdToBth = 16 + 8;

void put16(uint8_t* at, size_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

size_t maskedIpv4(uint8_t* at, const Endpoint& source, const Endpoint& destination, size_t bytes) {
  memset(at, 0xFF, 20);  // type of service, time to live and checksum stay ones
  at[0] = 0x45;
  put16(at + 2, 20 + 8 + bytes);
  put16(at + 4, 0);
  put16(at + 6, 0x4000);  // DF
  at[9] = 17;
  memcpy(at + 12, source.gid + 12, 4);
  memcpy(at + 16, destination.gid + 12, 4);
  return 20;
}

size_t maskedIpv6(uint8_t* at, const Endpoint& source, const Endpoint& destination, size_t bytes) {
  memset(at, 0xFF, 8);  // traffic class, flow label and hop limit stay ones
  at[0] = 0x6F;
  put16(at + 4, 8 + bytes);
  at[6] = 17;
  memcpy(at + 8, source.gid, 16);
  memcpy(at + 24, destination.gid, 16);
  return 40;
}

/// effects[i][b]: what byte i of the identification changes in the register before the BTH.
struct IdentificationTables {
  uint32_t effects[2][256];

  constexpr IdentificationTables() : effects() {
    const uint32_t distance = crc32_math::powerOfX(8 * kBytesFromIdToBth);
    for (uint32_t byte = 0; byte < 256; byte++) {
      effects[0][byte] = multiply(byte, distance);
      effects[1][byte] = multiply(byte << 8, distance);
    }
  }
};
constexpr IdentificationTables kIdentification;

/// inverse[j] = x^-(8 * 2^j)
struct InversePowers {
  uint32_t inverse[17];

  constexpr InversePowers() : inverse() {
    uint32_t power = crc32_math::kOne;
    for (int bit = 0; bit < 8; bit++) power = crc32_math::divideByX(power);
    for (int j = 0; j < 17; j++) {
      inverse[j] = power;
      power = multiply(power, power);
    }
  }
};
constexpr InversePowers kInverse;

}  // namespace

bool isIpv4(const uint8_t* gid) {
  static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

uint32_t headerRegister(const Endpoint& source, const Endpoint& destination, size_t datagramBytes) {
  uint8_t header[48];
  size_t length = isIpv4(source.gid) ? maskedIpv4(header, source, destination, datagramBytes)
                                     : maskedIpv6(header, source, destination, datagramBytes);
  put16(header + length, source.port);
  put16(header + length + 2, destination.port);
  put16(header + length + 4, 8 + datagramBytes);
  put16(header + length + 6, 0xFFFF);  // checksum, masked
  return crc32Tables(kAfterOnes, header, length + 8, 0);
}

uint32_t identificationEffect(uint16_t id) {
  return kIdentification.effects[0][id >> 8] ^ kIdentification.effects[1][id & 0xFF];
}

// A change of the two bytes acts on the low half of the register and is then multiplied by x^8 for
// each byte clocked in. Undone, it must fit into 16 bits again.
bool solveIdentification(uint32_t difference, size_t coveredBytes, uint16_t* id) {
  size_t clocked = kBytesFromIdToBth + coveredBytes;
  for (int j = 0; clocked != 0; j++, clocked >>= 1) {
    if (clocked & 1) difference = multiply(difference, kInverse.inverse[j]);
  }
  if (difference >> 16) return false;
  *id = static_cast<uint16_t>((difference << 8) | (difference >> 8));
  return true;
}

}  // namespace dapl
