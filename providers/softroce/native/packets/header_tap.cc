#include "packets/header_tap.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dapl {
namespace {

constexpr size_t kUdpBytes = 8;
constexpr uint32_t kSnapBytes = 60 + kUdpBytes + kBthBytes;  // with the longest IP header
constexpr int kBufferBytes = 4 << 20;
constexpr unsigned kBatch = 32;

uint16_t load16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }

/// Keeps the headers of UDP datagrams to one port; the first byte seen is the IP header's.
bool attachFilter(int fd, uint16_t port) {
  sock_filter program[] = {
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
      BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kSnapBytes),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

bool bindTo(int fd, const Endpoint& local) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  memcpy(&address.sin_addr, local.gid + 12, 4);
  return bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

int HeaderTap::open(const Endpoint& local) {
  fd_ = ::socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  if (fd_ < 0) return errno;
  if (!attachFilter(fd_, local.port) || !bindTo(fd_, local)) {
    const int error = errno;
    close();
    return error;
  }
  if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof(kBufferBytes)) != 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  }
  return 0;
}

void HeaderTap::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void HeaderTap::drain() {
  uint8_t bytes[kBatch][kSnapBytes];
  iovec vectors[kBatch];
  mmsghdr messages[kBatch];
  int taken;
  do {
    memset(messages, 0, sizeof(messages));
    for (unsigned i = 0; i < kBatch; i++) {
      vectors[i] = {bytes[i], kSnapBytes};
      messages[i].msg_hdr.msg_iov = &vectors[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    taken = recvmmsg(fd_, messages, kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < taken; i++) {
      const uint8_t* ip = bytes[i];
      const size_t ipBytes = (ip[0] & 0xF) * size_t{4};
      if (messages[i].msg_len < ipBytes + kUdpBytes + kBthBytes) continue;
      Header header;
      memcpy(header.source, ip + 12, 4);
      memcpy(header.bth, ip + ipBytes + kUdpBytes, kBthBytes);
      header.port = load16(ip + ipBytes);
      header.id = load16(ip + 4);
      if (headers_.size() == kMaxHeaders) headers_.pop_front();
      headers_.push_back(header);
    }
  } while (taken == static_cast<int>(kBatch));
}

bool HeaderTap::find(const Endpoint& source, const uint8_t* bth, uint16_t* id) {
  for (size_t i = 0; i < headers_.size(); i++) {
    const Header& header = headers_[i];
    if (header.port != source.port || memcmp(header.source, source.gid + 12, 4) != 0 ||
        memcmp(header.bth, bth, kBthBytes) != 0) {
      continue;
    }
    *id = header.id;
    headers_.erase(headers_.begin(), headers_.begin() + static_cast<long>(i) + 1);
    return true;
  }
  return false;
}

}  // namespace dapl
