// libfabric: messages and RMA on reliable datagram endpoints. The variant is the provider's name:
// net, tcp;ofi_rxm, udp;ofi_rxd or shm.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

#define API FI_VERSION(1, 9)

struct description {
  uint64_t address, key;
  uint32_t name_length;
  uint8_t name[256];
};

// What an operation is known by until it is complete; freed for the next one then.
struct operation {
  struct fi_context2 context;
  bool is_receive;
  struct operation *next;
};

static struct fi_info *info;
static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fid_cq *queue;
static struct fid_av *addresses;
static struct fid_mr *region;
static uint8_t *memory;
static size_t bytes;
static fi_addr_t other;
static struct description remote;
static struct operation *idle;

static void check(const char *what, ssize_t status) {
  if (status != 0) peer_fail(what, fi_strerror((int)-status));
}

// The library's own name is the process id, by which a process that was killed has left its memory
// behind: the next one of that id would be refused as busy.
static void name_memory(char *name, size_t length) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(name, length, "dapl-bench-%d-%lld-%ld", getpid(), (long long)now.tv_sec, now.tv_nsec);
}

static void fabric_open(const struct peer_options *options, uint8_t *room, int slots) {
  memory = room;
  bytes = options->bytes;
  struct fi_info *hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  // Shared memory is found by names, not by addresses of the network.
  const bool is_shm = strcmp(options->variant, "shm") == 0;
  hints->addr_format = is_shm ? FI_ADDR_STR : FI_SOCKADDR_IN;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->fabric_attr->prov_name = strdup(options->variant);
  char name[64];
  if (is_shm) name_memory(name, sizeof name);
  const char *node = is_shm ? name : options->local;
  check("fi_getinfo", fi_getinfo(API, node, NULL, FI_SOURCE, hints, &info));
  struct fid_fabric *fabric;
  check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
  check("fi_domain", fi_domain(fabric, info, &domain, NULL));
  struct fi_cq_attr cq = {.size = 4096, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
  check("fi_cq_open", fi_cq_open(domain, &cq, &queue, NULL));
  struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = 4};
  check("fi_av_open", fi_av_open(domain, &av, &addresses, NULL));
  check("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
  check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
  check("fi_ep_bind", fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
  check("fi_enable", fi_enable(endpoint));
  const uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  const size_t length = bytes * (size_t)slots;
  check("fi_mr_reg", fi_mr_reg(domain, memory, length, access, 0, 1, 0, &region, NULL));
  for (int i = 0; i < 4 * slots; i++) {
    struct operation *operation = calloc(1, sizeof *operation);
    operation->next = idle;
    idle = operation;
  }
}

static void fabric_describe(struct peer_name *own) {
  struct description description = {.name_length = sizeof description.name};
  size_t length = sizeof description.name;
  check("fi_getname", fi_getname(&endpoint->fid, description.name, &length));
  description.name_length = (uint32_t)length;
  description.key = fi_mr_key(region);
  const bool is_virtual = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  description.address = is_virtual ? (uint64_t)(uintptr_t)memory : 0;
  memcpy(own->bytes, &description, sizeof description);
  own->length = sizeof description;
}

static void fabric_connect(const struct peer_name *name) {
  memcpy(&remote, name->bytes, sizeof remote);
  if (fi_av_insert(addresses, remote.name, 1, &other, 0, NULL) != 1) {
    peer_fail("fi_av_insert", "refused");
  }
}

// Settles what a call that posts has answered.
static bool posted(const char *what, ssize_t status, bool is_receive) {
  if (status == -FI_EAGAIN) return false;
  check(what, status);
  struct operation *operation = idle;
  idle = operation->next;
  operation->is_receive = is_receive;
  return true;
}

// Both sides have mapped the other's memory: without a name it ends with them, however they end.
static void fabric_connected(void) {
  char name[sizeof remote.name];
  size_t length = sizeof name;
  check("fi_getname", fi_getname(&endpoint->fid, name, &length));
  const char *const is_shm = strstr(name, "fi_shm://");
  if (is_shm == name) shm_unlink(name + strlen("fi_shm://"));
}

static uint8_t *slot_of(int slot) { return memory + bytes * (size_t)slot; }

static bool fabric_send(int slot) {
  void *descriptor = fi_mr_desc(region);
  const ssize_t status = fi_send(endpoint, slot_of(slot), bytes, descriptor, other, idle);
  return posted("fi_send", status, false);
}

static bool fabric_receive(int slot) {
  void *descriptor = fi_mr_desc(region);
  const ssize_t status =
      fi_recv(endpoint, slot_of(slot), bytes, descriptor, FI_ADDR_UNSPEC, idle);
  return posted("fi_recv", status, true);
}

static bool fabric_write(int slot) {
  const uint64_t to = remote.address + bytes * (size_t)slot;
  const ssize_t status = fi_write(endpoint, slot_of(slot), bytes, fi_mr_desc(region), other, to,
                                  remote.key, idle);
  return posted("fi_write", status, false);
}

static bool read_bytes(int slot, size_t length) {
  const uint64_t from = remote.address + bytes * (size_t)slot;
  const ssize_t status = fi_read(endpoint, slot_of(slot), length, fi_mr_desc(region), other, from,
                                 remote.key, idle);
  return posted("fi_read", status, false);
}

static bool fabric_read(int slot) { return read_bytes(slot, bytes); }

static void fabric_poll(int *done, int *received) {
  struct fi_cq_entry entries[16];
  const ssize_t count = fi_cq_read(queue, entries, 16);
  if (count == -FI_EAGAIN) return;
  if (count < 0) {
    struct fi_cq_err_entry error = {0};
    fi_cq_readerr(queue, &error, 0);
    peer_fail("completion", fi_strerror(error.err));
  }
  for (ssize_t i = 0; i < count; i++) {
    struct operation *operation = entries[i].op_context;
    *(operation->is_receive ? received : done) += 1;
    operation->next = idle;
    idle = operation;
  }
}

// A read behind the writes is answered when they are in.
static void fabric_flush(void) {
  int done = 0, received = 0;
  while (!read_bytes(0, 8)) fabric_poll(&done, &received);
  while (done == 0) fabric_poll(&done, &received);
}

const struct peer_library peer_library = {
    .open = fabric_open,
    .describe = fabric_describe,
    .connect = fabric_connect,
    .connected = fabric_connected,
    .send = fabric_send,
    .receive = fabric_receive,
    .write = fabric_write,
    .read = fabric_read,
    .poll = fabric_poll,
    .flush = fabric_flush,
};
