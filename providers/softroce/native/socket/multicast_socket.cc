#include "socket/multicast_socket.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// Older C libraries lack it.
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

namespace dapl {
namespace {

/// A socket that sends at this interface.
bool chooseInterface(int fd, bool ipv4, uint32_t interface) {
  if (!ipv4) return setInt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface));
  ip_mreqn request{};
  request.imr_ifindex = static_cast<int>(interface);
  return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request)) == 0;
}

bool join(const UdpSocket& socket, uint32_t interface) {
  if (socket.ipv4) {
    ip_mreqn request{};
    memcpy(&request.imr_multiaddr, socket.local.gid + 12, 4);
    request.imr_ifindex = static_cast<int>(interface);
    return setsockopt(socket.fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) == 0;
  }
  ipv6_mreq request{};
  memcpy(&request.ipv6mr_multiaddr, socket.local.gid, 16);
  request.ipv6mr_interface = interface;
  return setsockopt(socket.fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request)) == 0;
}

int bindAndJoin(const UdpSocket& socket, uint32_t interface) {
  // The same group may be joined at another interface by another program: that traffic is not ours.
  // A system older than Linux 5.7 lets the privileged alone do so.
  setInt(socket.fd, SOL_SOCKET, SO_BINDTOIFINDEX, static_cast<int>(interface));
  if (!setInt(socket.fd, SOL_SOCKET, SO_REUSEADDR, 1)) return errno;
  const int error = configureUdpSocket(socket);
  if (error != 0) return error;
  SocketAddress address;
  const socklen_t length = toSocketAddress(socket.local, interface, &address);
  if (bind(socket.fd, &address.any, length) != 0) return errno;
  return join(socket, interface) ? 0 : errno;
}

}  // namespace

int openMulticastSocket(UdpSocket* socket, uint32_t interface) {
  socket->ipv4 = isIpv4(socket->local.gid);
  const int family = socket->ipv4 ? AF_INET : AF_INET6;
  socket->fd = ::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket->fd < 0) return errno;
  const int error = bindAndJoin(*socket, interface);
  if (error != 0) closeUdpSocket(socket);
  return error;
}

void sendToGroupsFrom(const UdpSocket& socket) {
  Link link;
  if (findLink(socket.local.gid, &link)) chooseInterface(socket.fd, socket.ipv4, link.interface);
  if (socket.ipv4) {
    setInt(socket.fd, IPPROTO_IP, IP_MULTICAST_TTL, kGroupHops);
  } else {
    setInt(socket.fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kGroupHops);
  }
}

int routeToGroup(const UdpSocket& socket, const Endpoint& group) {
  Link link;
  if (!findLink(socket.local.gid, &link)) return errno;
  const int family = socket.ipv4 ? AF_INET : AF_INET6;
  const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  Endpoint local = socket.local;
  local.port = 0;  // any: the socket's own is taken
  SocketAddress from, to;
  const socklen_t fromBytes = toSocketAddress(local, socket.scopeId, &from);
  const socklen_t toBytes = toSocketAddress(group, link.interface, &to);
  const bool found = bind(fd, &from.any, fromBytes) == 0 &&
                     chooseInterface(fd, socket.ipv4, link.interface) &&
                     connect(fd, &to.any, toBytes) == 0;
  const int error = found ? 0 : errno;
  close(fd);
  return error;
}

bool isMulticast(const uint8_t* gid) { return isIpv4(gid) ? gid[12] >> 4 == 0xE : gid[0] == 0xFF; }

}  // namespace dapl
