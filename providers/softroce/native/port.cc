#include "port.h"

#include <errno.h>
#include <string.h>

#include "socket/multicast_socket.h"
#include "socket/exit_packet.h"

namespace dapl {
namespace {
constexpr uint64_t kQuietMs = 100;
/// So many looks at channels may pass between two at the sockets, which take much longer, unless
/// there was something at the last one or the event loop says that there is.
constexpr uint32_t kSkippedLooks = 16;
constexpr const char* kClosedHere = "it was closed on this side";
}  // namespace

Report* ReportList::add(const Report& report, uint64_t nowMs) {
  for (Entry& entry : entries_) {
    const bool same = entry.used && entry.report.type == report.type &&
                      memcmp(entry.report.gid, report.gid, 16) == 0;
    if (!same) continue;
    if (entry.pending || nowMs - entry.sinceMs < kQuietMs) return nullptr;
    entry.report = report;
    entry.pending = true;
    entry.sinceMs = nowMs;
    return &entry.report;
  }
  Entry& entry = entries_[oldest_++ % 16];
  entry.report = report;
  entry.sinceMs = nowMs;
  entry.used = entry.pending = true;
  return &entry.report;
}

bool ReportList::next(Report* report) {
  for (Entry& entry : entries_) {
    if (!entry.pending) continue;
    entry.pending = false;
    *report = entry.report;
    return true;
  }
  return false;
}

Port::Port(napi_env env, const PortMemory& memory, std::vector<napi_ref> arrays)
    : env_(env), memory_(memory), arrays_(std::move(arrays)) {}

Port::~Port() = default;

int Port::open(const std::vector<Endpoint>& locals, const std::vector<uint32_t>& scopes,
               const std::vector<uint32_t>& descriptors, size_t maxPacketBytes, bool exactIcrc,
               size_t* failed) {
  sockets_.resize(locals.size());
  for (size_t i = 0; i < locals.size(); i++) {
    sockets_[i].local = locals[i];
    sockets_[i].scopeId = scopes[i];
    const int error = descriptors.empty()
                          ? openUdpSocket(&sockets_[i], false)
                          : adoptUdpSocket(&sockets_[i], static_cast<int>(descriptors[i]));
    if (error != 0) {
      *failed = i;
      return closeSockets(error);
    }
    sendToGroupsFrom(sockets_[i]);
  }
  locals_ = locals;
  receiver_ = std::make_unique<Receiver>(memory_, maxPacketBytes);
  channels_ = std::make_unique<Channels>(memory_, regions_, Receiver::kArenaBytes);
  const int error = exactIcrc ? receiver_->tapHeaders(sockets_, failed) : 0;
  if (error != 0) return closeSockets(error);
  sender_ = std::make_unique<Sender>(memory_, regions_, sockets_, *channels_);

  uv_loop_t* loop;
  napi_get_uv_event_loop(env_, &loop);
  wake_.data = this;
  uv_async_init(loop, &wake_, [](uv_async_t* handle) {
    static_cast<Port*>(handle->data)->tellReports();
  });
  uv_unref(reinterpret_cast<uv_handle_t*>(&wake_));
  const auto tell = [this](napi_ref Handlers::*handler) {
    return [this, handler] {
      if (open_ && watched_) call(handlers_.*handler, 0, nullptr);
    };
  };
  channelLoop_ = std::make_unique<ChannelLoop>(
      loop, *channels_,
      ChannelLoop::Handlers{tell(&Handlers::readable), tell(&Handlers::writable),
                            [this] { tellEnds(); }, [this] { onHandleClosed(); }});
  groups_ = std::make_unique<MulticastGroups>(
      loop, exactIcrc,
      MulticastGroups::Handlers{[this] { onGroups(); }, [this] { onHandleClosed(); }});
  openHandles_ = 3 + sockets_.size();
  polls_.reset(new Poll[sockets_.size()]);
  for (const UdpSocket& socket : sockets_) watchedFds_.push_back({socket.fd, POLLIN, 0});
  for (size_t i = 0; i < sockets_.size(); i++) {
    polls_[i].port = this;
    polls_[i].socket = i;
    polls_[i].handle.data = &polls_[i];
    uv_poll_init(loop, &polls_[i].handle, sockets_[i].fd);
    uv_unref(reinterpret_cast<uv_handle_t*>(&polls_[i].handle));
  }
  open_ = true;
  napi_add_async_cleanup_hook(
      env_,
      [](napi_async_cleanup_hook_handle, void* port) {
        static_cast<Port*>(port)->threadEnds_ = true;
        static_cast<Port*>(port)->close(nullptr);
      },
      this, &cleanup_);
  return 0;
}

int Port::closeSockets(int error) {
  for (UdpSocket& socket : sockets_) closeUdpSocket(&socket);
  return error;
}

void Port::useArena(uint64_t limitBytes, napi_ref onChange) {
  if (!open_ || arena_) {
    napi_delete_reference(env_, onChange);
    return;
  }
  arena_ = Arena::create(limitBytes);
  arena_->setListener(this);
  channels_->useArena(arena_);
  onSegments_ = onChange;
}

/// Memory goes when it is collected, and JavaScript may not run then.
void Port::onSegments() {
  segmentsChanged_ = true;
  uv_async_send(&wake_);
}

void Port::readClock() {
  memory_.counters[kClockUs] = static_cast<double>(uv_hrtime()) / 1000 - clockOffsetUs_;
}

uint32_t Port::receive() {
  bool delayedError = false;
  uint32_t packets = 0;
  // The sockets first: what a peer has put into a channel before it sent a datagram (the last ACK
  // before a DREQ) is in the same burst then, of which the HCA takes management datagrams last.
  if (looksAtSockets()) {
    packets = receiver_->receive(sockets_, *groups_, &delayedError);
    socketsBusy_ = packets > 0;
  }
  packets += channels_->receive(locals_, packets);
  readClock();
  if (delayedError) {
    for (size_t i = 0; i < sockets_.size(); i++) drainErrors(i);
  }
  noteEnds();
  return packets;
}

void Port::rest(uint32_t mostUs) {
  if (!open_) return;
  const timespec most = {mostUs / 1000000, (mostUs % 1000000) * 1000L};
  // The descriptors of groups and channels stand behind those of sockets.
  watchedFds_.resize(sockets_.size());
  if (!groups_->isEmpty()) watchedFds_.push_back({groups_->descriptor(), POLLIN, 0});
  channels_->appendWakeFds(&watchedFds_);
  if (channels_->arm()) ppoll(watchedFds_.data(), watchedFds_.size(), &most, nullptr);
  channels_->disarm();
  channels_->drainWakes();
}

bool Port::looksAtSockets() {
  const bool mayWait = channels_->attached() > 0 && (!socketsBusy_ || channels_->hasManyWaiting());
  if (mayWait && ++skippedLooks_ < kSkippedLooks) return false;
  skippedLooks_ = 0;
  return true;
}

int64_t Port::place(uint32_t count) {
  if (count > memory_.placementCapacity) return static_cast<int64_t>(memory_.placementCapacity);
  regions_.beginCall(env_);
  const uint32_t* entry = memory_.placements;
  for (uint32_t i = 0; i < count; i++, entry += place::kWords) {
    const uint64_t source = entry[place::kSource];
    const uint32_t length = entry[place::kLength];
    uint8_t* target = regions_.resolve(
        entry[place::kRegion], join(entry[place::kOffsetLow], entry[place::kOffsetHigh]), length);
    if (!target) return i;
    if (source >= memory_.arenaBytes) {
      if (!channels_->place(source, length, target)) return i;
    } else {
      if (source + length > memory_.arenaBytes) return i;
      memcpy(target, memory_.arena + source, length);
    }
  }
  return -1;
}

int64_t Port::joinGroup(const Endpoint& group, uint32_t localIndex) {
  return groups_->join(group, sockets_[localIndex].local);
}

int Port::routeToGroup(const Endpoint& group, uint32_t localIndex) const {
  return dapl::routeToGroup(sockets_[localIndex], group);
}

int64_t Port::keepExitPacket(uint32_t path, const uint8_t* packet, size_t bytes) {
  if (!sender_->hasPath(path)) return -1;
  const Path& to = sender_->path(path);
  const UdpSocket& socket = sockets_[to.localIndex];
  const uint32_t reg = headerRegister(socket.local, to.destination, bytes + kIcrcBytes);
  const uint32_t icrc = icrcOf(reg, packet, bytes);
  return dapl::keepExitPacket(socket.fd, to.address, to.addressBytes, packet, bytes, icrc);
}

Sender::Result Port::send(uint32_t from, uint32_t to) {
  regions_.beginCall(env_);
  const Sender::Result result = sender_->send(from, to);
  for (size_t i = 0; result.delayedErrors >> i; i++) {
    if ((result.delayedErrors >> i) & 1) drainErrors(i);
  }
  if (!result.refusals.empty()) reportRefusals(result.refusals);
  channels_->publish();
  noteEnds();
  if (result.wouldBlock && !result.channelFull && !wantWritable_) {
    wantWritable_ = true;
    for (size_t i = 0; watched_ && i < sockets_.size(); i++) startPoll(polls_[i]);
  }
  return result;
}

void Port::withdraw(uint32_t path, uint32_t qpn) {
  if (!sender_->hasPath(path)) return;
  Channel* const channel = sender_->path(path).channel;
  if (channel) channels_->withdraw(channel, qpn);
  noteEnds();
}

const char* Port::attach(Channel* channel, const Channel::Peer& peer) {
  const char* const wrong = channel->attach(peer);
  if (wrong) return wrong;
  channels_->onAttached(channel);
  channelLoop_->watch(channel);
  return nullptr;
}

void Port::closeChannel(Channel* channel) {
  if (!channel->isAttached()) return channels_->remove(channel);
  channel->end(kClosedHere);
  uv_async_send(&wake_);
}

Channel* Port::channelTo(const Endpoint& address, int32_t slot) {
  Channel* const channel = channels_->to(address, slot);
  if (!channel) return nullptr;
  channel->lookForEnd();
  if (channel->isAlive()) return channel;
  uv_async_send(&wake_);
  return nullptr;
}

void Port::noteEnds() {
  if (channels_->takeEnded()) uv_async_send(&wake_);
}

void Port::tellEnds() {
  while (open_ && watched_) {
    Channel* const channel = channels_->firstEnded();
    if (!channel) return;
    const uint32_t number = channel->number();
    const char* const reason = channel->endedBy();
    std::vector<Report> reports;
    for (uint32_t i = 0; i < sender_->paths(); i++) {
      if (!sender_->hasPath(i) || sender_->path(i).channel != channel) continue;
      Report gone;
      gone.type = ReportType::kPeerGone;
      gone.value = i;
      memcpy(gone.gid, sender_->path(i).destination.gid, 16);
      reports.push_back(gone);
    }
    sender_->forget(channel);
    channelLoop_->unwatch(channel);
    channels_->remove(channel);
    for (const Report& report : reports) {
      if (open_) tellReport(report);
    }
    if (open_ && reason != kClosedHere) tellChannelEnd(number, reason);
  }
}

void Port::tellChannelEnd(uint32_t number, const char* reason) {
  napi_handle_scope scope;
  napi_open_handle_scope(env_, &scope);
  napi_value arguments[2];
  napi_create_uint32(env_, number, &arguments[0]);
  const napi_status made =
      napi_create_string_utf8(env_, reason, NAPI_AUTO_LENGTH, &arguments[1]);
  if (made == napi_ok) call(handlers_.channelEnd, 2, arguments);
  napi_close_handle_scope(env_, scope);
}

uint32_t Port::dropped() const {
  uint32_t sum = 0;
  for (const UdpSocket& socket : sockets_) sum += droppedDatagrams(socket);
  return sum + groups_->dropped();
}

void Port::watch(const Handlers& handlers) {
  drop(&handlers_.readable);
  drop(&handlers_.writable);
  drop(&handlers_.report);
  drop(&handlers_.channelEnd);
  handlers_ = handlers;
  watched_ = true;
  for (size_t i = 0; i < sockets_.size(); i++) startPoll(polls_[i]);
  groups_->watch();
}

void Port::setProcessHold(bool alive) {
  processHold_ = alive;
  for (size_t i = 0; i < sockets_.size(); i++) {
    uv_handle_t* handle = reinterpret_cast<uv_handle_t*>(&polls_[i].handle);
    (alive ? uv_ref : uv_unref)(handle);
  }
  groups_->setProcessHold(alive);
  channelLoop_->setProcessHold(alive);
}

void Port::startPoll(Poll& poll) {
  const int events = wantWritable_ ? UV_READABLE | UV_WRITABLE : UV_READABLE;
  uv_poll_start(&poll.handle, events, [](uv_poll_t* handle, int status, int ready) {
    Poll* poll = static_cast<Poll*>(handle->data);
    poll->port->onPoll(*poll, status, ready);
  });
}

void Port::onPoll(Poll& poll, int status, int events) {
  if (status < 0) {
    // libuv stops watching a descriptor that has an error report; ours are read and go on.
    drainErrors(poll.socket);
    startPoll(poll);
    tellReports();
    return;
  }
  if (events & UV_WRITABLE) {
    wantWritable_ = false;
    for (size_t i = 0; i < sockets_.size(); i++) startPoll(polls_[i]);
    call(handlers_.writable, 0, nullptr);
  }
  if (open_ && (events & UV_READABLE)) {
    socketsBusy_ = true;
    call(handlers_.readable, 0, nullptr);
  }
}

void Port::onGroups() {
  if (!open_) return;
  socketsBusy_ = true;
  call(handlers_.readable, 0, nullptr);
}

void Port::drainErrors(size_t index) {
  Report found;
  while (nextError(sockets_[index], &found)) {
    switch (found.type) {
      case ReportType::kPortUnreachable:
      case ReportType::kUnreachable:
        memory_.counters[kIcmpUnreachable] += 1;
        report(found);
        break;
      case ReportType::kTooBig:
        memory_.counters[kIcmpTooBig] += 1;
        report(found);
        break;
      case ReportType::kTooLong:  // reported by what was refused, which knows its size
        carriedBytes_ = found.mtuBytes;
        break;
      default:
        break;
    }
  }
  int pending;  // an error without a report would keep the poll awake
  socklen_t length = sizeof(pending);
  getsockopt(sockets_[index].fd, SOL_SOCKET, SO_ERROR, &pending, &length);
}

void Port::reportRefusals(const std::vector<Sender::Refusal>& refusals) {
  for (const Sender::Refusal& refusal : refusals) {
    const Path& path = sender_->path(refusal.path);
    Report refused;
    memcpy(refused.gid, path.destination.gid, 16);
    const bool tooLong = refusal.error == EMSGSIZE;
    refused.type = tooLong ? ReportType::kTooLong : ReportType::kRefused;
    refused.value = tooLong ? refusal.packetBytes : static_cast<uint32_t>(refusal.error);
    Report* const told = report(refused);
    if (!told || !tooLong) continue;
    // Of a train the system does not say what is carried; what it has said may be long ago.
    Link link;
    findLink(sockets_[path.localIndex].local.gid, &link);
    told->mtuBytes = carriedBytes_ > 0 ? carriedBytes_ : link.mtuBytes;
    if (told->mtuBytes >= refusal.packetBytes) told->mtuBytes = 0;
    carriedBytes_ = 0;
  }
}

Report* Port::report(const Report& report) {
  Report* const told = reports_.add(report, uv_hrtime() / 1000000);
  if (told) uv_async_send(&wake_);
  return told;
}

void Port::tellReports() {
  if (segmentsChanged_ && open_) {
    segmentsChanged_ = false;
    call(onSegments_, 0, nullptr);
  }
  Report report;
  while (open_ && watched_ && reports_.next(&report)) tellReport(report);
  tellEnds();
}

void Port::tellReport(const Report& report) {
  napi_handle_scope scope;
  napi_open_handle_scope(env_, &scope);
  void* bytes = nullptr;
  napi_value buffer = nullptr, arguments[4] = {};
  // A thread that ends makes no objects any more, and its loop turns a last time nevertheless.
  if (napi_create_arraybuffer(env_, sizeof(report.gid), &bytes, &buffer) != napi_ok ||
      napi_create_typedarray(env_, napi_uint8_array, sizeof(report.gid), buffer, 0,
                             &arguments[0]) != napi_ok) {
    napi_close_handle_scope(env_, scope);
    return;
  }
  memcpy(bytes, report.gid, sizeof(report.gid));
  napi_create_uint32(env_, static_cast<uint32_t>(report.type), &arguments[1]);
  napi_create_uint32(env_, report.value, &arguments[2]);
  napi_create_uint32(env_, report.mtuBytes, &arguments[3]);
  call(handlers_.report, 4, arguments);
  napi_close_handle_scope(env_, scope);
}

void Port::call(napi_ref reference, size_t count, const napi_value* arguments) {
  if (!reference) return;
  napi_handle_scope scope;
  napi_open_handle_scope(env_, &scope);
  napi_value global = nullptr, function = nullptr, result = nullptr;
  napi_get_global(env_, &global);
  napi_get_reference_value(env_, reference, &function);
  if (napi_make_callback(env_, nullptr, global, function, count, arguments, &result) ==
      napi_pending_exception) {
    napi_value error = nullptr;
    napi_get_and_clear_last_exception(env_, &error);
    napi_fatal_exception(env_, error);
  }
  napi_close_handle_scope(env_, scope);
}

void Port::close(napi_ref closed) {
  if (!open_) return;
  open_ = false;
  closed_ = closed;
  if (arena_) arena_->setListener(nullptr);
  const auto onClose = [](uv_handle_t* handle) {
    static_cast<Poll*>(handle->data)->port->onHandleClosed();
  };
  for (size_t i = 0; i < sockets_.size(); i++) {
    uv_close(reinterpret_cast<uv_handle_t*>(&polls_[i].handle), onClose);
    dropExitPacketsOf(sockets_[i].fd);
    closeUdpSocket(&sockets_[i]);
  }
  receiver_->closeTaps();
  groups_->close();
  channelLoop_->close();
  channels_->clear();
  uv_close(reinterpret_cast<uv_handle_t*>(&wake_), [](uv_handle_t* handle) {
    static_cast<Port*>(handle->data)->onHandleClosed();
  });
}

void Port::onHandleClosed() {
  if (--openHandles_ > 0) return;
  dropAll();
  if (closed_ && !threadEnds_) call(closed_, 0, nullptr);
  drop(&closed_);
  const napi_async_cleanup_hook_handle cleanup = cleanup_;
  if (users_ == 0) delete this;
  napi_remove_async_cleanup_hook(cleanup);
}

void Port::letGo() {
  if (users_ > 0 && --users_ > 0) return;
  if (open_) {
    close(nullptr);
  } else if (openHandles_ == 0) {
    dropAll();
    delete this;
  }
}

void Port::dropAll() {
  regions_.clear(env_);
  if (arena_) arena_->release();
  arena_ = nullptr;
  drop(&handlers_.readable);
  drop(&handlers_.writable);
  drop(&handlers_.report);
  drop(&handlers_.channelEnd);
  drop(&onSegments_);
  for (napi_ref& array : arrays_) drop(&array);
}

void Port::drop(napi_ref* reference) {
  if (*reference) napi_delete_reference(env_, *reference);
  *reference = nullptr;
}

}  // namespace dapl
