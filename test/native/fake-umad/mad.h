// Fields of a management datagram.
#pragma once

#include <cstdint>
#include <cstring>

namespace fake {

inline uint32_t be32(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

inline void setBe32(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

struct Mad {
  const uint8_t* at;

  uint8_t managementClass() const { return at[1]; }
  uint8_t classVersion() const { return at[2]; }
  uint8_t method() const { return at[3]; }
  uint32_t hiTid() const { return be32(at + 8); }
  bool sameTid(const Mad& other) const { return memcmp(at + 8, other.at + 8, 8) == 0; }
  bool isResponse() const { return (method() & 0x80) != 0 || method() == 7; }
  bool isVendor2() const { return managementClass() >= 0x30 && managementClass() <= 0x4f; }
  bool hasRmpp() const {
    const uint8_t c = managementClass();
    return isVendor2() || c == 0x03 || c == 0x06 || c == 0x10 || c == 0x12;
  }
  bool isActive() const { return hasRmpp() && (at[26] & 1) != 0; }
  uint32_t oui() const { return isVendor2() ? be32(at + 36) & 0xffffff : 0; }
};

}  // namespace fake
