// File descriptors on the event loop. A callback runs from the loop's poll phase, hence never
// inside a call of the consumer.
#pragma once

#include "instance.h"

// Counts the handles that libuv has not given back yet: the environment waits for them.
struct Shutdown {
  unsigned open = 0;
  bool ending = false;
  napi_async_cleanup_hook_handle hook = nullptr;

  // The last handle of an environment that ends lets it go on. `this` may be gone afterwards.
  void settle();
};

struct Watch {
  uv_poll_t handle;
  Shutdown* shutdown;
  void (*onReadable)(void* data);
  void* data;
};

// Makes the descriptor non-blocking and calls `onReadable(data)` whenever it can be read, or has
// failed. It does not keep the process alive until told to. Returns null, errno set, if it cannot.
Watch* openWatch(Instance& instance, int fd, void (*onReadable)(void*), void* data);
void setAlive(Watch* watch, bool alive);
// No callback, and no look at the descriptor, until it is resumed.
void pauseWatch(Watch* watch);
void resumeWatch(Watch* watch);
// No callback afterwards; the descriptor may be closed at once. Null is fine, and becomes null.
void closeWatch(Watch*& watch);

// Calls a function with numbers. What it throws is an uncaught exception of the process.
void callHandler(Instance& instance, napi_ref function, const double* arguments, size_t count);
