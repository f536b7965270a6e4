// The multicast groups that a port has joined: a socket for each, and one descriptor (epoll) that
// says which of them have something, so that groups without traffic cost nothing.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "packets/header_tap.h"
#include "socket/udp_socket.h"

namespace dapl {

struct MulticastGroup {
  uint32_t number;
  UdpSocket socket;
  /// With exact ICRC and IPv4.
  std::unique_ptr<HeaderTap> tap;
};

class MulticastGroups {
 public:
  struct Handlers {
    std::function<void()> readable;
    /// Nothing of this is left in the event loop; called once, after `close`.
    std::function<void()> closed;
  };
  /// @param exactIcrc sees the headers of IPv4 packets through raw sockets
  MulticastGroups(uv_loop_t* loop, bool exactIcrc, Handlers handlers);
  MulticastGroups(const MulticastGroups&) = delete;
  MulticastGroups& operator=(const MulticastGroups&) = delete;
  ~MulticastGroups();

  /// @param local whose interface joins
  /// @returns the number of the membership, below 2^31 and never used again, or -errno:
  /// EADDRNOTAVAIL where no interface has the address any more
  int64_t join(const Endpoint& group, const Endpoint& local);
  /// @returns whether there was such a membership
  bool leave(uint32_t number);

  bool isEmpty() const { return groups_.empty(); }
  /// Readable while one of the groups is; -1 before the first one.
  int descriptor() const { return epoll_; }
  /// Groups that have something, in turn: the next call begins with others.
  /// @returns how many were stored
  size_t ready(MulticastGroup** out, size_t most);
  /// Datagrams that the system has dropped for want of room, of groups that are joined or were.
  uint32_t dropped() const;

  void watch();
  void setProcessHold(bool alive);
  void close();

 private:
  int open(MulticastGroup* group, const Endpoint& local);
  bool openPoll();
  void startPoll();

  uv_loop_t* loop_;
  bool exactIcrc_;
  Handlers handlers_;
  std::unordered_map<uint32_t, MulticastGroup> groups_;
  uint32_t nextNumber_ = 0;
  uint32_t droppedBefore_ = 0;
  int epoll_ = -1;
  uv_poll_t poll_;
  bool hasPoll_ = false;
  bool watched_ = false;
  bool hold_ = false;
};

}  // namespace dapl
