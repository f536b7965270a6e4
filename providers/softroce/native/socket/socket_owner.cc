#include "socket/socket_owner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coarse_clock.h"

namespace dapl {
namespace {

constexpr uint32_t kUnmappedUser = 65534;  // what users of other namespaces are shown as
constexpr uint64_t kSameMs = 1000;
constexpr size_t kIpv4Digits = 8;
constexpr size_t kIpv6Digits = 32;

/// An address as the system writes it: each word of four bytes as a number of this machine.
void writeHex(const void* address, size_t bytes, char* text) {
  for (size_t at = 0; at < bytes; at += 4) {
    uint32_t word;
    memcpy(&word, static_cast<const uint8_t*>(address) + at, sizeof(word));
    snprintf(text + 2 * at, 9, "%08" PRIX32, word);
  }
}

/// Users of the sockets bound to a port and one of two addresses.
void look(const char* table, const char* exact, const char* any, uint16_t port,
          std::set<uint32_t>* users) {
  FILE* file = fopen(table, "re");
  if (!file) return;
  char* line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, file) >= 0) {
    char local[kIpv6Digits + 1];
    unsigned localPort;
    uint32_t owner;
    // Number, address and port; then the peer's, state, queues, timer, retransmissions; the user.
    const int found = sscanf(line, " %*u: %32[0-9A-F]:%4x %*s %*s %*s %*s %*s %" SCNu32, local,
                             &localPort, &owner);
    if (found != 3 || localPort != port) continue;
    if (strcmp(local, exact) != 0 && strcmp(local, any) != 0) continue;
    users->insert(owner);
  }
  free(line);
  fclose(file);
}

}  // namespace

bool SocketOwner::isUs(const SocketAddress& address) {
  const uint64_t now = coarseMs();
  if (seenMs_ == 0 || now - seenMs_ >= kSameMs) {
    seenMs_ = now;
    isUs_ = isOwnSocket(address);
  }
  return isUs_;
}

std::set<uint32_t> socketUsers(const SocketAddress& address) {
  char exact[kIpv6Digits + 1];
  char any[kIpv6Digits + 1];
  std::set<uint32_t> users;
  const bool ipv4 = address.any.sa_family == AF_INET;
  const uint16_t port = ntohs(ipv4 ? address.v4.sin_port : address.v6.sin6_port);
  in6_addr ipv6 = ipv4 ? in6_addr{} : address.v6.sin6_addr;
  if (ipv4) {
    const in_addr anyIpv4{};
    writeHex(&address.v4.sin_addr, kIpv4Digits / 2, exact);
    writeHex(&anyIpv4, kIpv4Digits / 2, any);
    look("/proc/thread-self/net/udp", exact, any, port, &users);
    // A socket of IPv6 may take datagrams of IPv4, too.
    ipv6.s6_addr[10] = ipv6.s6_addr[11] = 0xFF;
    memcpy(&ipv6.s6_addr[12], &address.v4.sin_addr, 4);
  }
  writeHex(&ipv6, kIpv6Digits / 2, exact);
  writeHex(&in6addr_any, kIpv6Digits / 2, any);
  look("/proc/thread-self/net/udp6", exact, any, port, &users);
  return users;
}

bool isOwnSocket(const SocketAddress& address) {
  const std::set<uint32_t> users = socketUsers(address);
  return users.size() == 1 && *users.begin() == geteuid() && geteuid() != kUnmappedUser;
}

}  // namespace dapl
