/* Local addresses, and the devices that they belong to. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

enum { MAX_DEVICES = 8, MAX_ADDRESSES = 32, TRANSPORT_IB = 0, TRANSPORT_IWARP = 1 };

/* The start of the public struct ibv_device. */
struct deviceStart {
  void *operations[2];
  int nodeType;
  int transportType;
  char name[64];
};

static struct deviceStart devices[MAX_DEVICES];
static struct ibv_context contexts[MAX_DEVICES];
static unsigned deviceCount;

static struct {
  struct sockaddr_storage address;
  unsigned device;
} locals[MAX_ADDRESSES];
static unsigned localCount;

const char *device_name(const struct ibv_context *context) {
  return ((const struct deviceStart *)context->device)->name;
}

size_t address_length(const struct sockaddr *address) {
  if (address->sa_family == AF_INET) return sizeof(struct sockaddr_in);
  return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

bool same_address(const struct sockaddr *a, const struct sockaddr *b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)b)->sin_addr.s_addr;
  }
  return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

bool is_wildcard(const struct sockaddr *address) {
  struct sockaddr_storage any = {.ss_family = address->sa_family};
  return same_address(address, (struct sockaddr *)&any);
}

bool needs_scope(const struct sockaddr *address) {
  if (address->sa_family != AF_INET6) return false;
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
  return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) && in6->sin6_scope_id == 0;
}

uint16_t port_of(const struct sockaddr *address) {
  return ntohs(((const struct sockaddr_in *)address)->sin_port); /* the same place in both */
}

void set_port(struct sockaddr *address, uint16_t port) {
  ((struct sockaddr_in *)address)->sin_port = htons(port);
}

static void gidOf(const struct sockaddr *address, uint8_t gid[16]) {
  if (address->sa_family == AF_INET6) {
    memcpy(gid, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    return;
  }
  memset(gid, 0, 10);
  memset(gid + 10, 0xff, 2);
  memcpy(gid + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
}

bool find_device(const struct sockaddr *address, struct ibv_context **device, uint8_t gid[16]) {
  for (unsigned i = 0; i < localCount; i++) {
    if (!same_address(address, (struct sockaddr *)&locals[i].address)) continue;
    *device = &contexts[locals[i].device];
    gidOf(address, gid);
    return true;
  }
  return false;
}

static unsigned deviceNamed(const char *name) {
  unsigned i = 0;
  while (i < deviceCount && strcmp(devices[i].name, name) != 0) i++;
  if (i < deviceCount || i == MAX_DEVICES) return i;
  snprintf(devices[i].name, sizeof(devices[i].name), "%s", name);
  devices[i].transportType = TRANSPORT_IB;
  contexts[i].device = (struct ibv_device *)&devices[i];
  deviceCount++;
  return i;
}

int fake_rdmacm_add_address(const struct sockaddr *address, const char *device) {
  unsigned i = deviceNamed(device);
  if (i == MAX_DEVICES || localCount == MAX_ADDRESSES) return ENOMEM;
  memcpy(&locals[localCount].address, address, address_length(address));
  locals[localCount++].device = i;
  return 0;
}

void set_transport(bool iwarp) {
  for (unsigned i = 0; i < deviceCount; i++) {
    devices[i].transportType = iwarp ? TRANSPORT_IWARP : TRANSPORT_IB;
  }
}

static void addText(const char *text) {
  struct sockaddr_in in = {.sin_family = AF_INET};
  struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
  bool isIpv4 = inet_pton(AF_INET, text, &in.sin_addr) == 1;
  if (!isIpv4) inet_pton(AF_INET6, text, &in6.sin6_addr);
  fake_rdmacm_add_address(isIpv4 ? (struct sockaddr *)&in : (struct sockaddr *)&in6, "fake0");
}

void reset_addresses(void) {
  localCount = deviceCount = 0;
  addText("10.77.0.1");
  addText("10.77.0.2");
  addText("fd77::1");
  addText("fe80::1");
}
