/*
 * A relay between two TUN devices, which keeps each packet for a time: a network with a delay.
 *
 *   relay NAMESPACE NAMESPACE DEVICE DELAY_US
 *
 * Prints a line when both devices are there. Ends with the process that has started it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PACKET_BYTES 1536
/* Packets in flight in one direction; further ones wait in the device, whose queue is short. */
#define MOST_PACKETS 32768
#define BURST 64

struct packet {
  uint64_t due_ns;
  ssize_t length;
  char bytes[PACKET_BYTES];
};

struct direction {
  int from, to;
  struct packet *packets;
  uint64_t first, end;
};

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void fail(const char *what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int device_in(const char *namespace, const char *name) {
  int fd = open(namespace, O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) fail(namespace);
  close(fd);
  int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (tun < 0) fail("/dev/net/tun");
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(tun, TUNSETIFF, &request) < 0) fail(name);
  return tun;
}

static void take(struct direction *way, uint64_t delay_ns) {
  for (int i = 0; i < BURST && way->end - way->first < MOST_PACKETS; i++) {
    struct packet *packet = &way->packets[way->end % MOST_PACKETS];
    packet->length = read(way->from, packet->bytes, PACKET_BYTES);
    if (packet->length <= 0) return;
    packet->due_ns = now_ns() + delay_ns;
    way->end++;
  }
}

static void deliver(struct direction *way, uint64_t now) {
  while (way->first < way->end) {
    struct packet *packet = &way->packets[way->first % MOST_PACKETS];
    if (packet->due_ns > now) return;
    if (write(way->to, packet->bytes, packet->length) < 0 && errno == EAGAIN) return;
    way->first++;
  }
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  uint64_t delay_ns = strtoull(argv[4], NULL, 10) * 1000;
  int a = device_in(argv[1], argv[3]), b = device_in(argv[2], argv[3]);
  struct direction ways[] = {{.from = a, .to = b}, {.from = b, .to = a}};
  for (int i = 0; i < 2; i++) {
    ways[i].packets = calloc(MOST_PACKETS, sizeof(struct packet));
    if (ways[i].packets == NULL) fail("memory");
  }
  puts("ready");
  fflush(stdout);
  for (;;) {
    uint64_t now = now_ns(), next = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
      deliver(&ways[i], now);
      uint64_t due = ways[i].packets[ways[i].first % MOST_PACKETS].due_ns;
      if (ways[i].first < ways[i].end && due < next) next = due;
    }
    uint64_t wait = next > now ? next - now : 0;
    struct timespec time = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
    struct pollfd fds[] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    if (ppoll(fds, 2, next == UINT64_MAX ? NULL : &time, NULL) < 0 && errno != EINTR) fail("ppoll");
    for (int i = 0; i < 2; i++) take(&ways[i], delay_ns);
  }
}
