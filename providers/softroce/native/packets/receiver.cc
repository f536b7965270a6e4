#include "packets/receiver.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "coarse_clock.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace dapl {
namespace {

/// The size that the packets of a train had on the wire; 0 when the datagram came alone.
size_t segmentBytesOf(msghdr* message) {
  for (cmsghdr* item = CMSG_FIRSTHDR(message); item; item = CMSG_NXTHDR(message, item)) {
    if (item->cmsg_level != IPPROTO_UDP || item->cmsg_type != UDP_GRO) continue;
    int size;
    memcpy(&size, CMSG_DATA(item), sizeof(size));
    return size > 0 ? static_cast<size_t>(size) : 0;
  }
  return 0;
}

uint32_t bigEndian(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

}  // namespace

Receiver::Receiver(const PortMemory& memory, size_t maxPacketBytes)
    : memory_(memory), maxPacketBytes_(maxPacketBytes) {
  for (size_t i = 0; i < kTrains; i++) {
    slots_[i].vector = {memory.arena + i * kSlotBytes, 65536};
    prepare(i);
  }
}

int Receiver::tapHeaders(const std::vector<UdpSocket>& sockets, size_t* failed) {
  taps_.resize(sockets.size());
  for (size_t i = 0; i < sockets.size(); i++) {
    if (!sockets[i].ipv4) continue;  // no identification: always exact
    taps_[i] = std::make_unique<HeaderTap>();
    const int error = taps_[i]->open(sockets[i].local);
    *failed = i;
    if (error != 0) return error;
  }
  return 0;
}

/// The kernel overwrites the lengths of a message that it fills in.
void Receiver::prepare(size_t slot) {
  msghdr& header = messages_[slot].msg_hdr;
  header.msg_name = &slots_[slot].source;
  header.msg_namelen = sizeof(SocketAddress);
  header.msg_iov = &slots_[slot].vector;
  header.msg_iovlen = 1;
  header.msg_control = slots_[slot].control;
  header.msg_controllen = sizeof(slots_[slot].control);
  header.msg_flags = 0;
}

uint32_t Receiver::receive(const std::vector<UdpSocket>& sockets, MulticastGroups& groups,
                           bool* delayedError) {
  for (size_t i = 0; i < usedSlots_; i++) prepare(i);
  usedSlots_ = 0;
  packets_ = 0;
  nowMs_ = coarseMs();
  // Another one first each time: a busy address must not starve the rest, nor groups.
  const size_t turns = sockets.size() + (groups.isEmpty() ? 0 : 1);
  firstSocket_ = (firstSocket_ + 1) % turns;
  for (size_t i = 0; i < turns && usedSlots_ < kTrains; i++) {
    const size_t index = (firstSocket_ + i) % turns;
    if (index == sockets.size()) {
      takeFromGroups(groups, delayedError);
    } else {
      takeFromSocket(sockets[index], static_cast<uint32_t>(index), delayedError);
    }
  }
  memory_.counters[kReceivedPackets] += packets_;
  return packets_;
}

void Receiver::takeFromSocket(const UdpSocket& socket, uint32_t index, bool* delayedError) {
  // Asking for a second datagram costs a fifth of receiving one: only where there was one before.
  const size_t wanted = busy_[index] ? kTrains - usedSlots_ : 1;
  const Source from = {socket, index, taps_.empty() ? nullptr : taps_[index].get()};
  busy_[index] = takeTrains(from, wanted, delayedError) > 0;
}

void Receiver::takeFromGroups(MulticastGroups& groups, bool* delayedError) {
  MulticastGroup* ready[kTrains];
  const size_t count = groups.ready(ready, kTrains - usedSlots_);
  for (size_t i = 0; i < count; i++) {
    const MulticastGroup& group = *ready[i];
    const Source from = {group.socket, rx::kGroupBit | group.number, group.tap.get()};
    takeTrains(from, (kTrains - usedSlots_) / (count - i), delayedError);
  }
}

size_t Receiver::takeTrains(const Source& from, size_t wanted, bool* delayedError) {
  const size_t first = usedSlots_;
  const int taken = recvmmsg(from.socket.fd, messages_ + first, static_cast<unsigned>(wanted),
                             MSG_DONTWAIT, nullptr);
  if (taken < 0) {
    if (errno != EAGAIN && errno != EINTR) *delayedError = true;
    return 0;
  }
  usedSlots_ += static_cast<size_t>(taken);
  memory_.counters[kReceivedTrains] += taken;
  if (taken > 0 && from.tap) from.tap->drain();
  for (size_t slot = first; slot < usedSlots_; slot++) split(slot, from);
  return static_cast<size_t>(taken);
}

void Receiver::split(size_t slot, const Source& at) {
  msghdr& header = messages_[slot].msg_hdr;
  const size_t total = messages_[slot].msg_len;
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || total == 0) {
    count(kMalformed);
    return;
  }
  Endpoint source;
  toEndpoint(slots_[slot].source, &source);
  const PeerTable::Found from = peers_.find(source, at.socket.local, at.localIndex);
  const size_t segment = segmentBytesOf(&header);
  const size_t step = segment == 0 ? total : segment;
  const uint8_t* data = static_cast<const uint8_t*>(slots_[slot].vector.iov_base);
  if (at.tap && total < kBthBytes) return count(kMalformed);
  if (!beginDatagram(data, from, at.tap)) return count(kUnseenHeader);
  for (size_t offset = 0; offset < total; offset += step) {
    describe(data + offset, total - offset < step ? total - offset : step, from, at.localIndex);
    segment_++;
  }
}

