// The port as an object of the event loop: sockets, their readiness, and what becomes of it all
// when it is closed or its thread ends. One per open device; no globals, so any number of threads.
#pragma once

#include <node_api.h>
#include <poll.h>
#include <uv.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/arena.h"
#include "port_memory.h"
#include "packets/receiver.h"
#include "shm/channel_loop.h"
#include "tables/region_table.h"
#include "packets/sender.h"
#include "socket/multicast_groups.h"
#include "socket/udp_socket.h"

namespace dapl {

/// What is said of destinations, until JavaScript is told; each of one at most every 100 ms.
class ReportList {
 public:
  /// @returns what will be told, or nullptr when that is no news
  Report* add(const Report& report, uint64_t nowMs);
  bool next(Report* report);

 private:
  struct Entry {
    Report report;
    uint64_t sinceMs = 0;
    bool pending = false;
    bool used = false;
  };
  Entry entries_[16] = {};
  size_t oldest_ = 0;
};

class Port final : public Arena::Listener {
 public:
  static constexpr size_t kArenaBytes = Receiver::kArenaBytes + Channels::kArenaBytes;
  struct Handlers {
    napi_ref readable = nullptr;
    napi_ref writable = nullptr;
    napi_ref report = nullptr;
    napi_ref channelEnd = nullptr;
  };

  Port(napi_env env, const PortMemory& memory, std::vector<napi_ref> arrays);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// @param clockOffsetUs the loop's clock minus that of performance.now()
  void setClock(double clockOffsetUs) { clockOffsetUs_ = clockOffsetUs; }
  /// Tells JavaScript the time, in `counters`.
  void readClock();
  /// @param descriptors sockets bound to the addresses already, of which the port takes
  /// duplicates; none: it binds
  /// @param exactIcrc sees the headers of IPv4 packets through a raw socket
  /// @returns 0 or errno; `failed` is the index of the address
  int open(const std::vector<Endpoint>& locals, const std::vector<uint32_t>& scopes,
           const std::vector<uint32_t>& descriptors, size_t maxPacketBytes, bool exactIcrc,
           size_t* failed);
  bool isOpen() const { return open_; }

  uint32_t receive();
  /// Sleeps until a socket has something, for `mostUs` at most.
  void rest(uint32_t mostUs);
  /// @returns the index of an entry that breaks the contract, or -1; those before it were copied
  int64_t place(uint32_t count);
  Sender::Result send(uint32_t from, uint32_t to);
  /// @returns as MulticastGroups::join
  int64_t joinGroup(const Endpoint& group, uint32_t localIndex);
  void leaveGroup(uint32_t number) { groups_->leave(number); }
  /// @returns 0, or the errno that sending to a group from this address would have
  int routeToGroup(const Endpoint& group, uint32_t localIndex) const;
  /// @param packet from the BTH to the pad
  /// @returns as dapl::keepExitPacket (socket/exit_packet.h)
  int64_t keepExitPacket(uint32_t path, const uint8_t* packet, size_t bytes);
  /// The packets of the last `receive` are done with.
  void release() { channels_->release(); }
  /// What was sent to a queue pair, and waits in its memory for the peer to read it, is lost.
  void withdraw(uint32_t path, uint32_t qpn);
  RegionTable& regions() { return regions_; }
  Sender& sender() { return *sender_; }
  /// @param limitBytes of memory that peers of this host can read where it lies
  /// @param onChange a segment has come or gone
  void useArena(uint64_t limitBytes, napi_ref onChange);
  void onSegments() override;
  /// nullptr where `useArena` was not called.
  Arena* arena() const { return arena_; }
  size_t addresses() const { return sockets_.size(); }
  uint32_t dropped() const;

  const std::vector<Endpoint>& locals() const { return locals_; }
  Channels& channels() { return *channels_; }
  /// @returns nullptr, or what is wrong
  const char* attach(Channel* channel, const Channel::Peer& peer);
  void closeChannel(Channel* channel);
  /// As Channels::to: looks whether its other end is there.
  Channel* channelTo(const Endpoint& address, int32_t slot);

  void watch(const Handlers& handlers);
  void setProcessHold(bool alive);
  /// @param closed called when nothing of the port is left in the event loop; may be null
  void close(napi_ref closed);
  /// Counts the JavaScript functions that use the port.
  void retain() { users_++; }
  /// One of them is gone; after the last the port closes, if need be, and is deleted.
  void letGo();

 private:
  struct Poll {
    uv_poll_t handle;
    Port* port;
    size_t socket;
  };
  ~Port();

  /// @returns `error`
  int closeSockets(int error);
  void startPoll(Poll& poll);
  void onPoll(Poll& poll, int status, int events);
  void onGroups();
  void drainErrors(size_t socket);
  /// @returns as ReportList::add
  Report* report(const Report& report);
  void reportRefusals(const std::vector<Sender::Refusal>& refusals);
  void tellReports();
  void tellReport(const Report& report);
  /// A channel that has ended is told of as soon as no call of the port is under way.
  void noteEnds();
  void tellEnds();
  void tellChannelEnd(uint32_t number, const char* reason);
  bool looksAtSockets();
  void call(napi_ref function, size_t count, const napi_value* arguments);
  void onHandleClosed();
  void drop(napi_ref* reference);
  void dropAll();

  napi_env env_;
  PortMemory memory_;
  std::vector<napi_ref> arrays_;
  std::vector<UdpSocket> sockets_;
  /// Of `rest`, which allocates nothing.
  std::vector<pollfd> watchedFds_;
  RegionTable regions_;
  Arena* arena_ = nullptr;
  napi_ref onSegments_ = nullptr;
  bool segmentsChanged_ = false;
  std::unique_ptr<Receiver> receiver_;
  std::vector<Endpoint> locals_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<ChannelLoop> channelLoop_;
  std::unique_ptr<MulticastGroups> groups_;
  std::unique_ptr<Sender> sender_;
  /// Between two looks at the sockets, while channels are looked at again and again.
  uint32_t skippedLooks_ = 0;
  bool socketsBusy_ = true;
  ReportList reports_;
  /// What is carried, as the system said last when it refused a packet that was too long.
  uint32_t carriedBytes_ = 0;

  Handlers handlers_;
  std::unique_ptr<Poll[]> polls_;
  /// Wakes the loop for news found inside a port call.
  uv_async_t wake_;
  bool open_ = false;
  bool watched_ = false;
  bool processHold_ = false;
  bool wantWritable_ = false;
  size_t users_ = 0;
  size_t openHandles_ = 0;
  napi_ref closed_ = nullptr;
  napi_async_cleanup_hook_handle cleanup_ = nullptr;
  double clockOffsetUs_ = 0;
  bool threadEnds_ = false;
};

}  // namespace dapl
