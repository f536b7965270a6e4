// Channels and the event loop: before it sleeps the peers are told, after it has slept their
// packets are looked for. What wakes it is a socket for each channel.
#pragma once

#include <node_api.h>
#include <uv.h>

#include <functional>
#include <vector>

#include "shm/channels.h"

namespace dapl {

class ChannelLoop {
 public:
  struct Handlers {
    std::function<void()> readable;
    std::function<void()> writable;
    /// A channel may have ended.
    std::function<void()> ended;
    /// Nothing of this is left in the event loop.
    std::function<void()> closed;
  };
  ChannelLoop(uv_loop_t* loop, Channels& channels, Handlers handlers);
  ChannelLoop(const ChannelLoop&) = delete;
  ChannelLoop& operator=(const ChannelLoop&) = delete;

  void watch(Channel* channel);
  void unwatch(const Channel* channel);
  void setProcessHold(bool alive);
  void close();

 private:
  struct Poll {
    uv_poll_t handle;
    ChannelLoop* loop;
    Channel* channel;
  };
  void beforeSleep();
  void afterSleep();
  void onPoll(Poll* poll);
  void closePoll(Poll* poll);
  void onHandleClosed();

  uv_loop_t* loop_;
  Channels& channels_;
  Handlers handlers_;
  uv_prepare_t before_;
  uv_check_t after_;
  uv_idle_t awake_;
  std::vector<Poll*> polls_;
  size_t openHandles_ = 3;
  bool hold_ = false;
};

}  // namespace dapl
