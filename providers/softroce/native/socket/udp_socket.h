// One UDP socket of the port: bound to one local address, set up for RoCEv2.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "icrc/icrc.h"

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
  uint32_t interface = 0;
};

bool setInt(int fd, int level, int option, int value);

/// What every socket of the port needs, before it is bound.
/// @returns 0 or errno
int configureUdpSocket(const UdpSocket& socket);

/// @param shared bound with SO_REUSEPORT, behind the others of its group (socket/group_socket.h)
/// @returns 0, or the errno of the call that failed (EADDRINUSE, EADDRNOTAVAIL, ...)
int openUdpSocket(UdpSocket* socket, bool shared);
/// Takes a duplicate of a socket that was opened before, in whatever process.
/// @returns 0, or errno: EINVAL where it is none that is bound to the address
int adoptUdpSocket(UdpSocket* socket, int descriptor);
void closeUdpSocket(UdpSocket* socket);

/// @returns false, with errno: EADDRNOTAVAIL when no interface has the address
bool findLink(const uint8_t* gid, Link* link);

socklen_t toSocketAddress(const Endpoint& endpoint, uint32_t scopeId, SocketAddress* address);
void toEndpoint(const SocketAddress& address, Endpoint* endpoint);

/// Datagrams that the system dropped because the receive buffer was full.
uint32_t droppedDatagrams(const UdpSocket& socket);

/// Numbers of NETWORK_REPORT_TYPES (core/spi/port/network-report.ts).
enum class ReportType : uint32_t {
  kPortUnreachable,
  kUnreachable,
  kTooBig,
  kTooLong,
  kRefused,
  kPeerGone,
  kNone,
};

/// What network or system say of packets to a destination.
struct Report {
  uint8_t gid[16] = {};
  ReportType type = ReportType::kNone;
  /// kTooLong: bytes of the IP packet; kRefused: errno; kPeerGone: the path.
  uint32_t value = 0;
  /// kTooBig, kTooLong: what the way or the own link carries; 0 if unknown.
  uint32_t mtuBytes = 0;
};

/// Takes the next report from the error queue; one without its own meaning has type kNone. That of
/// a datagram which was too long for the own link knows the MTU alone.
/// @returns false when the queue is empty
bool nextError(const UdpSocket& socket, Report* report);

/// Errors that report the fate of an earlier datagram, not of the one at hand.
bool isDelayedError(int error);

}  // namespace dapl
