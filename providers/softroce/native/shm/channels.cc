#include "shm/channels.h"

#include <errno.h>
#include <time.h>

#include <algorithm>

#include "coarse_clock.h"

namespace dapl {
namespace {

constexpr const char* kLies = "the peer has written what cannot be to the channel";
constexpr const char* kStuck = "the peer has not let go of memory that it was reading";
/// Packets that the other side may see together, where they are short.
constexpr uint32_t kTogether = 16;
/// A peer that takes nothing holds up what goes to others so long; then its packets are lost.
constexpr uint64_t kPatienceMs = 5;
/// What one copies takes less; a peer that was put to sleep in the middle of it takes longer.
/// All of them together have so long: the event loop waits.
constexpr uint64_t kWithdrawalMs = 200;
/// And again when none has been waited for this long.
constexpr uint64_t kWithdrawalRestMs = 2000;
/// What a packet may be of that crosses a channel: RC and XRC.
bool isReliable(const uint8_t* header) {
  const int transport = header[0] >> 5;
  return transport == 0 || transport == 5;
}
/// Requests that carry payload keep it until they are acknowledged: SEND and WRITE. A READ's answer
/// is what the memory was when it was answered.
bool keepsPayload(const uint8_t* header) {
  const int operation = header[0] & 31;
  return operation <= 11 || operation == 22 || operation == 23;
}
uint32_t padBytesOf(const uint8_t* header) { return header[1] >> 4 & 3; }
uint32_t qpnOf(const uint8_t* header) {
  return static_cast<uint32_t>(header[5]) << 16 | header[6] << 8 | header[7];
}
uint32_t bigEndian(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | at[1] << 16 | at[2] << 8 | at[3];
}
/// Between the places where two packets of a burst seem to lie, for `place`.
constexpr uint32_t kBodyStep = Channel::kLongestPayload + 64;

}  // namespace

int Channels::offer(uint32_t slots, uint64_t bounceBytes, uint64_t peerBytes, Channel** channel) {
  auto made = std::make_unique<Channel>(nextNumber_++, peerBytes);
  const int error = made->offer(slots, bounceBytes);
  if (error != 0) return error;
  *channel = made.get();
  channels_.push_back(std::move(made));
  return 0;
}

Channel* Channels::find(uint32_t number) {
  for (const auto& one : channels_) {
    if (one->number() == number) return one.get();
  }
  return nullptr;
}

Channel* Channels::to(const Endpoint& address, int32_t slot) {
  for (Channel* one : attached_) {
    if (one->isAlive() && one->isOfSlot(slot) && one->addressOf(address) >= 0) return one;
  }
  return nullptr;
}

void Channels::remove(Channel* channel) {
  const auto without = [channel](std::vector<Channel*>* list) {
    list->erase(std::remove(list->begin(), list->end(), channel), list->end());
  };
  without(&attached_);
  without(&dirty_);
  claims_.erase(std::remove_if(claims_.begin(), claims_.end(),
                               [channel](const Claim& one) { return one.channel == channel; }),
                claims_.end());
  packets_ = 0;  // nothing of the last burst is placed any more
  channels_.erase(std::remove_if(channels_.begin(), channels_.end(),
                                 [channel](const auto& one) { return one.get() == channel; }),
                  channels_.end());
}

void Channels::unmap(Channel* channel, uint32_t segment) {
  packets_ = 0;  // payload of the last burst may lie there
  channel->segments().remove(segment);
}

void Channels::clear() {
  while (!channels_.empty()) remove(channels_.back().get());
}

bool Channels::takeEnded() {
  const bool some = someEnded_;
  someEnded_ = false;
  return some;
}

Channel* Channels::firstEnded() {
  for (Channel* one : attached_) {
    if (!one->isAlive()) return one;
  }
  return nullptr;
}

uint32_t Channels::receive(const std::vector<Endpoint>& locals, uint32_t described) {
  release();
  described_ = described;
  packets_ = 0;
  arenaUsed_ = 0;
  inPlace_ = 0;
  const size_t count = attached_.size();
  for (size_t i = 0; i < count && packets_ < kBurst && inPlace_ < kBurstBytes; i++) {
    // Another one first each time: a busy peer must not starve the rest.
    Channel* const channel = attached_[(first_ + i) % count];
    if (channel->isAlive()) {
      const uint32_t read = receiveFrom(channel, locals);
      if (read > 0) claims_.push_back({channel, read});
    }
    if (!channel->isAlive()) someEnded_ = true;
  }
  first_++;
  burstWasFull_ = packets_ == kBurst || inPlace_ >= kBurstBytes;
  memory_.counters[kReceivedPackets] += packets_;
  memory_.counters[kChannelReceived] += packets_;
  return packets_;
}

/// @returns packets read, of which some may have been dropped
uint32_t Channels::receiveFrom(Channel* channel, const std::vector<Endpoint>& locals) {
  Consumer& consumer = channel->consumer();
  const uint32_t room = static_cast<uint32_t>(memory_.receivedCapacity) - described_ - packets_;
  const uint32_t count = consumer.take(std::min(kBurst - packets_, room));
  if (count == Consumer::kBroken) {
    channel->end(kLies);
    return 0;
  }
  uint32_t read = 0;
  while (read < count && inPlace_ < kBurstBytes) {
    const Slot slot = consumer.read(read++);
    const char* const wrong = describe(*channel, slot, locals);
    if (!wrong) continue;
    channel->end(wrong);
    break;
  }
  return read;
}

/// @returns nullptr, or why the channel must end
const char* Channels::describe(const Channel& channel, const Slot& slot,
                               const std::vector<Endpoint>& locals) {
  if (slot.kind == Slot::kWithdrawn) return nullptr;
  const uint32_t headerBytes = slot.headerBytes;
  const uint32_t payload = slot.payloadBytes;
  if (slot.kind != Slot::kPacket || headerBytes < kBthBytes || headerBytes > Slot::kHeaderBytes ||
      headerBytes % 4 != 0 || slot.source >= channel.addresses().size() ||
      slot.destination >= locals.size() || payload > Channel::kLongestPayload) {
    return kLies;
  }
  const uint8_t* const data = payload > 0 ? channel.resolve(slot) : slot.header;
  if (!data) return kLies;
  const uint32_t pad = padBytesOf(slot.header);
  if (!isReliable(slot.header) || (headerBytes + payload + pad) % 4 != 0) {
    memory_.counters[kMalformed] += 1;
    return nullptr;
  }
  const size_t at = arenaAt_ + arenaUsed_;
  uint8_t* const packet = memory_.arena + at;
  memcpy(packet, slot.header, headerBytes);
  // A header that is read where payload stands is what a datagram would have there.
  const bool isShort = payload <= kShortPayload;
  const uint32_t copied = isShort ? payload : static_cast<uint32_t>(Slot::kHeaderBytes);
  memcpy(packet + headerBytes, data, copied);
  if (isShort) memset(packet + headerBytes + payload, 0, pad);
  arenaUsed_ += (headerBytes + copied + pad + 15) / 16 * 16;

  uint32_t* const words = memory_.received + rx::kWords * (described_ + packets_);
  const Endpoint& source = channel.addresses()[slot.source];
  words[rx::kOffset] = static_cast<uint32_t>(at);
  words[rx::kLength] = headerBytes + payload + pad;
  words[rx::kFlags] = isIpv4(source.gid) ? 0 : rx::kFlagIpv6;
  words[rx::kLocalGidIndex] = slot.destination;
  for (int i = 0; i < 4; i++) words[rx::kSourceGid + i] = bigEndian(source.gid + 4 * i);
  words[rx::kSourcePort] = source.port;
  words[rx::kBody] =
      isShort ? 0 : static_cast<uint32_t>(memory_.arenaBytes) + packets_ * kBodyStep;
  taken_[packets_++] = {packet, headerBytes, payload, data};
  if (!isShort) inPlace_ += payload;
  return nullptr;
}

void Channels::release() {
  for (const Claim& claim : claims_) {
    if (!claim.channel->isAlive()) continue;
    if (claim.channel->consumer().release(claim.packets)) claim.channel->wake();
  }
  claims_.clear();
}

bool Channels::place(uint64_t source, uint32_t length, uint8_t* target) const {
  const uint64_t number = (source - memory_.arenaBytes) / kBodyStep;
  uint64_t from = (source - memory_.arenaBytes) % kBodyStep;
  if (number >= packets_) return false;
  const Taken& packet = taken_[number];
  if (from + length > uint64_t{packet.headerBytes} + packet.payloadBytes) return false;
  if (from < packet.headerBytes) {  // payload begins where its opcode says, not where its slot does
    const uint32_t rest = packet.headerBytes - static_cast<uint32_t>(from);
    const uint32_t there = std::min(rest, length);
    memcpy(target, packet.header + from, there);
    target += there;
    length -= there;
    from += there;
  }
  memcpy(target, packet.payload + (from - packet.headerBytes), length);
  return true;
}

bool Channels::inPlace(const Channel& channel, const uint8_t* data, uint32_t bytes,
                       uint64_t* place) const {
  SegmentRange range;
  if (!arena_ || !arena_->lend(data, bytes, &range) || !channel.mayName(range.segment)) {
    return false;
  }
  *place = Slot::placeOf(static_cast<uint16_t>(range.segment), range.offset);
  return true;
}

Channels::Sent Channels::send(Channel* channel, uint8_t source, uint8_t destination,
                              const uint32_t* words, uint32_t payloadBytes) {
  if (!channel->isAlive()) {
    someEnded_ = true;
    return Sent::kLost;
  }
  Producer& producer = channel->producer();
  const uint32_t count = words[tx::kSegmentCount];
  const uint32_t* entry = memory_.segments + size_t{words[tx::kFirstSegment]} * segment::kWords;
  const auto dataOf = [this](const uint32_t* at) {
    return regions_.resolve(at[segment::kRegion],
                            join(at[segment::kOffsetLow], at[segment::kOffsetHigh]),
                            at[segment::kLength]);
  };
  Slot slot;
  memcpy(slot.header, words + tx::kHeader, Slot::kHeaderBytes);
  slot.kind = Slot::kPacket;
  slot.headerBytes = static_cast<uint8_t>(words[tx::kHeaderLength]);
  slot.source = source;
  slot.destination = destination;
  slot.payloadBytes = payloadBytes;
  slot.place = 0;

  const bool stays = count == 1 && payloadBytes > tx::kCopiedPayloadBytes &&
                     keepsPayload(slot.header) &&
                     inPlace(*channel, dataOf(entry), payloadBytes, &slot.place);
  const uint32_t copied = stays ? 0 : payloadBytes;
  Producer::Room room = producer.room(copied);
  if (room == Producer::Room::kFull) {
    publish(channel);
    room = producer.want(copied);
  }
  if (room == Producer::Room::kBroken) {
    channel->end(kLies);
    someEnded_ = true;
    return Sent::kLost;
  }
  if (room == Producer::Room::kFull) {
    const uint64_t nowMs = coarseMs();
    if (channel->fullSinceMs == 0) channel->fullSinceMs = nowMs;
    someFull_ = true;
    return nowMs - channel->fullSinceMs > kPatienceMs ? Sent::kLost : Sent::kFull;
  }
  channel->fullSinceMs = 0;
  if (copied > 0) {
    uint8_t* to = producer.bounce(copied, &slot.place);
    for (uint32_t i = 0; i < count; i++, entry += segment::kWords) {
      memcpy(to, dataOf(entry), entry[segment::kLength]);
      to += entry[segment::kLength];
    }
  }
  producer.put(slot, stays, qpnOf(slot.header));
  if (!channel->dirty) {
    channel->dirty = true;
    dirty_.push_back(channel);
  }
  const bool isLong = payloadBytes > tx::kCopiedPayloadBytes;
  if (isLong || producer.unpublished() >= kTogether) publish(channel);
  return Sent::kSent;
}

void Channels::publish(Channel* channel) {
  if (channel->producer().publish()) channel->wake();
}

void Channels::publish() {
  for (Channel* channel : dirty_) {
    channel->dirty = false;
    publish(channel);
  }
  dirty_.clear();
}

/// A peer that is reading such memory is waited for: it does nothing else meanwhile. Where the time
/// for that has been spent, on other peers too, its channel ends at once.
void Channels::withdraw(Channel* channel, uint32_t qpn) {
  if (!channel->isAlive()) return;
  const uint64_t fromMs = coarseMs();
  if (fromMs - waitedUntilMs_ > kWithdrawalRestMs) waitedMs_ = 0;
  uint64_t nowMs = fromMs;
  while (channel->producer().withdraw(qpn) == Producer::Withdrawal::kInUse) {
    if (channel->isOwnThreads()) return;
    if (waitedMs_ + (nowMs - fromMs) >= kWithdrawalMs) {
      channel->end(kStuck);
      someEnded_ = true;
      break;
    }
    const timespec pause = {0, 20000};
    nanosleep(&pause, nullptr);
    nowMs = coarseMs();
  }
  if (nowMs == fromMs) return;
  waitedMs_ += nowMs - fromMs;
  waitedUntilMs_ = nowMs;
}

void Channels::letGo() {
  for (Channel* channel : attached_) channel->letGo();
}

bool Channels::arm() {
  bool quiet = true;
  for (Channel* channel : attached_) {
    if (channel->isAlive() && !channel->consumer().arm()) quiet = false;
  }
  return quiet;
}

void Channels::disarm() {
  for (Channel* channel : attached_) channel->consumer().disarm();
}

void Channels::appendWakeFds(std::vector<pollfd>* fds) const {
  for (const Channel* channel : attached_) {
    if (channel->isAlive()) fds->push_back({channel->wakeFd(), POLLIN, 0});
  }
}

void Channels::drainWakes() {
  for (Channel* channel : attached_) {
    if (channel->isAlive()) channel->drainWakes();
  }
}

bool Channels::isReadable() const {
  for (Channel* channel : attached_) {
    if (channel->isAlive() && !channel->consumer().isEmpty()) return true;
  }
  return false;
}

bool Channels::takeWritable() {
  const bool some = someFull_;
  someFull_ = false;
  return some;
}

}  // namespace dapl
