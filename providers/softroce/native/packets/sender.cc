#include "packets/sender.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "icrc/icrc.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace dapl {
namespace {

constexpr uint32_t kMaxSegments = 128;       // UDP_MAX_SEGMENTS of current kernels
constexpr uint32_t kOlderMaxSegments = 64;   // and of older ones
constexpr size_t kMaxVectors = 1024;         // UIO_MAXIOV
/// Up to here copying is quicker than another two entries in the gather list.
constexpr uint32_t kCopyBytes = 2048;
/// A payload in more pieces than this is copied as well.
constexpr uint32_t kMaxGathered = 8;
/// From here on handing pages over is quicker than letting the kernel copy.
constexpr uint32_t kPageTrainBytes = 32 << 10;
constexpr uint32_t kMaxRings = 16;
/// So often in a row the system may refuse pages before it is not asked again.
constexpr uint32_t kMaxPageFailures = 3;
/// BTH transports whose requester keeps the payload until it is acknowledged: RC and XRC. Others
/// must not lose, or see twice, what stayed unread for long.
bool isReliable(const uint32_t* words) {
  const int transport = reinterpret_cast<const uint8_t*>(words + tx::kHeader)[0] >> 5;
  return transport == 0 || transport == 5;
}

uint32_t padBytesOf(const uint32_t* words) {
  return reinterpret_cast<const uint8_t*>(words + tx::kHeader)[1] >> 4 & 3;
}

uint64_t offsetOf(const uint32_t* entry) {
  return join(entry[segment::kOffsetLow], entry[segment::kOffsetHigh]);
}

}  // namespace

Sender::Sender(const PortMemory& memory, RegionTable& regions, std::vector<UdpSocket>& sockets,
               Channels& channels)
    : memory_(memory),
      regions_(regions),
      sockets_(sockets),
      channels_(channels),
      limits_{kMaxSegments, static_cast<uint32_t>(kMaxDatagramBytes)},
      packetPaths_(memory.packetCapacity),
      packetMarks_(memory.packetCapacity),
      packetBytes_(memory.packetCapacity),
      payloadBytes_(memory.packetCapacity),
      ringsLeft_(pages_.open() ? kMaxRings : 0),
      vectors_(kMaxVectors),
      scratch_(65536) {}

uint32_t Sender::addPath(const Endpoint& destination, uint32_t localIndex, Channel* channel) {
  Path path;
  path.used = true;
  path.localIndex = localIndex;
  path.destination = destination;
  path.ipv4 = isIpv4(destination.gid);
  path.addressBytes =
      toSocketAddress(destination, sockets_[localIndex].scopeId, &path.address);
  Link link;
  path.sameHost = findLink(destination.gid, &link);
  path.overChannel = channel != nullptr;
  path.channel = channel;
  if (channel) path.channelDestination = static_cast<uint8_t>(channel->addressOf(destination));
  if (freePaths_.empty()) {
    paths_.push_back(std::move(path));
    return static_cast<uint32_t>(paths_.size() - 1);
  }
  const uint32_t number = freePaths_.back();
  freePaths_.pop_back();
  paths_[number] = std::move(path);
  return number;
}

bool Sender::removePath(uint32_t number) {
  if (!hasPath(number)) return false;
  paths_[number].used = false;
  if (paths_[number].ring) ringsLeft_++;
  paths_[number].ring.reset();
  freePaths_.push_back(number);
  return true;
}

void Sender::forget(const Channel* channel) {
  for (Path& path : paths_) {
    if (path.channel == channel) path.channel = nullptr;
  }
}

