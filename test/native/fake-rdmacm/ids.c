/* Identifiers: life, addresses, routes, options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct id *ids;
int switches[FAKE_SWITCHES];
static uint16_t nextPort = 32768;
static uint32_t nextPsn = 0x100;

enum { DEFAULT_TIMEOUT = 19 };

void fake_rdmacm_set(enum fake_rdmacm_switch which, int value) {
  switches[which] = value;
  if (which == FAKE_IWARP) set_transport(value != 0);
}

void fake_rdmacm_reset(void) {
  memset(switches, 0, sizeof(switches));
  clear_injections();
  reset_addresses();
}

static __attribute__((constructor)) void start(void) { reset_addresses(); }

bool is_datagram(const struct id *id) { return id->verbs.ps == RDMA_PS_UDP; }

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
                          void *context, enum rdma_port_space ps) {
  FAIL_IF_INJECTED();
  if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB) return fail(EINVAL);
  struct id *id = calloc(1, sizeof(*id));
  if (!id) return fail(ENOMEM);
  id->verbs.channel = channel;
  id->verbs.context = context;
  id->verbs.ps = ps;
  id->verbs.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
  id->accepted = true;
  id->timeout = DEFAULT_TIMEOUT;
  id->mtu = IBV_MTU_4096;
  pthread_mutex_lock(&lock);
  id->psn = nextPsn++;
  id->next = ids;
  ids = id;
  pthread_mutex_unlock(&lock);
  *out = &id->verbs;
  return 0;
}

static void unlist(const struct id *id) {
  struct id **at = &ids;
  while (*at != id) at = &(*at)->next;
  *at = id->next;
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *verbs) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  pthread_mutex_lock(&lock);
  if (id->unacked > 0) {
    fprintf(stderr, "rdma_destroy_id would wait for ever: %u events are not acknowledged\n",
            id->unacked);
    abort();
  }
  leave(id);
  drop_events(id);
  unlist(id);
  pthread_mutex_unlock(&lock);
  free(verbs->route.path_rec);
  free(id);
  return 0;
}

/* Their memory is lost, as it is with the real one. */
void end_ids_of(struct rdma_event_channel *channel) {
  for (struct id *id = ids; id;) {
    struct id *next = id->next;
    if (id->verbs.channel == channel) {
      leave(id);
      next = ids; /* leaving may have taken others away */
      unlist(id);
      if (next == id) next = id->next;
    }
    id = next;
  }
}

EXPORT int rdma_migrate_id(struct rdma_cm_id *verbs, struct rdma_event_channel *channel) {
  FAIL_IF_INJECTED();
  pthread_mutex_lock(&lock);
  verbs->channel = channel;
  pthread_mutex_unlock(&lock);
  return 0;
}

/* 0, or why that port cannot be had. */
static int portError(const struct id *id, const struct sockaddr *address) {
  for (const struct id *other = ids; other; other = other->next) {
    const struct sockaddr *theirs = &other->verbs.route.addr.src_addr;
    if (other == id || other->verbs.ps != id->verbs.ps || !other->ownsPort) continue;
    if (port_of(theirs) != port_of(address)) continue;
    if (is_wildcard(theirs) || is_wildcard(address)) return EADDRNOTAVAIL;
    if (same_address(theirs, address)) return EADDRINUSE;
  }
  return 0;
}

