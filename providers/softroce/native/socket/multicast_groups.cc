#include "socket/multicast_groups.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "socket/multicast_socket.h"

namespace dapl {
namespace {

constexpr uint32_t kMaxNumber = 0x7FFFFFFF;
constexpr int kMostReady = 8;

}  // namespace

MulticastGroups::MulticastGroups(uv_loop_t* loop, bool exactIcrc, Handlers handlers)
    : loop_(loop), exactIcrc_(exactIcrc), handlers_(std::move(handlers)) {
  poll_.data = this;
}

MulticastGroups::~MulticastGroups() {
  for (auto& [number, group] : groups_) closeUdpSocket(&group.socket);
}

int64_t MulticastGroups::join(const Endpoint& group, const Endpoint& local) {
  if (nextNumber_ == kMaxNumber) return -ENOSPC;
  if (!openPoll()) return -errno;
  MulticastGroup joined{};
  joined.number = nextNumber_;
  joined.socket.local = group;
  const int error = open(&joined, local);
  if (error != 0) {
    closeUdpSocket(&joined.socket);
    return -error;
  }
  groups_.emplace(nextNumber_, std::move(joined));
  return nextNumber_++;
}

int MulticastGroups::open(MulticastGroup* group, const Endpoint& local) {
  Link link;
  if (!findLink(local.gid, &link)) return errno;
  UdpSocket& socket = group->socket;
  const int error = openMulticastSocket(&socket, link.interface);
  if (error != 0) return error;
  if (exactIcrc_ && socket.ipv4) {
    group->tap = std::make_unique<HeaderTap>();
    const int refused = group->tap->open(socket.local);
    if (refused != 0) return refused;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = group->number;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, socket.fd, &event) == 0 ? 0 : errno;
}

bool MulticastGroups::leave(uint32_t number) {
  const auto found = groups_.find(number);
  if (found == groups_.end()) return false;
  droppedBefore_ += droppedDatagrams(found->second.socket);
  // Closing takes it out of the epoll set and, with its last member, the host out of the group.
  closeUdpSocket(&found->second.socket);
  groups_.erase(found);
  return true;
}

size_t MulticastGroups::ready(MulticastGroup** out, size_t most) {
  if (groups_.empty()) return 0;
  epoll_event events[kMostReady];
  const int limit = most < kMostReady ? static_cast<int>(most) : kMostReady;
  const int found = limit > 0 ? epoll_wait(epoll_, events, limit, 0) : 0;
  size_t count = 0;
  for (int i = 0; i < found; i++) {
    const auto group = groups_.find(events[i].data.u32);
    if (group != groups_.end()) out[count++] = &group->second;
  }
  return count;
}

uint32_t MulticastGroups::dropped() const {
  uint32_t sum = droppedBefore_;
  for (const auto& [number, group] : groups_) sum += droppedDatagrams(group.socket);
  return sum;
}

bool MulticastGroups::openPoll() {
  if (epoll_ >= 0) return true;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return false;
  uv_poll_init(loop_, &poll_, epoll_);
  hasPoll_ = true;
  if (!hold_) uv_unref(reinterpret_cast<uv_handle_t*>(&poll_));
  if (watched_) startPoll();
  return true;
}

void MulticastGroups::startPoll() {
  uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* handle, int, int) {
    static_cast<MulticastGroups*>(handle->data)->handlers_.readable();
  });
}

void MulticastGroups::watch() {
  watched_ = true;
  if (hasPoll_) startPoll();
}

void MulticastGroups::setProcessHold(bool alive) {
  hold_ = alive;
  uv_handle_t* const handle = reinterpret_cast<uv_handle_t*>(&poll_);
  if (hasPoll_) (alive ? uv_ref : uv_unref)(handle);
}

void MulticastGroups::close() {
  for (auto& [number, group] : groups_) closeUdpSocket(&group.socket);
  groups_.clear();
  if (!hasPoll_) {
    handlers_.closed();
    return;
  }
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), [](uv_handle_t* handle) {
    static_cast<MulticastGroups*>(handle->data)->handlers_.closed();
  });
  ::close(epoll_);
  epoll_ = -1;
}

}  // namespace dapl
