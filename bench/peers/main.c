// The workloads of a peer, over whatever library this is linked with.
//
//   PROGRAM server LOCAL REMOTE 0    WORKLOAD BYTES DEPTH SECONDS VARIANT PLACES
//   PROGRAM client LOCAL REMOTE PORT WORKLOAD BYTES DEPTH SECONDS VARIANT PLACES
//
// The server prints the port for the client first; at its end each prints one line of JSON.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "peer.h"

// Looks at the library between two at the clock or the control connection.
#define LOOKS 64

static const struct peer_library *const library = &peer_library;

void peer_fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void swap_names(int control) {
  static struct peer_name own, other;
  library->describe(&own);
  control_send(control, &own, sizeof own);
  control_receive(control, &other, sizeof other);
  library->connect(&other);
}

static bool is(const struct peer_options *options, const char *workload) {
  return strcmp(options->workload, workload) == 0;
}

static void receive_into(int slot) {
  int done = 0, received = 0;
  while (!library->receive(slot)) library->poll(&done, &received);
}

// Server of a stream: takes in what comes until the client says how many messages there were.
static void serve_stream(int control, const struct peer_options *options, int receives) {
  uint64_t total = UINT64_MAX, taken = 0;
  const bool counts = is(options, "send");
  int slot = 0;
  for (unsigned look = 0; !counts || taken < total; look++) {
    int done = 0, received = 0;
    library->poll(&done, &received);
    taken += (uint64_t)received;
    for (; received > 0; received--) {
      receive_into(slot);
      slot = (slot + 1) % receives;
    }
    if (look % LOOKS == 0 && total == UINT64_MAX && control_ready(control)) {
      control_receive(control, &total, sizeof total);
      if (!counts) break;
    }
  }
  control_send(control, &total, sizeof total);
}

// Tells the server how many messages there were, and waits until it has seen them all; what the
// library still has to send for that leaves meanwhile.
static void settle(int control, uint64_t total) {
  control_send(control, &total, sizeof total);
  for (unsigned look = 0; look % LOOKS != 0 || !control_ready(control); look++) {
    int done = 0, received = 0;
    library->poll(&done, &received);
  }
  control_receive(control, &total, sizeof total);
}

static bool post(const struct peer_options *options, int slot) {
  if (is(options, "write")) return library->write(slot);
  if (is(options, "read")) return library->read(slot);
  return library->send(slot);
}

static uint64_t run_first(const struct peer_options *options) {
  int done = 0, received = 0;
  while (!post(options, 0)) library->poll(&done, &received);
  while (done == 0) library->poll(&done, &received);
  return 1;
}

// Client of a stream: keeps `depth` messages in flight.
static void run_stream(int control, const struct peer_options *options) {
  const double cpu_before = cpu_seconds();
  // The first one, which sets the library's connection up, is behind us when the time begins.
  uint64_t total = run_first(options), lead_in = 0, posted = total;
  const double start = now_seconds(), counted = start + options->seconds * LEAD_IN;
  const double end = start + options->seconds;
  double now = start, since = start;
  bool over = false;
  for (unsigned look = 0; !over || total < posted; look++) {
    int done = 0, received = 0;
    while (!over && posted - total < (uint64_t)options->depth &&
           post(options, (int)(posted % (uint64_t)options->places))) {
      posted++;
    }
    library->poll(&done, &received);
    total += (uint64_t)done;
    if (options->bytes >= 4096 ? done == 0 : look % LOOKS != 0) continue;
    now = now_seconds();
    if (lead_in == 0 && now >= counted) {
      lead_in = total;
      since = now;
    }
    over = now >= end && lead_in > 0 && total > lead_in;
  }
  if (is(options, "write")) library->flush();
  settle(control, total);
  now = now_seconds();
  printf("{\"messages\":%llu,\"counted\":%llu,\"seconds\":%.6f,\"cpuSeconds\":%.6f}\n",
         (unsigned long long)total, (unsigned long long)(total - lead_in), now - since,
         cpu_seconds() - cpu_before);
}

static void wait_for_message(int slot) {
  int done = 0, received = 0;
  while (received == 0) library->poll(&done, &received);
  receive_into(slot);
}

static void send_message(int slot) {
  int done = 0, received = 0;
  while (!library->send(slot)) library->poll(&done, &received);
  if (received > 0) peer_fail("ping", "a message that nobody asked for");
}

static void serve_ping(int control) {
  uint64_t total = UINT64_MAX;
  for (unsigned look = 0;; look++) {
    int done = 0, received = 0;
    library->poll(&done, &received);
    if (received > 0) {
      receive_into(0);
      send_message(0);
    } else if (look % (16 * LOOKS) == 0 && control_ready(control)) {
      break;
    }
  }
  control_receive(control, &total, sizeof total);
  control_send(control, &total, sizeof total);
}

static void run_ping(int control, const struct peer_options *options) {
  const double cpu_before = cpu_seconds();
  struct laps laps = {0};
  send_message(0);
  wait_for_message(0);
  laps_start(&laps);
  const double start = laps.since;
  while (laps.since < start + options->seconds || laps.count == 0) {
    send_message(0);
    wait_for_message(0);
    laps_add(&laps);
  }
  settle(control, laps.total);
  double p50, p99;
  laps_percentiles(&laps, &p50, &p99);
  printf("{\"messages\":%zu,\"counted\":%zu,\"seconds\":%.6f,\"cpuSeconds\":%.6f,"
         "\"p50\":%.3f,\"p99\":%.3f}\n",
         laps.total, laps.count, laps.since - start, cpu_seconds() - cpu_before, p50, p99);
}

int main(int argc, char **argv) {
  if (argc != 11) peer_fail(argv[0], "ten arguments are due");
  const struct peer_options options = {
      .is_client = strcmp(argv[1], "client") == 0,
      .local = argv[2],
      .remote = argv[3],
      .workload = argv[5],
      .bytes = strtoul(argv[6], NULL, 10),
      .depth = atoi(argv[7]),
      .seconds = atof(argv[8]),
      .variant = argv[9],
      .places = atoi(argv[10]),
  };
  end_with_parent(options.seconds);
  const int slots = options.places > 2 * options.depth ? options.places : 2 * options.depth;
  const size_t size = (options.bytes * (size_t)slots + 4095) / 4096 * 4096;
  uint8_t *memory = aligned_alloc(4096, size);
  if (memory == NULL) peer_fail("memory", "none");
  memset(memory, 1, size);
  library->open(&options, memory, slots);
  const int control = options.is_client ? control_connect(options.remote, atoi(argv[4]))
                                        : control_listen(options.local);
  swap_names(control);
  const bool is_ping = is(&options, "ping");
  const int receives = is_ping ? 1 : slots;
  if (is_ping || (!options.is_client && is(&options, "send"))) {
    for (int slot = 0; slot < receives; slot++) receive_into(slot);
  }
  uint8_t ready = 1;
  control_send(control, &ready, 1);
  control_receive(control, &ready, 1);
  if (library->connected != NULL) library->connected();
  const double before = cpu_seconds();
  if (options.is_client) {
    if (is_ping) run_ping(control, &options);
    else run_stream(control, &options);
    return 0;
  }
  if (is_ping) serve_ping(control);
  else serve_stream(control, &options, receives);
  printf("{\"cpuSeconds\":%.6f}\n", cpu_seconds() - before);
  return 0;
}