/// Checks a descriptor, and its segments' bounds, and sums up its size.
bool Sender::measure(uint32_t packet) {
  const uint32_t* words = memory_.packets + size_t{tx::kWords} * packet;
  const uint32_t path = words[tx::kPath];
  if (!hasPath(path)) return false;
  const uint32_t header = words[tx::kHeaderLength];
  if (header < kBthBytes || header > tx::kMaxHeaderBytes || header % 4 != 0) return false;
  const uint64_t first = words[tx::kFirstSegment];
  const uint64_t count = words[tx::kSegmentCount];
  if (first + count > memory_.segmentCapacity) return false;
  uint64_t payload = 0;
  const uint32_t* entry = memory_.segments + first * segment::kWords;
  for (uint64_t i = 0; i < count; i++, entry += segment::kWords) {
    const uint32_t length = entry[segment::kLength];
    if (!regions_.resolve(entry[segment::kRegion], offsetOf(entry), length)) return false;
    payload += length;
  }
  const uint64_t bytes = header + payload + padBytesOf(words) + kIcrcBytes;
  if (paths_[path].overChannel ? payload > Channel::kLongestPayload : bytes > kMaxDatagramBytes) {
    return false;
  }
  packetPaths_[packet] = path;
  packetMarks_[packet] = markOf(words);
  packetBytes_[packet] = static_cast<uint32_t>(bytes);
  payloadBytes_[packet] = static_cast<uint32_t>(payload);
  return true;
}

uint64_t Sender::markOf(const uint32_t* words) {
  const uint8_t* header = reinterpret_cast<const uint8_t*>(words + tx::kHeader);
  if (!isToQp1(header) || words[tx::kSegmentCount] == 0) return slotOfQpn(header);
  const uint32_t* entry = memory_.segments + size_t{words[tx::kFirstSegment]} * segment::kWords;
  const uint32_t length = entry[segment::kLength];
  return madMark(regions_.resolve(entry[segment::kRegion], offsetOf(entry), length), length);
}

Sender::Result Sender::send(uint32_t from, uint32_t to) {
  Result result;
  result.next = from;
  if (to > memory_.packetCapacity) {
    result.invalid = static_cast<int64_t>(memory_.packetCapacity);
    return result;
  }
  uint32_t measured = from;
  while (measured < to && measure(measured)) measured++;
  if (measured < to) result.invalid = measured;
  while (result.next < measured) {
    const uint32_t first = result.next;
    Path& path = paths_[packetPaths_[first]];
    if (path.overChannel) {
      result.next += sendOverChannel(first, path, &result);
      if (result.wouldBlock) break;
      continue;
    }
    // What was put into channels before a datagram (the last ACK before a DREQ) is seen before it.
    channels_.publish();
    const Planned planned = {&packetPaths_[first], &packetMarks_[first], &packetBytes_[first],
                             measured - first};
    const Train train = nextTrain(planned, limits_);
    result.next += sendTrain(first, train, &result);
    if (result.wouldBlock) break;
  }
  return result;
}

uint32_t Sender::sendOverChannel(uint32_t packet, Path& path, Result* result) {
  const uint32_t* words = memory_.packets + size_t{tx::kWords} * packet;
  const Channels::Sent sent =
      path.channel ? channels_.send(path.channel, static_cast<uint8_t>(path.localIndex),
                                    path.channelDestination, words, payloadBytes_[packet])
                   : Channels::Sent::kLost;
  if (sent == Channels::Sent::kFull) {
    result->wouldBlock = result->channelFull = true;
    return 0;
  }
  const bool lost = sent == Channels::Sent::kLost;
  memory_.counters[lost ? kChannelDropped : kSentPackets] += 1;
  if (!lost) memory_.counters[kChannelSent] += 1;
  return 1;
}

/// @returns how many packets were taken: sent, or refused and counted
uint32_t Sender::sendTrain(uint32_t first, Train train, Result* result) {
  PageRing* ring = ringFor(first, train);
  const uint32_t count = ring ? train.count : build(first, train.count);
  const Path& path = paths_[packetPaths_[first]];
  const Outcome outcome = ring ? sendPages(first, train, ring, result)
                               : transmit(path, count, train.segmentBytes, 0, result);
  switch (outcome) {
    case Outcome::kSent:
      memory_.counters[kSentPackets] += count;
      memory_.counters[kSentTrains] += 1;
      return count;
    case Outcome::kWouldBlock:
      result->wouldBlock = true;
      return 0;
    case Outcome::kSegmentationRefused:
      return retreat(first, {count, train.segmentBytes}, result);
    case Outcome::kRefused:
      noteRefusal(first, count, result);
      break;
  }
  memory_.counters[kSendErrors] += count;
  return count;
}

