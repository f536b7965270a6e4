// Multicast groups of datagram queue pairs. The queue pair is attached to the group; on Ethernet
// the host must be a member too, or its network stack drops what comes: a socket that has joined,
// for as long as the queue pair is attached (IGMP, MLD). What has no network interface has a fabric
// that delivers to what is attached.
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "errno_of.h"
#include "instance.h"

namespace {

// Below every -errno.
constexpr int NO_SOCKET = -0x10000;
constexpr uint8_t MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

int ask(int socket, const ibv_gid& group, unsigned interface) {
  if (std::memcmp(group.raw, MAPPED, sizeof MAPPED) == 0) {
    ip_mreqn request = {};
    std::memcpy(&request.imr_multiaddr, group.raw + sizeof MAPPED, 4);
    request.imr_ifindex = static_cast<int>(interface);
    return setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
  }
  ipv6_mreq request = {};
  std::memcpy(&request.ipv6mr_multiaddr, group.raw, 16);
  request.ipv6mr_interface = interface;
  return setsockopt(socket, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
}

// The socket, or -errno.
int join(const ibv_gid& group, const std::string& name) {
  const unsigned interface = if_nametoindex(name.c_str());
  if (interface == 0) return -errno;
  const bool isIpv4 = std::memcmp(group.raw, MAPPED, sizeof MAPPED) == 0;
  const int member = socket(isIpv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (member < 0) return -errno;
  if (ask(member, group, interface) == 0) return member;
  const int error = errno;
  close(member);
  return -error;
}

int attach(Instance& instance, Qp& qp, const ibv_gid& group, const std::string& interface) {
  if (const int error = errnoOf(instance.verbs.ibv_attach_mcast(qp.verbs, &group, 0))) return error;
  const int member = interface.empty() ? NO_SOCKET : join(group, interface);
  if (member < 0 && member != NO_SOCKET) {
    instance.verbs.ibv_detach_mcast(qp.verbs, &group, 0);
    return -member;
  }
  qp.memberships.push_back({group, member});
  return 0;
}

void leave(const Membership& membership) {
  if (membership.socket != NO_SOCKET) close(membership.socket);
}

int detach(Instance& instance, Qp& qp, const ibv_gid& group) {
  if (const int error = errnoOf(instance.verbs.ibv_detach_mcast(qp.verbs, &group, 0))) return error;
  for (size_t i = 0; i < qp.memberships.size(); i++) {
    if (std::memcmp(&qp.memberships[i].group, &group, sizeof group) != 0) continue;
    leave(qp.memberships[i]);
    qp.memberships.erase(qp.memberships.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  return 0;
}

// (qp, gid, 1 attach or 0 detach, interface whose host is to be a member, or undefined)
double multicast(const Args& args, Instance& instance) {
  Qp* qp = instance.qps.at(args.u32(0));
  size_t length = 0;
  const auto* group = static_cast<const ibv_gid*>(args.memory(1, &length));
  if (!qp || length != sizeof *group) return EINVAL;
  if (!args.u32(2)) return detach(instance, *qp, *group);
  return attach(instance, *qp, *group, args.text(3));
}
NUMBER_CALL(multicast)

}  // namespace

void leaveGroups(Instance& instance, Qp& qp) {
  for (const Membership& membership : qp.memberships) {
    instance.verbs.ibv_detach_mcast(qp.verbs, &membership.group, 0);
    leave(membership);
  }
  qp.memberships.clear();
}

void registerMulticast(napi_env env, napi_value exports, Instance& instance) {
  EXPORT_CALL(multicast)
}
