// Takes in trains of packets: one system call for up to eight, split, verified, described in words.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "peer_table.h"
#include "port_memory.h"
#include "udp_socket.h"

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
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// @returns packets described; `delayedError` is set when a socket has an error report waiting
  uint32_t receive(const std::vector<UdpSocket>& sockets, bool* delayedError);

 private:
  struct Slot {
    SocketAddress source;
    iovec vector;
    alignas(cmsghdr) uint8_t control[64];
  };
  void prepare(size_t slot);
  void takeTrains(const UdpSocket& socket, uint32_t localIndex, bool* delayedError);
  void split(size_t slot, const UdpSocket& socket, uint32_t localIndex);
  void describe(const uint8_t* packet, size_t bytes, Peer& peer, uint32_t localIndex);
  void count(Counter counter) { memory_.counters[counter] += 1; }

  PortMemory memory_;
  size_t maxPacketBytes_;
  PeerTable peers_;
  Slot slots_[kTrains];
  mmsghdr messages_[kTrains] = {};
  size_t usedSlots_ = 0;
  uint32_t packets_ = 0;
  size_t firstSocket_ = 0;
  /// Whether the socket had something last time.
  bool busy_[kMaxSockets] = {};
};

}  // namespace dapl
