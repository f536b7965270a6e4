/* The devices of the machine: addresses, links, presence. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

struct adapter adapters[MAX_ADAPTERS];
unsigned adapterCount;

static struct adapter *find(const char *name) {
  for (unsigned i = 0; i < adapterCount; i++) {
    if (strcmp(adapters[i].verbs.name, name) == 0) return &adapters[i];
  }
  return NULL;
}

/* Link-local and EUI-64, as the GID that every RoCE port has from the start. */
static union ibv_gid default_gid(const struct adapter *adapter, unsigned port) {
  union ibv_gid gid = {.raw = {0xfe, 0x80}};
  uint64_t id = (adapter->guid ^ (1ull << 57)) + port;
  for (int i = 0; i < 8; i++) gid.raw[8 + i] = (uint8_t)(id >> (56 - 8 * i));
  return gid;
}

static void set_both_types(struct port *port, unsigned index, union ibv_gid gid) {
  port->gids[index] = (struct gidEntry){gid, IBV_GID_TYPE_ROCE_V1};
  port->gids[index + 1] = (struct gidEntry){gid, IBV_GID_TYPE_ROCE_V2};
}

static void reset(struct adapter *adapter, uint8_t host) {
  adapter->present = true;
  adapter->features = FAKE_VERBS_ALL_FEATURES;
  memset(adapter->ports, 0, sizeof(adapter->ports));
  for (unsigned i = 0; i < adapter->portCount; i++) {
    struct port *port = &adapter->ports[i];
    port->up = true;
    set_both_types(port, 0, default_gid(adapter, i));
    if (host == 0 || i > 0) continue;
    const union ibv_gid v4 = {.raw = {[10] = 0xff, 0xff, 198, 51, 100, host}};
    const union ibv_gid v6 = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = host}};
    set_both_types(port, 2, v4);
    set_both_types(port, 4, v6);
  }
}

static void add(const char *name, unsigned ports) {
  unsigned i = adapterCount++;
  struct adapter *adapter = &adapters[i];
  struct ibv_device *verbs = &adapter->verbs;
  verbs->node_type = IBV_NODE_CA;
  verbs->transport_type = IBV_TRANSPORT_IB;
  snprintf(verbs->name, sizeof(verbs->name), "%s", name);
  snprintf(verbs->dev_name, sizeof(verbs->dev_name), "uverbs%u", i);
  snprintf(verbs->dev_path, sizeof(verbs->dev_path), "/sys/class/infiniband_verbs/uverbs%u", i);
  snprintf(verbs->ibdev_path, sizeof(verbs->ibdev_path), "/sys/class/infiniband/%s", name);
  adapter->guid = 0x020000fffe000000ull + ((uint64_t)(i + 1) << 8);
  adapter->random = 0x9e3779b9u * (i + 1);
  adapter->portCount = (uint8_t)ports;
}

void adapters_init(void) {
  if (adapterCount > 0) return;
  for (uint8_t i = 0; i < 2; i++) {
    char name[8];
    snprintf(name, sizeof(name), "fake%u", i);
    add(name, 1);
    reset(&adapters[i], i + 1u);
  }
}

int fake_verbs_add_device(const char *name, unsigned ports) {
  int error = 0;
  pthread_mutex_lock(&fakeLock);
  adapters_init();
  struct adapter *known = find(name);
  if (known && !known->present && known->portCount == ports) {
    reset(known, 0);
  } else if (ports < 1 || ports > MAX_PORTS || strlen(name) >= sizeof(adapters[0].verbs.name)) {
    error = EINVAL;
  } else if (known) {
    error = EEXIST;
  } else if (adapterCount == MAX_ADAPTERS) {
    error = ENOSPC;
  } else {
    add(name, ports);
    reset(&adapters[adapterCount - 1], 0);
  }
  pthread_mutex_unlock(&fakeLock);
  return error;
}

/* Locks, and finds the device; unlocks when there is none. */
static struct adapter *lock_device(const char *name) {
  pthread_mutex_lock(&fakeLock);
  adapters_init();
  struct adapter *adapter = find(name);
  if (!adapter) pthread_mutex_unlock(&fakeLock);
  return adapter;
}

int fake_verbs_remove_device(const char *name, int flush) {
  struct adapter *adapter = lock_device(name);
  if (!adapter) return ENODEV;
  for (unsigned i = 0; flush && i < MAX_QPS; i++) {
    if (adapter->qps[i]) qp_fail(adapter->qps[i]);
  }
  adapter->present = false;
  for (struct context *context = contexts; context; context = context->next) {
    if (context->adapter != adapter) continue;
    raise_event(context, IBV_EVENT_DEVICE_FATAL, (struct ibv_async_event){0});
  }
  wake_waiting();
  kick();
  pthread_mutex_unlock(&fakeLock);
  return 0;
}

int fake_verbs_restore_device(const char *name) {
  struct adapter *adapter = lock_device(name);
  if (!adapter) return ENODEV;
  adapter->present = true;
  pthread_mutex_unlock(&fakeLock);
  return 0;
}

