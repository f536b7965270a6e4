#include "shm/channel.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "shared_memory.h"

namespace dapl {
namespace {

constexpr const char* kGone = "the peer's process, or its device, is gone";

/// Generations of the halves that this thread has made.
thread_local std::vector<uint64_t> ownGenerations;

void closeFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

bool isSocket(int fd) {
  int type;
  socklen_t length = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

}  // namespace

Channel::~Channel() {
  const auto own = std::find(ownGenerations.begin(), ownGenerations.end(), generation_);
  if (own != ownGenerations.end()) ownGenerations.erase(own);
  if (own_.base()) munmap(own_.base(), bytes_);
  if (peer_.base()) munmap(peer_.base(), peerBytes_);
  for (int* fd : {&memoryFd_, &wakeFd_, &peerWakeFd_, &toPeerFd_}) closeFd(fd);
}

int Channel::offer(uint32_t slots, uint64_t bounceBytes) {
  bytes_ = Half::bytesOf(slots, bounceBytes);
  void* data;
  memoryFd_ = createSharedMemory("dapl-channel", bytes_, true, &data);
  if (memoryFd_ < 0) return -memoryFd_;
  own_ = Half(static_cast<uint8_t*>(data), slots, bounceBytes);
  int ends[2];
  if (getrandom(&generation_, sizeof(generation_), 0) != sizeof(generation_)) return EIO;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  wakeFd_ = ends[0];
  peerWakeFd_ = ends[1];
  const HalfHead head = {HalfHead::kMagic, HalfHead::kVersion, slots, bounceBytes, generation_};
  memcpy(data, &head, sizeof(head));
  ownGenerations.push_back(generation_);
  return 0;
}

const char* Channel::attach(const Peer& peer) {
  const char* wrong = check(peer);
  close(peer.memoryFd);
  if (wrong) {
    close(peer.wakeFd);
    return wrong;
  }
  toPeerFd_ = peer.wakeFd;
  addresses_ = peer.addresses;
  slot_ = peer.slot;
  producer_ = std::make_unique<Producer>(own_, peer_);
  consumer_ = std::make_unique<Consumer>(own_, peer_);
  return nullptr;
}

const char* Channel::check(const Peer& peer) {
  if (peer.addresses.empty()) return "it has no addresses, or too many";
  if (isAttached() || !own_.base()) return "the channel is attached already";
  if (!isSocket(peer.wakeFd)) return "what is to wake the peer is no stream socket";
  if (peer.memoryBytes < Half::kSlotsAt) return "its half is shorter than a head";
  if (checkSharedMemory(peer.memoryFd, peer.memoryBytes) != 0) {
    return "its half is no sealed memory of that size";
  }
  void* const data = mapSharedMemory(peer.memoryFd, peer.memoryBytes, false);
  if (!data) return "its half cannot be mapped";
  HalfHead head;
  memcpy(&head, data, sizeof(head));
  const bool good = head.magic == HalfHead::kMagic && head.version == HalfHead::kVersion &&
                    head.generation == peer.generation &&
                    Half::mayBe(head.slots, head.bounceBytes) &&
                    Half::bytesOf(head.slots, head.bounceBytes) == peer.memoryBytes;
  if (!good) {
    munmap(data, peer.memoryBytes);
    return "the head of its half is not what it has announced";
  }
  peer_ = Half(static_cast<uint8_t*>(data), head.slots, head.bounceBytes);
  peerBytes_ = peer.memoryBytes;
  ownThreads_ = std::find(ownGenerations.begin(), ownGenerations.end(), head.generation) !=
                ownGenerations.end();
  return nullptr;
}

void Channel::letGo() {
  closeFd(&memoryFd_);
  closeFd(&peerWakeFd_);
}

int Channel::addressOf(const Endpoint& address) const {
  for (size_t i = 0; i < addresses_.size(); i++) {
    const Endpoint& one = addresses_[i];
    if (one.port == address.port && memcmp(one.gid, address.gid, 16) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void Channel::wake() {
  // A full socket holds what wakes already. MSG_DONTWAIT, as the peer may change the flags of
  // descriptors that it shares with us.
  const uint8_t byte = 0;
  if (send(toPeerFd_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
      (errno == EPIPE || errno == ECONNRESET)) {
    end(kGone);
  }
}

void Channel::drainWakes() {
  uint8_t bytes[256];
  const ssize_t got = recv(wakeFd_, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) end(kGone);
}

void Channel::lookForEnd() {
  uint8_t byte;
  const ssize_t got = recv(wakeFd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) end(kGone);
}

const uint8_t* Channel::resolve(const Slot& packet) const {
  const uint64_t offset = packet.offset();
  const uint32_t length = packet.payloadBytes;
  if (packet.segment() != Slot::kBounce) return segments_.resolve(packet.segment(), offset, length);
  const uint64_t bytes = peer_.bounceBytes();
  return offset <= bytes && length <= bytes - offset ? peer_.bounce() + offset : nullptr;
}

}  // namespace dapl
