// The owner of the UDP socket behind an address of this host.
#pragma once

#include <cstdint>
#include <set>

#include "socket/udp_socket.h"

namespace dapl {

/// The owner of a destination's socket, which is taken to be the same for a second.
class SocketOwner {
 public:
  bool isUs(const SocketAddress& address);

 private:
  bool isUs_ = false;
  /// 0: nothing is known.
  uint64_t seenMs_ = 0;
};

/// Effective users of the sockets that take datagrams to an address in this network namespace;
/// empty where the system does not tell (no /proc).
std::set<uint32_t> socketUsers(const SocketAddress& address);

/// Whether there is a socket that takes datagrams to the address in this network namespace, and
/// the effective user of this process opened it, and every other one that might take them. False
/// where the system does not tell (no /proc), and where user ids are not mapped.
bool isOwnSocket(const SocketAddress& address);

}  // namespace dapl
