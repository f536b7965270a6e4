// One UDP socket of the port: bound to one local address, set up for RoCEv2.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "icrc.h"

namespace dapl {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

struct UdpSocket {
  int fd = -1;
  Endpoint local{};
  bool ipv4 = false;
  /// Interface of a link-local address, else 0.
  uint32_t scopeId = 0;
};

/// What the interface with this address offers.
struct Link {
  uint32_t mtuBytes = 0;
  uint32_t scopeId = 0;
};

/// @returns 0, or the errno of the call that failed (EADDRINUSE, EADDRNOTAVAIL, ...)
int openUdpSocket(UdpSocket* socket);
void closeUdpSocket(UdpSocket* socket);

/// @returns false when no interface has the address
bool findLink(const uint8_t* gid, Link* link);

socklen_t toSocketAddress(const Endpoint& endpoint, uint32_t scopeId, SocketAddress* address);
void toEndpoint(const SocketAddress& address, Endpoint* endpoint);

/// Datagrams that the system dropped because the receive buffer was full.
uint32_t droppedDatagrams(const UdpSocket& socket);

/// Takes the next report from the error queue. `gid` gets the destination it is about, and
/// `unreachable` whether it says that nobody answers there.
/// @returns false when the queue is empty
bool nextError(const UdpSocket& socket, uint8_t* gid, bool* unreachable);

/// Errors that say that nobody answers at the destination.
bool isUnreachable(int error);

/// Errors that report the fate of an earlier datagram, not of the one at hand.
bool isDelayedError(int error);

}  // namespace dapl
