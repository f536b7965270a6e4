#include "shm/channel_loop.h"

#include <algorithm>

namespace dapl {
namespace {

template <typename Handle>
uv_handle_t* base(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace

ChannelLoop::ChannelLoop(uv_loop_t* loop, Channels& channels, Handlers handlers)
    : loop_(loop), channels_(channels), handlers_(std::move(handlers)) {
  uv_prepare_init(loop, &before_);
  uv_check_init(loop, &after_);
  uv_idle_init(loop, &awake_);
  before_.data = after_.data = awake_.data = this;
  for (uv_handle_t* handle : {base(&before_), base(&after_), base(&awake_)}) uv_unref(handle);
}

void ChannelLoop::watch(Channel* channel) {
  if (polls_.empty()) {
    uv_prepare_start(&before_, [](uv_prepare_t* handle) {
      static_cast<ChannelLoop*>(handle->data)->beforeSleep();
    });
    uv_check_start(&after_, [](uv_check_t* handle) {
      static_cast<ChannelLoop*>(handle->data)->afterSleep();
    });
  }
  Poll* const poll = new Poll;
  poll->loop = this;
  poll->channel = channel;
  poll->handle.data = poll;
  uv_poll_init(loop_, &poll->handle, channel->wakeFd());
  openHandles_++;
  uv_poll_start(&poll->handle, UV_READABLE, [](uv_poll_t* handle, int, int) {
    Poll* const poll = static_cast<Poll*>(handle->data);
    poll->loop->onPoll(poll);
  });
  if (!hold_) uv_unref(base(&poll->handle));
  polls_.push_back(poll);
}

void ChannelLoop::unwatch(const Channel* channel) {
  const auto found = std::find_if(polls_.begin(), polls_.end(),
                                  [channel](Poll* one) { return one->channel == channel; });
  if (found == polls_.end()) return;
  closePoll(*found);
  polls_.erase(found);
  if (!polls_.empty()) return;
  uv_prepare_stop(&before_);
  uv_check_stop(&after_);
  uv_idle_stop(&awake_);
}

void ChannelLoop::closePoll(Poll* poll) {
  uv_poll_stop(&poll->handle);
  uv_close(base(&poll->handle), [](uv_handle_t* handle) {
    Poll* const closed = static_cast<Poll*>(handle->data);
    closed->loop->onHandleClosed();
    delete closed;
  });
}

void ChannelLoop::setProcessHold(bool alive) {
  hold_ = alive;
  for (Poll* poll : polls_) (alive ? uv_ref : uv_unref)(base(&poll->handle));
}

void ChannelLoop::beforeSleep() {
  channels_.letGo();
  if (uv_backend_timeout(loop_) == 0) return;
  // It must not sleep with a packet there, and an idle handle keeps it from that.
  if (!channels_.arm()) uv_idle_start(&awake_, [](uv_idle_t*) {});
}

void ChannelLoop::afterSleep() {
  channels_.disarm();
  uv_idle_stop(&awake_);
  if (channels_.takeWritable()) handlers_.writable();
  if (channels_.isReadable()) handlers_.readable();
}

void ChannelLoop::onPoll(Poll* poll) {
  poll->channel->drainWakes();
  if (poll->channel->isAlive()) return;
  uv_poll_stop(&poll->handle);
  handlers_.ended();
}

void ChannelLoop::close() {
  for (Poll* poll : polls_) closePoll(poll);
  polls_.clear();
  for (uv_handle_t* handle : {base(&before_), base(&after_), base(&awake_)}) {
    uv_close(handle, [](uv_handle_t* closed) {
      static_cast<ChannelLoop*>(closed->data)->onHandleClosed();
    });
  }
}

void ChannelLoop::onHandleClosed() {
  if (--openHandles_ == 0) handlers_.closed();
}

}  // namespace dapl
