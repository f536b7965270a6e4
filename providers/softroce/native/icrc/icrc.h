// The invariant CRC of RoCEv2 (IBTA A17.3.3).
//
// It covers the IP and UDP headers, which a socket does not show. They are rebuilt from the two
// endpoints, the length and, on IPv4, the identification: 0 and DF for a datagram of ours, n for
// segment n of a segmented one. The register after the headers depends on the identification only
// through an XOR (the CRC is linear), so it is kept per flow and length, and corrected per packet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "icrc/crc32.h"

namespace dapl {

constexpr size_t kBthBytes = 12;
constexpr size_t kIcrcBytes = 4;
constexpr size_t kMaxDatagramBytes = 65507;
/// Ones for BTH byte 4 (FECN, BECN, reserved), as a mask on the first eight bytes.
constexpr uint64_t kBthMask = 0xFF00000000;

struct Endpoint {
  uint8_t gid[16];
  uint16_t port;
};

bool isIpv4(const uint8_t* gid);

/// The register before the BTH of a datagram of `datagramBytes` (BTH to ICRC), identification 0.
uint32_t headerRegister(const Endpoint& source, const Endpoint& destination, size_t datagramBytes);

/// Remembers them, from one address to another: small packets come in few sizes, ACKs between.
class HeaderRegisters {
 public:
  uint32_t of(const Endpoint& source, const Endpoint& destination, size_t datagramBytes) {
    Entry& entry = entries_[datagramBytes / 4 % kEntries];
    if (entry.bytes != datagramBytes) {
      entry.reg = headerRegister(source, destination, datagramBytes);
      entry.bytes = static_cast<uint32_t>(datagramBytes);
    }
    return entry.reg;
  }

 private:
  static constexpr size_t kEntries = 8;
  struct Entry {
    uint32_t bytes = 0;
    uint32_t reg = 0;
  };
  Entry entries_[kEntries];
};

/// What identification `id` changes in that register (IPv4 only).
uint32_t identificationEffect(uint16_t id);

/// The ICRC as it stands in the last four bytes, read little-endian.
inline uint32_t icrcOf(uint32_t headerReg, const uint8_t* bth, size_t bytes) {
  return ~crc32Update(headerReg, bth, bytes, kBthMask);
}

/// Solves for the identification that the sender's ICRC was made with. `difference` is the
/// received ICRC XOR the one computed with identification 0; `coveredBytes` are those from the BTH
/// to the pad.
/// @returns false when no identification explains the difference: the packet is corrupt
bool solveIdentification(uint32_t difference, size_t coveredBytes, uint16_t* id);

}  // namespace dapl
