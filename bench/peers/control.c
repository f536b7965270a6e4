#include "control.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static struct sockaddr_in address_of(const char *ip, int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)port);
  if (inet_pton(AF_INET, ip, &address.sin_addr) != 1) fail(ip);
  return address;
}

int control_listen(const char *local) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = address_of(local, 0);
  socklen_t length = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0) {
    fail(local);
  }
  if (listen(listener, 1) != 0) fail("listen");
  if (getsockname(listener, (struct sockaddr *)&address, &length) != 0) fail("getsockname");
  printf("{\"port\":%d}\n", ntohs(address.sin_port));
  fflush(stdout);
  const int fd = accept(listener, NULL, NULL);
  if (fd < 0) fail("accept");
  close(listener);
  return fd;
}

int control_connect(const char *remote, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const struct sockaddr_in address = address_of(remote, port);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) fail(remote);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

void control_send(int fd, const void *data, size_t length) {
  if (send(fd, data, length, MSG_NOSIGNAL) != (ssize_t)length) fail("control connection");
}

void control_receive(int fd, void *data, size_t length) {
  if (recv(fd, data, length, MSG_WAITALL) != (ssize_t)length) {
    fprintf(stderr, "the other side has gone\n");
    exit(1);
  }
}

bool control_ready(int fd) {
  struct pollfd poller = {fd, POLLIN, 0};
  return poll(&poller, 1, 0) > 0;
}

void end_with_parent(double seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm((unsigned)seconds + 10);
}

double now_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

#define WARM_UP_LAPS 200

void laps_start(struct laps *laps) {
  laps->capacity = 1 << 20;
  laps->half_ns = (uint32_t *)calloc(laps->capacity, sizeof *laps->half_ns);
  if (laps->half_ns == NULL) fail("memory");
  laps->since = now_seconds();
}

void laps_add(struct laps *laps) {
  const double now = now_seconds();
  if (++laps->total > WARM_UP_LAPS && laps->count < laps->capacity) {
    laps->half_ns[laps->count++] = (uint32_t)((now - laps->since) * 5e8);
  }
  laps->since = now;
}

static int ascending(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

void laps_percentiles(struct laps *laps, double *p50_us, double *p99_us) {
  qsort(laps->half_ns, laps->count, sizeof *laps->half_ns, ascending);
  *p50_us = laps->count == 0 ? 0 : laps->half_ns[laps->count / 2] / 1e3;
  *p99_us = laps->count == 0 ? 0 : laps->half_ns[laps->count * 99 / 100] / 1e3;
}
