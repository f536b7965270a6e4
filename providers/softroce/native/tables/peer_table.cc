#include "tables/peer_table.h"

#include <cstring>

namespace dapl {
namespace {

constexpr uint8_t kProven = 16;
/// The most segments a datagram can have (UDP_MAX_SEGMENTS of current kernels).
constexpr uint16_t kMaxSegments = 128;
constexpr uint16_t kCandidateWindow = 64;

uint32_t load32(const uint8_t* at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

/// One more proof, or all of them void.
void prove(uint8_t* proof, bool holds) {
  if (!holds) {
    *proof = 0;
  } else if (*proof < kProven) {
    (*proof)++;
  }
}

}  // namespace

bool Peer::is(const Endpoint& source, uint32_t localIndex) const {
  return localIndex_ == localIndex && source_.port == source.port &&
         memcmp(source_.gid, source.gid, sizeof(source.gid)) == 0;
}

void Peer::reset(const Endpoint& source, const Endpoint& local, uint32_t localIndex) {
  *this = Peer();
  source_ = source;
  local_ = local;
  localIndex_ = localIndex;
  ipv4_ = dapl::isIpv4(source.gid);
}

void Peer::beginDatagram() {
  firstOfDatagram_ = true;
  if (numbersFromZero_) expectedId_ = 0;
}

uint32_t Peer::differenceOf(const uint8_t* packet, size_t bytes, uint16_t id) {
  const uint32_t reg = registers_.of(source_, local_, bytes);
  const size_t covered = bytes - kIcrcBytes;
  const uint32_t header = ipv4_ ? reg ^ identificationEffect(id) : reg;
  return icrcOf(header, packet, covered) ^ load32(packet + covered);
}

Verdict Peer::verify(const uint8_t* packet, size_t bytes, IdentificationWindow& host,
                     uint64_t nowMs) {
  const uint32_t difference = differenceOf(packet, bytes, expectedId_);
  if (!ipv4_) return difference == 0 ? Verdict::kGood : Verdict::kBad;
  uint16_t id = expectedId_;
  if (difference != 0) {
    uint16_t change;
    if (!solveIdentification(difference, bytes - kIcrcBytes, &change)) return Verdict::kBad;
    id ^= change;
  }
  const bool followsHost = host.expects(id, nowMs);
  if (difference != 0 && !admit(id, followsHost)) return Verdict::kBad;
  remember(id, followsHost);
  host.note(id, nowMs);
  return difference == 0 ? Verdict::kGood : Verdict::kRecovered;
}

Verdict Peer::verifyExact(const uint8_t* packet, size_t bytes, uint16_t id, uint16_t otherId) {
  const uint32_t difference = differenceOf(packet, bytes, id);
  if (difference == 0) return Verdict::kGood;
  // The CRC is linear: another identification changes the difference by a known amount.
  uint16_t change;
  const bool other = id != otherId &&
                     solveIdentification(difference, bytes - kIcrcBytes, &change) &&
                     change == (id ^ otherId);
  return other ? Verdict::kGood : Verdict::kBad;
}

bool Peer::admit(uint16_t id, bool followsHost) {
  const bool fromZero = zeroProof_ == kProven;
  const bool fromHost = hostProof_ == kProven;
  if (!fromZero && !fromHost) return true;
  if ((fromZero && id < kMaxSegments) || (fromHost && followsHost)) return true;
  // Perhaps another program has taken the peer's place; its next packet will tell.
  const uint16_t step = static_cast<uint16_t>(id - candidateId_);
  const bool follows = hasCandidate_ && step >= 1 && step <= kCandidateWindow;
  hasCandidate_ = true;
  candidateId_ = id;
  return follows;
}

void Peer::remember(uint16_t id, bool followsHost) {
  if (firstOfDatagram_) numbersFromZero_ = id == 0;
  firstOfDatagram_ = false;
  prove(&zeroProof_, id < kMaxSegments);
  prove(&hostProof_, followsHost);
  hasCandidate_ = false;
  expectedId_ = static_cast<uint16_t>(id + 1);
}

PeerTable::Found PeerTable::find(const Endpoint& source, const Endpoint& local,
                                 uint32_t localIndex) {
  uint32_t hash = localIndex * 0x9E3779B1;
  for (int word = 0; word < 4; word++) hash = (hash ^ load32(source.gid + 4 * word)) * 0x85EBCA6B;
  Host& host = hosts_[(hash >> 16) % kHosts];
  if (host.localIndex != localIndex || memcmp(host.gid, source.gid, sizeof(host.gid)) != 0) {
    host = Host();
    host.localIndex = localIndex;
    memcpy(host.gid, source.gid, sizeof(host.gid));
  }
  Peer& peer = peers_[((hash ^ source.port * 0xC2B2AE35) >> 16) % kPeers];
  if (!peer.is(source, localIndex)) peer.reset(source, local, localIndex);
  return {peer, host.window};
}

}  // namespace dapl
