#include "socket/group_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <vector>

// Older C libraries lack it.
#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

namespace dapl {
namespace {

int attach(int fd, int option, std::vector<sock_filter> program) {
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, option, &filter, sizeof(filter)) == 0 ? 0 : errno;
}

/// An error that is left behind would be the next datagram's.
void drainReports(int fd) {
  uint8_t byte;
  for (uint32_t i = 0; i < kMostDrained; i++) {
    if (recv(fd, &byte, sizeof(byte), MSG_ERRQUEUE | MSG_DONTWAIT | MSG_TRUNC) < 0) return;
  }
}

}  // namespace

int attachSteering(int fd, const Instruction* program, size_t count) {
  if (count < 1 || count > BPF_MAXINSNS) return EINVAL;
  std::vector<sock_filter> filter(count);
  for (size_t i = 0; i < count; i++) {
    const Instruction& from = program[i];
    if (from.code > UINT16_MAX || from.ifTrue > UINT8_MAX || from.ifFalse > UINT8_MAX) {
      return EINVAL;
    }
    filter[i] = {static_cast<uint16_t>(from.code), static_cast<uint8_t>(from.ifTrue),
                 static_cast<uint8_t>(from.ifFalse), from.operand};
  }
  return attach(fd, SO_ATTACH_REUSEPORT_CBPF, std::move(filter));
}

int dropAll(int fd) {
  return attach(fd, SO_ATTACH_FILTER, {BPF_STMT(BPF_RET | BPF_K, 0)});
}

int takeAll(int fd) {
  const int unused = 0;
  if (setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)) == 0) return 0;
  return errno == ENOENT ? 0 : errno;
}

int drain(int fd, uint32_t* datagrams) {
  uint8_t byte;
  *datagrams = 0;
  drainReports(fd);
  for (uint32_t i = 0; i < 2 * kMostDrained && *datagrams < kMostDrained; i++) {
    if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) >= 0) (*datagrams)++;
    else if (errno == EAGAIN) return 0;
    else if (errno == EBADF || errno == ENOTSOCK) return errno;
  }
  return 0;
}

}  // namespace dapl
