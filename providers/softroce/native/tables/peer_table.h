// The port's record of its peers, to check the ICRC of their IPv4 packets: a socket does not show
// the identification that the ICRC covers.
//
// The expected identification is tried first; otherwise the one that the sender used is solved for,
// which by itself leaves 2^16 acceptable ICRCs of 2^32. A peer that has proved to number in a known
// way is held to it: the segments of each datagram from 0, as ours do (2^7 acceptable), or on from
// its host's last identification, as kernels do (fewer than 2^10 while packets flow).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "icrc/icrc.h"
#include "packets/identification_window.h"

namespace dapl {

enum class Verdict { kGood, kRecovered, kBad };

class Peer {
 public:
  bool is(const Endpoint& source, uint32_t localIndex) const;
  void reset(const Endpoint& source, const Endpoint& local, uint32_t localIndex);

  const Endpoint& source() const { return source_; }
  bool isIpv4() const { return ipv4_; }
  /// Says that the next packet is the first of a datagram.
  void beginDatagram();
  /// Checks a packet: BTH to ICRC, at least kBthBytes + kIcrcBytes.
  Verdict verify(const uint8_t* packet, size_t bytes, IdentificationWindow& host, uint64_t nowMs);
  /// Checks an IPv4 packet whose identification is known: either of the two.
  Verdict verifyExact(const uint8_t* packet, size_t bytes, uint16_t id, uint16_t otherId);

 private:
  /// What the ICRC differs by from the one made with this identification (0 on IPv6).
  uint32_t differenceOf(const uint8_t* packet, size_t bytes, uint16_t id);
  bool admit(uint16_t id, bool followsHost);
  void remember(uint16_t id, bool followsHost);

  Endpoint source_{};
  Endpoint local_{};
  uint32_t localIndex_ = UINT32_MAX;  // of an unused entry
  bool ipv4_ = false;
  bool firstOfDatagram_ = false;
  bool numbersFromZero_ = true;
  uint16_t expectedId_ = 0;
  /// Packets in a row that were numbered from 0, and on from the host's last; up to kProven.
  uint8_t zeroProof_ = 0;
  uint8_t hostProof_ = 0;
  /// An identification that a proven peer should not have used; two in a row change our mind.
  bool hasCandidate_ = false;
  uint16_t candidateId_ = 0;
  HeaderRegisters registers_;
};

/// A bounded cache: a peer or host that loses its place to another is known anew later.
class PeerTable {
 public:
  struct Found {
    Peer& peer;
    IdentificationWindow& host;
  };
  PeerTable() : peers_(kPeers), hosts_(kHosts) {}
  Found find(const Endpoint& source, const Endpoint& local, uint32_t localIndex);

 private:
  struct Host {
    uint8_t gid[16];
    uint32_t localIndex = UINT32_MAX;
    IdentificationWindow window;
  };
  static constexpr size_t kPeers = 1024;
  static constexpr size_t kHosts = 256;
  std::vector<Peer> peers_;
  std::vector<Host> hosts_;
};

}  // namespace dapl
