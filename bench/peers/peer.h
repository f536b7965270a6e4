// A peer of the benchmark: a library under test behind six calls, and the workloads over them.
// Both sides are processes of their own, which spin: neither sleeps while something is due.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_options {
  bool is_client;
  const char *local;     // this side's address
  const char *remote;    // the other's
  const char *workload;  // send, write, read, ping
  size_t bytes;          // a message
  int depth;             // messages in flight
  double seconds;
  const char *variant;  // which of the library's providers
  int places;           // messages that the client's go round in: `depth` at least
};

// The other side as it describes itself: address, memory, keys.
struct peer_name {
  uint8_t bytes[4096];
  uint32_t length;
};

// A call that posts answers false when the library's queue is full: poll, then try again.
struct peer_library {
  // `memory` has room for `slots` messages; sends leave from it and arrive in the other's.
  void (*open)(const struct peer_options *options, uint8_t *memory, int slots);
  void (*describe)(struct peer_name *own);
  void (*connect)(const struct peer_name *other);
  // Both sides have connected. NULL where nothing is to be done.
  void (*connected)(void);
  bool (*send)(int slot);
  bool (*receive)(int slot);
  bool (*write)(int slot);
  bool (*read)(int slot);
  // Adds to `*done` what this side started and is complete, to `*received` the receives.
  void (*poll)(int *done, int *received);
  // Everything written is in the other side's memory.
  void (*flush)(void);
};

extern const struct peer_library peer_library;

// Ends the process with a sentence.
void peer_fail(const char *what, const char *why);
