// The IPv4 headers of what arrives, seen through a raw socket (CAP_NET_RAW), to check the ICRC
// exactly: a UDP socket does not show the IPv4 identification.
//
// The system hands a copy of each datagram to raw sockets before it queues the datagram itself. A
// filter keeps of the copy what tells datagrams apart: IP header, UDP header and BTH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "icrc/icrc.h"

namespace dapl {

class HeaderTap {
 public:
  HeaderTap() = default;
  HeaderTap(const HeaderTap&) = delete;
  HeaderTap& operator=(const HeaderTap&) = delete;
  ~HeaderTap() { close(); }

  /// @param local an IPv4 address and the UDP port of interest
  /// @returns 0 or errno; EPERM without CAP_NET_RAW
  int open(const Endpoint& local);
  void close();

  /// Takes in the headers that wait. To be called after datagrams were received.
  void drain();
  /// Finds the header of the datagram that begins with this BTH, and forgets those before it.
  /// @returns false when it was not seen
  bool find(const Endpoint& source, const uint8_t* bth, uint16_t* id);

 private:
  struct Header {
    uint8_t source[4];
    uint8_t bth[kBthBytes];
    uint16_t port;
    uint16_t id;
  };
  /// More than the socket's buffer holds; the oldest ones go.
  static constexpr size_t kMaxHeaders = 16384;

  int fd_ = -1;
  std::deque<Header> headers_;
};

}  // namespace dapl