static int bindLocked(struct id *id, const struct sockaddr *address) {
  struct rdma_cm_id *verbs = &id->verbs;
  if (id->state != IDLE || address_length(address) == 0 || needs_scope(address)) return EINVAL;
  struct ibv_context *device = NULL;
  uint8_t gid[16];
  if (!is_wildcard(address) && !find_device(address, &device, gid)) return EADDRNOTAVAIL;
  struct sockaddr_storage chosen = {0};
  memcpy(&chosen, address, address_length(address));
  if (port_of(address) == 0) {
    do set_port((struct sockaddr *)&chosen, nextPort = nextPort < 61000 ? nextPort + 1 : 32768);
    while (portError(id, (struct sockaddr *)&chosen));
  }
  int error = portError(id, (struct sockaddr *)&chosen);
  if (error) return error;
  verbs->route.addr.src_storage = chosen;
  id->ownsPort = true;
  if (device) {
    verbs->verbs = device;
    verbs->port_num = 1;
    memcpy(verbs->route.addr.addr.ibaddr.sgid, gid, 16);
  }
  id->state = BOUND;
  return 0;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *verbs, struct sockaddr *address) {
  FAIL_IF_INJECTED();
  pthread_mutex_lock(&lock);
  int error = bindLocked((struct id *)verbs, address);
  pthread_mutex_unlock(&lock);
  return error ? fail(error) : 0;
}

/* Without a source, the first local address of that family leads everywhere. */
static int defaultSource(const struct sockaddr *destination, struct sockaddr_storage *out) {
  struct ibv_context *device;
  uint8_t gid[16];
  if (find_device(destination, &device, gid)) {
    memcpy(out, destination, address_length(destination));
    set_port((struct sockaddr *)out, 0);
    return 0;
  }
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0001)};
  if (destination->sa_family != AF_INET) return ENETUNREACH;
  memcpy(out, &in, sizeof(in));
  return 0;
}

static int resolveLocked(struct id *id, const struct sockaddr *source,
                         const struct sockaddr *destination) {
  if (address_length(destination) == 0 || needs_scope(destination)) return EINVAL;
  if (id->state == IDLE) {
    struct sockaddr_storage chosen = {0};
    int error = 0;
    if (source) memcpy(&chosen, source, address_length(source));
    else error = defaultSource(destination, &chosen);
    if (!error) error = bindLocked(id, (struct sockaddr *)&chosen);
    if (error) return error;
  }
  if (id->state != BOUND) return EINVAL;
  memcpy(&id->verbs.route.addr.dst_storage, destination, address_length(destination));
  id->state = ADDR_QUERY;
  if (switches[FAKE_ADDR_SILENT]) return 0;
  int status = switches[FAKE_ADDR_STATUS];
  id->state = status ? BOUND : ADDR_RESOLVED;
  post(id, status ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, status);
  return 0;
}

EXPORT int rdma_resolve_addr(struct rdma_cm_id *verbs, struct sockaddr *source,
                             struct sockaddr *destination, int timeoutMs) {
  FAIL_IF_INJECTED();
  if (timeoutMs <= 0) return fail(EINVAL);
  pthread_mutex_lock(&lock);
  int error = resolveLocked((struct id *)verbs, source, destination);
  pthread_mutex_unlock(&lock);
  return error ? fail(error) : 0;
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *verbs, int timeoutMs) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  if (id->state != ADDR_RESOLVED || timeoutMs <= 0) return fail(EINVAL);
  pthread_mutex_lock(&lock);
  int status = switches[FAKE_ROUTE_STATUS];
  if (!status) id->state = ROUTE_RESOLVED;
  post(id, status ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED, status);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int setPath(struct id *id, const struct ibv_path_data *data, size_t length) {
  if (length != sizeof(*data) || id->state != ADDR_RESOLVED) return EINVAL;
  id->mtu = data->path.mtu & 0x3f;
  id->state = ROUTE_RESOLVED;
  post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return 0;
}

EXPORT int rdma_set_option(struct rdma_cm_id *verbs, int level, int name, void *value,
                           size_t length) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  int error = 0;
  pthread_mutex_lock(&lock);
  if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH) error = setPath(id, value, length);
  else if (level != RDMA_OPTION_ID || length == 0) error = EINVAL;
  else if (name == RDMA_OPTION_ID_ACK_TIMEOUT) id->timeout = *(uint8_t *)value;
  pthread_mutex_unlock(&lock);
  return error ? fail(error) : 0;
}