void fake_verbs_restore(void) {
  pthread_mutex_lock(&fakeLock);
  adapters_init();
  for (unsigned i = 0; i < adapterCount; i++) {
    reset(&adapters[i], i < 2 ? (uint8_t)(i + 1) : 0);
    adapters[i].present = i < 2;
  }
  wake_waiting();
  kick();
  pthread_mutex_unlock(&fakeLock);
}

int fake_verbs_set_link(const char *name, unsigned port, int up) {
  struct adapter *adapter = lock_device(name);
  if (!adapter) return ENODEV;
  bool valid = port >= 1 && port <= adapter->portCount;
  if (valid && adapter->ports[port - 1].up != (up != 0)) {
    adapter->ports[port - 1].up = up != 0;
    raise_port(adapter, port, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    wake_waiting();
    kick();
  }
  pthread_mutex_unlock(&fakeLock);
  return valid ? 0 : EINVAL;
}

int fake_verbs_set_gid(const char *name, unsigned port, unsigned index, const uint8_t *gid,
                       unsigned type) {
  struct adapter *adapter = lock_device(name);
  if (!adapter) return ENODEV;
  bool valid = port >= 1 && port <= adapter->portCount && index < MAX_GIDS &&
               type <= IBV_GID_TYPE_ROCE_V2;
  if (valid) {
    struct gidEntry *entry = &adapter->ports[port - 1].gids[index];
    *entry = (struct gidEntry){.type = type};
    if (gid) memcpy(entry->gid.raw, gid, sizeof(entry->gid.raw));
    raise_port(adapter, port, IBV_EVENT_GID_CHANGE);
  }
  pthread_mutex_unlock(&fakeLock);
  return valid ? 0 : EINVAL;
}

int fake_verbs_set_features(const char *name, unsigned features) {
  struct adapter *adapter = lock_device(name);
  if (!adapter) return ENODEV;
  adapter->features = features & FAKE_VERBS_ALL_FEATURES;
  pthread_mutex_unlock(&fakeLock);
  return 0;
}

static bool is_zero(const union ibv_gid *gid) {
  return gid->global.subnet_prefix == 0 && gid->global.interface_id == 0;
}

const struct gidEntry *gid_at(struct adapter *adapter, unsigned port, unsigned index) {
  if (port < 1 || port > adapter->portCount || index >= MAX_GIDS) return NULL;
  const struct gidEntry *entry = &adapter->ports[port - 1].gids[index];
  return is_zero(&entry->gid) ? NULL : entry;
}

/* Where an address is: device, and the place in its table. */
static struct adapter *locate(const union ibv_gid *gid, unsigned *port, unsigned *index) {
  for (unsigned a = 0; a < adapterCount && !is_zero(gid); a++) {
    for (*port = 0; *port < adapters[a].portCount; (*port)++) {
      for (*index = 0; *index < MAX_GIDS; (*index)++) {
        const struct gidEntry *entry = &adapters[a].ports[*port].gids[*index];
        if (entry->type != IBV_GID_TYPE_ROCE_V2) continue;
        if (memcmp(&entry->gid, gid, sizeof(*gid)) == 0) return &adapters[a];
      }
    }
  }
  return NULL;
}

/* The device that hears packets to this address now. */
struct adapter *find_gid(const union ibv_gid *gid) {
  unsigned port, index;
  struct adapter *adapter = locate(gid, &port, &index);
  return adapter && adapter->present && adapter->ports[port].up ? adapter : NULL;
}

/* IPv6 multicast, and IPv4 multicast as an address mapped to IPv6. */
bool is_multicast(const union ibv_gid *gid) {
  static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
  if (gid->raw[0] == 0xff) return true;
  return memcmp(gid->raw, mapped, sizeof(mapped)) == 0 && gid->raw[12] >> 4 == 0xe;
}

struct adapter *route(struct adapter *from, const struct ibv_ah_attr *to) {
  if (!from->present) return NULL;
  unsigned port = to->port_num ? to->port_num : 1;
  if (port > from->portCount || !from->ports[port - 1].up) return NULL;
  /* Without an address: to itself, which is what tests of one device say. */
  if (!to->is_global || is_zero(&to->grh.dgid)) return from;
  if (!gid_at(from, port, to->grh.sgid_index)) return NULL;
  return find_gid(&to->grh.dgid);
}

int fake_verbs_find(const uint8_t gid[16], const char **device, unsigned *port, unsigned *index) {
  union ibv_gid wanted;
  memcpy(wanted.raw, gid, sizeof(wanted.raw));
  pthread_mutex_lock(&fakeLock);
  adapters_init();
  struct adapter *adapter = locate(&wanted, port, index);
  if (adapter) *device = adapter->verbs.name;
  pthread_mutex_unlock(&fakeLock);
  if (!adapter || !adapter->present) return ENODEV;
  (*port)++;
  return 0;
}

int fake_verbs_reaches(const char *device, unsigned port, const uint8_t gid[16]) {
  struct adapter *adapter = lock_device(device);
  if (!adapter) return 0;
  union ibv_gid wanted;
  memcpy(wanted.raw, gid, sizeof(wanted.raw));
  bool out = adapter->present && port >= 1 && port <= adapter->portCount &&
             adapter->ports[port - 1].up;
  bool arrives = out && find_gid(&wanted);
  pthread_mutex_unlock(&fakeLock);
  return arrives;
}
