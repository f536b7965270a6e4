// The kernel's interface to management datagrams: what /dev/infiniband/umadN takes and gives
// (Linux, Documentation/infiniband/user_mad.rst; ABI version 5, unchanged since 2014). Our own
// declarations, so that no header of the system is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace umad {

// What is in front of each MAD that is written or read. In the host's byte order, except qpn, qkey,
// lid and flowLabel, which are as on the wire.
struct Header {
  uint32_t id;         // of the agent
  uint32_t status;     // read: 0, or ETIMEDOUT for a send of ours that comes back
  uint32_t timeoutMs;  // written: wait for a response, 0 for none
  uint32_t retries;
  uint32_t length;  // read: of header and MAD, also when the buffer was too short (ENOSPC)
  uint32_t qpn;
  uint32_t qkey;
  uint16_t lid;
  uint8_t sl;
  uint8_t pathBits;
  uint8_t grhPresent;
  uint8_t gidIndex;
  uint8_t hopLimit;
  uint8_t trafficClass;
  uint8_t gid[16];
  uint32_t flowLabel;
  uint16_t pkeyIndex;
  uint8_t reserved[6];
};
static_assert(sizeof(Header) == 64, "the kernel's layout");

struct Registration {
  uint32_t id;  // written by the kernel
  uint32_t qpn;
  uint8_t managementClass;
  uint8_t classVersion;
  uint16_t reserved;
  uint32_t flags;
  alignas(8) uint64_t methodMask[2];
  uint32_t oui;
  uint8_t rmppVersion;
  uint8_t reserved2[3];
};
static_assert(sizeof(Registration) == 40, "the kernel's layout");
static_assert(offsetof(Registration, methodMask) == 16, "the kernel's layout");

// _IOW(0x1b, 2, uint32_t) and _IOWR(0x1b, 4, Registration)
constexpr unsigned long kUnregisterAgent = 0x40041b02;
constexpr unsigned long kRegisterAgent2 = 0xc0281b04;

}  // namespace umad
