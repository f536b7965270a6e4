// What the port remembers about those it hears from, to check the ICRC of their IPv4 packets, whose
// identification a socket does not show (wire facts 1.7.4).
//
// The expected identification is tried first; otherwise the one that the sender used is solved for,
// which always leaves 2^16 acceptable ICRCs of 2^32. A peer that has proved to number the segments
// of each datagram from 0, as ours do, is held to that: then 2^7 are acceptable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "icrc.h"

namespace dapl {

enum class Verdict { kGood, kRecovered, kBad };

class Peer {
 public:
  bool is(const Endpoint& source, uint32_t localIndex) const;
  void reset(const Endpoint& source, const Endpoint& local, uint32_t localIndex);

  const Endpoint& source() const { return source_; }
  /// Says that the next packet is the first of a datagram.
  void beginDatagram();
  /// Checks a packet: BTH to ICRC, at least kBthBytes + kIcrcBytes.
  Verdict verify(const uint8_t* packet, size_t bytes);

 private:
  bool admit(uint16_t id);
  void remember(uint16_t id);

  Endpoint source_{};
  Endpoint local_{};
  uint32_t localIndex_ = UINT32_MAX;  // of an unused entry
  bool ipv4_ = false;
  bool firstOfDatagram_ = false;
  bool numbersFromZero_ = true;
  uint16_t expectedId_ = 0;
  /// Packets in a row that were numbered from 0, up to kProven.
  uint8_t proof_ = 0;
  /// An identification that a proven peer should not have used; two in a row change our mind.
  bool hasCandidate_ = false;
  uint16_t candidateId_ = 0;
  /// The register before the BTH, for the length it was made for.
  size_t registerBytes_ = 0;
  uint32_t register_ = 0;
};

/// A bounded cache: a peer that loses its place to another is known anew at its next packet.
class PeerTable {
 public:
  PeerTable() : peers_(kPeers) {}
  Peer& find(const Endpoint& source, const Endpoint& local, uint32_t localIndex);

 private:
  static constexpr size_t kPeers = 1024;
  std::vector<Peer> peers_;
};

}  // namespace dapl
