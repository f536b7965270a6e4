// What the sides of a peer tell each other beside the library under test, over a TCP connection,
// and how they measure: clock, CPU time, percentiles, the JSON line.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Server: listens on a port of the system's choice, prints {"port":N}, takes one connection.
int control_listen(const char *local);
// Client.
int control_connect(const char *remote, int port);
void control_send(int fd, const void *data, size_t length);
void control_receive(int fd, void *data, size_t length);
// Whether something has come; does not wait.
bool control_ready(int fd);

// Ends this process when its parent does, and at the latest so long after it was meant to end: a
// side that spins for another that has gone would never stop.
void end_with_parent(double seconds);

double now_seconds(void);
// User and system time of this process.
double cpu_seconds(void);

// Half round trips of a ping-pong, warm-up left out.
struct laps {
  uint32_t *half_ns;
  size_t count;
  size_t capacity;
  size_t total;
  double since;
};
void laps_start(struct laps *laps);
void laps_add(struct laps *laps);
void laps_percentiles(struct laps *laps, double *p50_us, double *p99_us);

// Part of the time of a stream that is not counted, so that windows and pages are warm.
#define LEAD_IN 0.2

#ifdef __cplusplus
}
#endif
