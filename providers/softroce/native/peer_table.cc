#include "peer_table.h"

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
  ipv4_ = isIpv4(source.gid);
}

void Peer::beginDatagram() {
  firstOfDatagram_ = true;
  if (numbersFromZero_) expectedId_ = 0;
}

Verdict Peer::verify(const uint8_t* packet, size_t bytes) {
  if (registerBytes_ != bytes) {
    register_ = headerRegister(source_, local_, bytes);
    registerBytes_ = bytes;
  }
  const size_t covered = bytes - kIcrcBytes;
  const uint32_t received = load32(packet + covered);
  if (!ipv4_) {
    const bool good = icrcOf(register_, packet, covered) == received;
    return good ? Verdict::kGood : Verdict::kBad;
  }
  const uint32_t header = register_ ^ identificationEffect(expectedId_);
  const uint32_t difference = icrcOf(header, packet, covered) ^ received;
  if (difference == 0) {
    remember(expectedId_);
    return Verdict::kGood;
  }
  uint16_t change;
  if (!solveIdentification(difference, covered, &change)) return Verdict::kBad;
  const uint16_t id = expectedId_ ^ change;
  if (!admit(id)) return Verdict::kBad;
  remember(id);
  return Verdict::kRecovered;
}

bool Peer::admit(uint16_t id) {
  if (proof_ < kProven || id < kMaxSegments) return true;
  // Perhaps another program has taken the peer's place; its next packet will tell.
  const uint16_t step = static_cast<uint16_t>(id - candidateId_);
  const bool follows = hasCandidate_ && step >= 1 && step <= kCandidateWindow;
  hasCandidate_ = true;
  candidateId_ = id;
  return follows;
}

void Peer::remember(uint16_t id) {
  if (firstOfDatagram_) numbersFromZero_ = id == 0;
  firstOfDatagram_ = false;
  if (id >= kMaxSegments) {
    proof_ = 0;
  } else if (proof_ < kProven) {
    proof_++;
  }
  hasCandidate_ = false;
  expectedId_ = static_cast<uint16_t>(id + 1);
}

Peer& PeerTable::find(const Endpoint& source, const Endpoint& local, uint32_t localIndex) {
  uint32_t hash = localIndex * 0x9E3779B1 + source.port;
  for (int word = 0; word < 4; word++) hash = (hash ^ load32(source.gid + 4 * word)) * 0x85EBCA6B;
  Peer& peer = peers_[(hash >> 16) % kPeers];
  if (!peer.is(source, localIndex)) peer.reset(source, local, localIndex);
  return peer;
}

}  // namespace dapl
