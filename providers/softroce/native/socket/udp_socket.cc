#include "socket/udp_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <time.h>  // timespec, which the next one uses, and which musl declares nowhere else

#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Older C libraries lack some of these.
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

namespace dapl {
namespace {

constexpr int kBufferBytes = 4 << 20;

void enlarge(int fd, int forced, int ordinary) {
  if (!setInt(fd, SOL_SOCKET, forced, kBufferBytes)) {
    setInt(fd, SOL_SOCKET, ordinary, kBufferBytes);  // capped by the system's maximum
  }
}

/// Without these the port would not work or not interoperate.
bool setRequired(const UdpSocket& socket) {
  // DF, which on an unconnected socket also makes the identification 0 (`ip_select_ident_segs` of
  // Linux).
  // PROBE and not DO: the path MTU that the system learns by ICMP, which can be forged, is ignored.
  if (socket.ipv4) {
    return setInt(socket.fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) &&
           setInt(socket.fd, IPPROTO_IP, IP_RECVERR, 1);
  }
  return setInt(socket.fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         setInt(socket.fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) &&
         setInt(socket.fd, IPPROTO_IPV6, IPV6_RECVERR, 1) &&
         setInt(socket.fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

int configureAndBind(const UdpSocket& socket, bool shared) {
  const int error = configureUdpSocket(socket);
  if (error != 0) return error;
  if (shared && !setInt(socket.fd, SOL_SOCKET, SO_REUSEPORT, 1)) return errno;
  SocketAddress address;
  const socklen_t length = toSocketAddress(socket.local, socket.scopeId, &address);
  return bind(socket.fd, &address.any, length) == 0 ? 0 : errno;
}

/// Errors that say that nothing answers at the destination.
bool isUnreachable(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == EHOSTDOWN || error == ENONET;
}

/// The errno of an ICMP error is the kernel's translation of its type and code.
ReportType typeOf(const sock_extended_err& error) {
  const int number = static_cast<int>(error.ee_errno);
  if (error.ee_origin == SO_EE_ORIGIN_LOCAL) {
    return number == EMSGSIZE ? ReportType::kTooLong : ReportType::kNone;
  }
  if (number == EMSGSIZE) return ReportType::kTooBig;
  if (number == ECONNREFUSED) return ReportType::kPortUnreachable;
  // EACCES: prohibited by a filter (ICMPv6).
  return isUnreachable(number) || number == EACCES ? ReportType::kUnreachable : ReportType::kNone;
}

}  // namespace

bool setInt(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

int configureUdpSocket(const UdpSocket& socket) {
  if (!setRequired(socket)) return errno;
  setInt(socket.fd, IPPROTO_UDP, UDP_GRO, 1);  // without it every datagram comes alone
  enlarge(socket.fd, SO_RCVBUFFORCE, SO_RCVBUF);
  enlarge(socket.fd, SO_SNDBUFFORCE, SO_SNDBUF);
  return 0;
}

int openUdpSocket(UdpSocket* socket, bool shared) {
  socket->ipv4 = isIpv4(socket->local.gid);
  const int family = socket->ipv4 ? AF_INET : AF_INET6;
  socket->fd = ::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket->fd < 0) return errno;
  const int error = configureAndBind(*socket, shared);
  if (error != 0) closeUdpSocket(socket);
  return error;
}

int adoptUdpSocket(UdpSocket* socket, int descriptor) {
  int type = 0;
  socklen_t length = sizeof(type);
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return EINVAL;
  SocketAddress address{};
  length = sizeof(address);
  if (getsockname(descriptor, &address.any, &length) != 0) return EINVAL;
  const int family = address.any.sa_family;
  if (type != SOCK_DGRAM || (family != AF_INET && family != AF_INET6)) return EINVAL;
  Endpoint bound{};
  toEndpoint(address, &bound);
  bound.port = ntohs(family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
  if (memcmp(bound.gid, socket->local.gid, 16) != 0 || bound.port != socket->local.port) {
    return EINVAL;
  }
  socket->ipv4 = isIpv4(socket->local.gid);
  socket->fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return socket->fd < 0 ? errno : 0;
}

void closeUdpSocket(UdpSocket* socket) {
  if (socket->fd >= 0) close(socket->fd);
  socket->fd = -1;
}

bool findLink(const uint8_t* gid, Link* link) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  const ifaddrs* found = nullptr;
  for (const ifaddrs* entry = all; entry && !found; entry = entry->ifa_next) {
    if (!entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    memcpy(&address, entry->ifa_addr,
           family == AF_INET ? sizeof(address.v4) : sizeof(address.v6));
    Endpoint endpoint;
    toEndpoint(address, &endpoint);
    // All of 127.0.0.0/8 is local, though only 127.0.0.1 is listed.
    const bool loopback = isIpv4(gid) && gid[12] == 127 && isIpv4(endpoint.gid) &&
                          endpoint.gid[12] == 127;
    if (loopback || memcmp(endpoint.gid, gid, 16) == 0) found = entry;
  }
  if (found) {
    const bool linkLocal = gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
    link->interface = if_nametoindex(found->ifa_name);
    link->scopeId = linkLocal ? link->interface : 0;
    ifreq request{};
    strncpy(request.ifr_name, found->ifa_name, IFNAMSIZ - 1);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    link->mtuBytes = fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0
                         ? static_cast<uint32_t>(request.ifr_mtu)
                         : 0;
    if (fd >= 0) close(fd);
  }
  freeifaddrs(all);
  if (!found) errno = EADDRNOTAVAIL;
  return found != nullptr;
}

socklen_t toSocketAddress(const Endpoint& endpoint, uint32_t scopeId, SocketAddress* address) {
  memset(address, 0, sizeof(*address));
  if (isIpv4(endpoint.gid)) {
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons(endpoint.port);
    memcpy(&address->v4.sin_addr, endpoint.gid + 12, 4);
    return sizeof(address->v4);
  }
  address->v6.sin6_family = AF_INET6;
  address->v6.sin6_port = htons(endpoint.port);
  address->v6.sin6_scope_id = scopeId;
  memcpy(&address->v6.sin6_addr, endpoint.gid, 16);
  return sizeof(address->v6);
}

void toEndpoint(const SocketAddress& address, Endpoint* endpoint) {
  if (address.any.sa_family == AF_INET) {
    memset(endpoint->gid, 0, 10);
    memset(endpoint->gid + 10, 0xFF, 2);
    memcpy(endpoint->gid + 12, &address.v4.sin_addr, 4);
    endpoint->port = ntohs(address.v4.sin_port);
  } else {
    memcpy(endpoint->gid, &address.v6.sin6_addr, 16);
    endpoint->port = ntohs(address.v6.sin6_port);
  }
}

uint32_t droppedDatagrams(const UdpSocket& socket) {
  uint32_t info[SK_MEMINFO_VARS] = {};
  socklen_t length = sizeof(info);
  if (socket.fd < 0 || getsockopt(socket.fd, SOL_SOCKET, SO_MEMINFO, info, &length) != 0) return 0;
  return info[SK_MEMINFO_DROPS];
}

bool nextError(const UdpSocket& socket, Report* report) {
  SocketAddress address{};
  uint8_t byte;
  iovec vector = {&byte, sizeof(byte)};
  alignas(cmsghdr) uint8_t control[512];
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof(address);
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(socket.fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
  *report = Report{};
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
    const bool known = (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_RECVERR) ||
                       (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_RECVERR);
    if (!known || message.msg_namelen == 0) continue;
    sock_extended_err error;
    memcpy(&error, CMSG_DATA(item), sizeof(error));
    Endpoint destination;
    toEndpoint(address, &destination);
    memcpy(report->gid, destination.gid, 16);
    report->type = typeOf(error);
    if (error.ee_errno == EMSGSIZE) report->mtuBytes = error.ee_info;
  }
  return true;
}

bool isDelayedError(int error) {
  return isUnreachable(error) || error == EPROTO || error == ENOPROTOOPT || error == EACCES ||
         error == EMSGSIZE || error == EOPNOTSUPP || error == ENETDOWN;
}

}  // namespace dapl