void Sender::noteRefusal(uint32_t first, uint32_t count, Result* result) {
  const uint32_t path = packetPaths_[first];
  if (refusedBy_ == EMSGSIZE) memory_.counters[kTooLongPackets] += count;
  const uint32_t headerBytes = (paths_[path].ipv4 ? 20 : 40) + 8;
  std::vector<Refusal>& all = result->refusals;
  if (all.empty() || all.back().path != path || all.back().error != refusedBy_) {
    all.push_back({path, refusedBy_, packetBytes_[first] + headerBytes});
  }
}

/// The kernel would not cut this train: because it is an older one with a lower limit, because a
/// packet is longer than the link's MTU, or because the device cannot. Shorter trains, then none.
uint32_t Sender::retreat(uint32_t first, Train train, Result* result) {
  if (train.count > kOlderMaxSegments && limits_.maxSegments > kOlderMaxSegments) {
    limits_.maxSegments = kOlderMaxSegments;
    return 0;
  }
  uint32_t taken = 0;
  bool accepted = false;
  const double errors = memory_.counters[kSendErrors];
  while (taken < train.count && !result->wouldBlock) {
    taken += sendTrain(first + taken, {1, packetBytes_[first + taken]}, result);
    accepted = accepted || (taken > 0 && memory_.counters[kSendErrors] == errors);
  }
  if (accepted) {  // alone they go: it is segmentation that does not work
    limits_.maxSegments = 1;
    memory_.counters[kSegmentationOff] = 1;
  }
  return taken;
}

/// Lays the train out. @returns how many of the packets are in it: the gather list may fill up
uint32_t Sender::build(uint32_t first, uint32_t count) {
  vectorCount_ = 0;
  scratchUsed_ = 0;
  scratchSent_ = 0;
  Path& path = paths_[packetPaths_[first]];
  for (uint32_t i = 0; i < count; i++) {
    if (vectorCount_ + kMaxGathered + 2 > kMaxVectors) {
      count = i;
      break;
    }
    const uint32_t* words = memory_.packets + size_t{tx::kWords} * (first + i);
    append(words, path, packetBytes_[first + i], i);
  }
  closeScratch();
  return count;
}

/// The register before the BTH of packet `index` of a train.
uint32_t Sender::registerOf(Path& path, uint32_t bytes, uint32_t index) {
  uint32_t reg = path.registers.of(sockets_[path.localIndex].local, path.destination, bytes);
  // Segment n of a segmented IPv4 datagram has identification n (`inet_gso_segment` of Linux).
  if (path.ipv4) reg ^= identificationEffect(static_cast<uint16_t>(index));
  return reg;
}

void Sender::append(const uint32_t* words, Path& path, uint32_t bytes, uint32_t index) {
  uint32_t reg = registerOf(path, bytes, index);
  const uint32_t headerBytes = words[tx::kHeaderLength];
  uint8_t* start = &scratch_[scratchUsed_];
  memcpy(start, words + tx::kHeader, headerBytes);
  scratchUsed_ += headerBytes;

  const uint32_t payload = bytes - headerBytes - padBytesOf(words) - kIcrcBytes;
  const bool copied = payload <= kCopyBytes || words[tx::kSegmentCount] > kMaxGathered;
  if (!copied) {
    reg = crc32Update(reg, start, headerBytes, kBthMask);
    reg = appendPayload(words, reg);
    start = &scratch_[scratchUsed_];
  } else {
    const uint32_t* entry = memory_.segments + size_t{words[tx::kFirstSegment]} * segment::kWords;
    for (uint32_t i = 0; i < words[tx::kSegmentCount]; i++, entry += segment::kWords) {
      const uint32_t length = entry[segment::kLength];
      memcpy(&scratch_[scratchUsed_],
             regions_.resolve(entry[segment::kRegion], offsetOf(entry), length), length);
      scratchUsed_ += length;
    }
  }
  for (uint32_t pad = padBytesOf(words); pad > 0; pad--) scratch_[scratchUsed_++] = 0;
  const size_t tail = static_cast<size_t>(&scratch_[scratchUsed_] - start);
  const uint32_t icrc = ~crc32Update(reg, start, tail, copied ? kBthMask : 0);
  memcpy(&scratch_[scratchUsed_], &icrc, kIcrcBytes);
  scratchUsed_ += kIcrcBytes;
}