bool Receiver::beginDatagram(const uint8_t* data, PeerTable::Found from, HeaderTap* tap) {
  from.peer.beginDatagram();
  segment_ = 0;
  exact_ = tap != nullptr;
  return !tap || tap->find(from.peer.source(), data, &datagramId_);
}

// The segments of a train count on from its first identification or, as the system may merge
// packets that forbid fragments, all have the same.
Verdict Receiver::verify(const uint8_t* packet, size_t bytes, PeerTable::Found from) {
  if (!exact_) return from.peer.verify(packet, bytes, from.host, nowMs_);
  const uint16_t counted = static_cast<uint16_t>(datagramId_ + segment_);
  return from.peer.verifyExact(packet, bytes, counted, datagramId_);
}

void Receiver::describe(const uint8_t* packet, size_t bytes, PeerTable::Found from,
                        uint32_t localIndex) {
  // Headers are multiples of four, payload and pad together as well.
  const bool tooShort = bytes < kBthBytes + kIcrcBytes;
  if (tooShort || bytes % 4 != 0 || bytes > maxPacketBytes_ ||
      packets_ == memory_.receivedCapacity) {
    count(kMalformed);
    return;
  }
  const Verdict verdict = verify(packet, bytes, from);
  if (verdict == Verdict::kBad) {
    count(kBadIcrc);
    return;
  }
  uint32_t* words = memory_.received + rx::kWords * packets_++;
  const Endpoint& source = from.peer.source();
  words[rx::kOffset] = static_cast<uint32_t>(packet - memory_.arena);
  words[rx::kLength] = static_cast<uint32_t>(bytes - kIcrcBytes);
  words[rx::kFlags] = from.peer.isIpv4() ? 0 : rx::kFlagIpv6;
  words[rx::kLocalGidIndex] = localIndex;
  for (int i = 0; i < 4; i++) words[rx::kSourceGid + i] = bigEndian(source.gid + 4 * i);
  words[rx::kSourcePort] = source.port;
  words[rx::kBody] = 0;
  if (verdict == Verdict::kRecovered) {
    words[rx::kFlags] |= rx::kFlagRecoveredId;
    count(kRecoveredId);
  }
}

}  // namespace dapl
