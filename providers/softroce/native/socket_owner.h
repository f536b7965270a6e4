// Who owns the UDP socket behind an address of this host.
#pragma once

#include "udp_socket.h"

namespace dapl {

/// Whether there is a socket that takes datagrams to the address in this network namespace, and
/// the effective user of this process opened it, and every other one that might take them. False
/// where the system does not tell (no /proc), and where user ids are not mapped.
bool isOwnSocket(const SocketAddress& address);

}  // namespace dapl
