// A socket that hears one multicast group. A socket that is bound to an address of its own hears
// none, whatever groups it has joined: the destination of their datagrams is the group.
#pragma once

#include "socket/udp_socket.h"

namespace dapl {

/// Hop limit of datagrams to groups: that of the kernel's rdma_cm (IPV6_DEFAULT_HOPLIMIT). A router
/// that forwards groups passes them on.
constexpr int kGroupHops = 64;

/// Binds a socket to the group `socket->local`, beside those of other programs: each of them has a
/// copy of every datagram. The host is a member (IGMP, MLD) as long as the socket is open.
/// @param interface where the group is joined, by its index
/// @returns 0, or the errno of the call that failed
int openMulticastSocket(UdpSocket* socket, uint32_t interface);

/// Datagrams to groups leave at the interface that has the socket's address, and come to members of
/// this host as well. Where that cannot be had, sending to a group says so.
void sendToGroupsFrom(const UdpSocket& socket);

/// Asks the system for the way to a group, without sending anything.
/// @returns 0, or errno: ENETUNREACH where no route leads there
int routeToGroup(const UdpSocket& socket, const Endpoint& group);

bool isMulticast(const uint8_t* gid);

}  // namespace dapl