/// Gathers the payload from where it lies. @returns the register after it
uint32_t Sender::appendPayload(const uint32_t* words, uint32_t reg) {
  closeScratch();
  const uint32_t* entry = memory_.segments + size_t{words[tx::kFirstSegment]} * segment::kWords;
  for (uint32_t i = 0; i < words[tx::kSegmentCount]; i++, entry += segment::kWords) {
    const uint32_t length = entry[segment::kLength];
    uint8_t* data = regions_.resolve(entry[segment::kRegion], offsetOf(entry), length);
    reg = crc32Update(reg, data, length, 0);
    vectors_[vectorCount_++] = {data, length};
  }
  return reg;
}

/// What has been written to the scratch bytes since last time becomes one entry of the gather list.
void Sender::closeScratch() {
  if (scratchUsed_ == scratchSent_) return;
  vectors_[vectorCount_++] = {&scratch_[scratchSent_], scratchUsed_ - scratchSent_};
  scratchSent_ = scratchUsed_;
}

/// The ring for a train that is worth it, or nullptr.
PageRing* Sender::ringFor(uint32_t first, Train train) {
  Path& path = paths_[packetPaths_[first]];
  if (!path.sameHost || train.count * train.segmentBytes < kPageTrainBytes) return nullptr;
  if (!isReliable(memory_.packets + size_t{tx::kWords} * first)) return nullptr;
  if (!path.ring && ringsLeft_ > 0) {
    path.ring = std::make_unique<PageRing>();
    ringsLeft_--;
    if (!path.ring->open()) path.ring.reset();
  }
  return pageFailures_ < kMaxPageFailures ? path.ring.get() : nullptr;
}

/// The first header goes by copy, for it must bring the address; the rest as pages.
Sender::Outcome Sender::sendPages(uint32_t first, Train train, PageRing* ring, Result* result) {
  Path& path = paths_[packetPaths_[first]];
  const uint32_t* words = memory_.packets + size_t{tx::kWords} * first;
  size_t rest;
  if (train.count == 1 && words[tx::kSegmentCount] == 1 && path.owner.isUs(path.address)) {
    rest = layOutInPlace(first, path, ring);
  } else {
    uint8_t* const start = ring->take(size_t{train.count} * train.segmentBytes);
    uint8_t* end = start;
    for (uint32_t i = 0; i < train.count; i++) end = layOut(first + i, path, i, end);
    rest = static_cast<size_t>(end - start) - kBthBytes;
    vectors_[0] = {start, kBthBytes};
    vectors_[1] = {start + kBthBytes, rest};
    vectorCount_ = 2;
  }
  return sendLoaded(path, train, rest, result);
}

/// The gather list as pages, but for its first entry. @param bytes of the others
Sender::Outcome Sender::sendLoaded(const Path& path, Train train, size_t bytes, Result* result) {
  const size_t count = vectorCount_;
  if (pages_.load(&vectors_[1], count - 1, bytes)) {
    vectorCount_ = 1;
    const Outcome outcome = transmit(path, train.count, train.segmentBytes, MSG_MORE, result);
    if (outcome != Outcome::kSent) {
      pages_.drain(bytes);
      return outcome;
    }
    if (pages_.finish(sockets_[path.localIndex].fd, bytes)) {
      pageFailures_ = 0;
      return outcome;
    }
  }
  pageFailures_++;
  vectorCount_ = count;
  return transmit(path, train.count, train.segmentBytes, 0, result);
}

