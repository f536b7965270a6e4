// Takes in trains of packets: one system call for up to eight, split, verified, described in words.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "packets/header_tap.h"
#include "socket/multicast_groups.h"
#include "tables/peer_table.h"
#include "port_memory.h"
#include "socket/udp_socket.h"

namespace dapl {

class Receiver {
 public:
  static constexpr size_t kTrains = 8;
  static constexpr size_t kMaxSockets = 64;
  /// 64 KiB and a skew, lest all trains start in the same cache sets.
  static constexpr size_t kSlotBytes = 65536 + 320;
  static constexpr size_t kArenaBytes = kTrains * kSlotBytes;

  /// @param maxPacketBytes longer packets are malformed
  Receiver(const PortMemory& memory, size_t maxPacketBytes);
  /// From now on the ICRC of IPv4 packets is checked with the identification that they had.
  /// @returns 0, or errno and the index of the socket it is about
  int tapHeaders(const std::vector<UdpSocket>& sockets, size_t* failed);
  void closeTaps() { taps_.clear(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// @returns packets described; `delayedError` is set when a socket has an error report waiting
  uint32_t receive(const std::vector<UdpSocket>& sockets, MulticastGroups& groups,
                   bool* delayedError);

 private:
  struct Slot {
    SocketAddress source;
    iovec vector;
    alignas(cmsghdr) uint8_t control[64];
  };
  /// Where datagrams are taken from.
  struct Source {
    const UdpSocket& socket;
    /// In `rx::kLocalGidIndex`.
    uint32_t localIndex;
    /// Null where headers are not tapped.
    HeaderTap* tap;
  };
  void prepare(size_t slot);
  void takeFromSocket(const UdpSocket& socket, uint32_t index, bool* delayedError);
  void takeFromGroups(MulticastGroups& groups, bool* delayedError);
  /// @returns how many trains came, at most as many as wanted
  size_t takeTrains(const Source& from, size_t wanted, bool* delayedError);
  void split(size_t slot, const Source& from);
  /// @returns whether to go on: the header of the datagram is known, or not needed
  bool beginDatagram(const uint8_t* data, PeerTable::Found from, HeaderTap* tap);
  void describe(const uint8_t* packet, size_t bytes, PeerTable::Found from, uint32_t localIndex);
  Verdict verify(const uint8_t* packet, size_t bytes, PeerTable::Found from);
  void count(Counter counter) { memory_.counters[counter] += 1; }

  PortMemory memory_;
  size_t maxPacketBytes_;
  PeerTable peers_;
  Slot slots_[kTrains];
  mmsghdr messages_[kTrains] = {};
  size_t usedSlots_ = 0;
  uint32_t packets_ = 0;
  size_t firstSocket_ = 0;
  /// By socket; empty unless headers are tapped, and null for IPv6.
  std::vector<std::unique_ptr<HeaderTap>> taps_;
  /// Of the datagram at hand: its identification is known, and how many of its packets are past.
  bool exact_ = false;
  uint16_t datagramId_ = 0;
  uint16_t segment_ = 0;
  uint64_t nowMs_ = 0;
  /// Whether the socket had something last time.
  bool busy_[kMaxSockets] = {};
};

}  // namespace dapl