/// A long packet whose payload stays where it is: header, payload, and what follows it.
/// @returns bytes after the header
size_t Sender::layOutInPlace(uint32_t packet, Path& path, PageRing* ring) {
  const uint32_t* words = memory_.packets + size_t{tx::kWords} * packet;
  const uint32_t headerBytes = words[tx::kHeaderLength];
  const uint32_t* entry = memory_.segments + size_t{words[tx::kFirstSegment]} * segment::kWords;
  const uint32_t length = entry[segment::kLength];
  const uint32_t pad = padBytesOf(words);
  uint8_t* payload = regions_.resolve(entry[segment::kRegion], offsetOf(entry), length);
  uint8_t* tail = ring->take(pad + kIcrcBytes);
  memcpy(scratch_.data(), words + tx::kHeader, headerBytes);
  memset(tail, 0, pad);
  uint32_t reg = registerOf(path, packetBytes_[packet], 0);
  reg = crc32Update(reg, scratch_.data(), headerBytes, kBthMask);
  reg = crc32Update(reg, payload, length, 0);
  const uint32_t icrc = ~crc32Update(reg, tail, pad, 0);
  memcpy(tail + pad, &icrc, kIcrcBytes);
  vectors_[0] = {scratch_.data(), headerBytes};
  vectors_[1] = {payload, length};
  vectors_[2] = {tail, pad + kIcrcBytes};
  vectorCount_ = 3;
  return length + pad + kIcrcBytes;
}

/// Writes a packet as it is on the wire. @returns its end
uint8_t* Sender::layOut(uint32_t packet, Path& path, uint32_t index, uint8_t* at) {
  const uint32_t* words = memory_.packets + size_t{tx::kWords} * packet;
  const uint32_t headerBytes = words[tx::kHeaderLength];
  memcpy(at, words + tx::kHeader, headerBytes);
  uint32_t reg = registerOf(path, packetBytes_[packet], index);
  reg = crc32Update(reg, at, headerBytes, kBthMask);
  at += headerBytes;
  const uint32_t* entry = memory_.segments + size_t{words[tx::kFirstSegment]} * segment::kWords;
  for (uint32_t i = 0; i < words[tx::kSegmentCount]; i++, entry += segment::kWords) {
    const uint32_t length = entry[segment::kLength];
    const uint8_t* data = regions_.resolve(entry[segment::kRegion], offsetOf(entry), length);
    reg = crc32Copy(reg, at, data, length);
    at += length;
  }
  const uint32_t pad = padBytesOf(words);
  memset(at, 0, pad);
  const uint32_t icrc = ~crc32Update(reg, at, pad, 0);
  memcpy(at + pad, &icrc, kIcrcBytes);
  return at + pad + kIcrcBytes;
}

Sender::Outcome Sender::transmit(const Path& path, uint32_t count, uint32_t segmentBytes,
                                 int flags, Result* result) {
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(&path.address.any);
  message.msg_namelen = path.addressBytes;
  message.msg_iov = vectors_.data();
  message.msg_iovlen = vectorCount_;
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {};
  // With a segment size the checksum is left to the device, also where nothing is cut.
  if (count > 1 || flags != 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = IPPROTO_UDP;
    item->cmsg_type = UDP_SEGMENT;
    item->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const uint16_t size = static_cast<uint16_t>(segmentBytes);
    memcpy(CMSG_DATA(item), &size, sizeof(size));
  }
  const int fd = sockets_[path.localIndex].fd;
  const bool plain = message.msg_control == nullptr && vectorCount_ == 1;
  // An error may be the fate of an earlier datagram; reporting it clears it, and this one may go.
  for (int attempt = 0; attempt < 3; attempt++) {
    // One piece without control data: the system copies no description of it.
    const ssize_t sent = plain ? sendto(fd, vectors_[0].iov_base, vectors_[0].iov_len, MSG_DONTWAIT,
                                        &path.address.any, path.addressBytes)
                               : sendmsg(fd, &message, MSG_DONTWAIT | flags);
    if (sent >= 0) return Outcome::kSent;
    if (errno == EAGAIN) return Outcome::kWouldBlock;
    if (count > 1 && (errno == EINVAL || errno == EIO)) return Outcome::kSegmentationRefused;
    if (errno == EINTR) continue;
    if (!isDelayedError(errno)) break;
    result->delayedErrors |= uint64_t{1} << path.localIndex;
  }
  refusedBy_ = errno;
  return Outcome::kRefused;
}

}  // namespace dapl
