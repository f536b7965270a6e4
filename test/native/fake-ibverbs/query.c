/* What a device says about itself. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static unsigned capabilities(const struct adapter *adapter) {
  unsigned features = adapter->features;
  unsigned flags = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_RC_RNR_NAK_GEN |
                   IBV_DEVICE_MEM_MGT_EXTENSIONS;
  if (features & FAKE_VERBS_XRC) flags |= IBV_DEVICE_XRC;
  if (features & FAKE_VERBS_MW_TYPE_1) flags |= IBV_DEVICE_MEM_WINDOW;
  if (features & FAKE_VERBS_MW_TYPE_2B) flags |= IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  if (features & FAKE_VERBS_SRQ_RESIZE) flags |= IBV_DEVICE_SRQ_RESIZE;
  return flags;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
  int error = refused(context, "ibv_query_device");
  if (error) return error;
  const struct adapter *adapter = adapterOf(context);
  *attr = (struct ibv_device_attr){
      .node_guid = htobe64(adapter->guid),
      .sys_image_guid = htobe64(adapter->guid),
      .max_mr_size = UINT64_MAX,
      .page_size_cap = UINT64_MAX - (PAGE - 1),
      .vendor_id = 0xffffff,
      .max_qp = MAX_QPS,
      .max_qp_wr = MAX_WR,
      .device_cap_flags = capabilities(adapter),
      .max_sge = MAX_SGE,
      .max_sge_rd = MAX_SGE,
      .max_cq = 1 << 16,
      .max_cqe = MAX_CQE,
      .max_mr = MAX_KEYS - 1,
      .max_pd = 1 << 16,
      .max_qp_rd_atom = MAX_READS,
      .max_res_rd_atom = MAX_READS * MAX_QPS,
      .max_qp_init_rd_atom = MAX_READS,
      .atomic_cap = IBV_ATOMIC_HCA,
      .max_mw = MAX_KEYS - 1,
      .max_mcast_grp = MAX_MEMBERS,
      .max_mcast_qp_attach = MAX_MEMBERS,
      .max_total_mcast_qp_attach = MAX_MEMBERS,
      .max_ah = 1 << 16,
      .max_srq = MAX_SRQS - 1,
      .max_srq_wr = MAX_WR,
      .max_srq_sge = MAX_SGE,
      .max_pkeys = 1,
      .local_ca_ack_delay = 15,
      .phys_port_cnt = adapter->portCount,
  };
  snprintf(attr->fw_ver, sizeof(attr->fw_ver), "0.0.0");
  return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid) {
  int error = refused(context, "ibv_query_gid");
  struct adapter *adapter = adapterOf(context);
  bool valid = port >= 1 && port <= adapter->portCount && index >= 0 && index < MAX_GIDS;
  if (error || !valid) {
    tell_errno(error ? error : EINVAL);
    return -1;
  }
  pthread_mutex_lock(&fakeLock);
  *gid = adapter->ports[port - 1].gids[index].gid; /* an empty one is zero */
  pthread_mutex_unlock(&fakeLock);
  return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey) {
  int error = refused(context, "ibv_query_pkey");
  if (error || port < 1 || port > adapterOf(context)->portCount || index != 0) {
    tell_errno(error ? error : EINVAL);
    return -1;
  }
  *pkey = htons(0xffff);
  return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, uint16_t pkey) {
  bool valid = port >= 1 && port <= adapterOf(context)->portCount && pkey == htons(0xffff);
  if (!valid) errno = EINVAL;
  return valid ? 0 : -1;
}

static struct ibv_gid_entry entry_of(const struct gidEntry *entry, uint32_t port, uint32_t index) {
  return (struct ibv_gid_entry){entry->gid, index, port, entry->type, 1};
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *out, uint32_t flags, size_t size) {
  int error = refused(context, "_ibv_query_gid_ex");
  struct adapter *adapter = adapterOf(context);
  if (!error && !(adapter->features & FAKE_VERBS_GID_TYPES)) error = EOPNOTSUPP;
  if (!error && (flags != 0 || size < sizeof(*out))) error = EINVAL;
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  const struct gidEntry *entry = gid_at(adapter, port, index);
  if (entry) *out = entry_of(entry, port, index);
  pthread_mutex_unlock(&fakeLock);
  return entry ? 0 : ENODATA;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t max, uint32_t flags, size_t size) {
  int error = refused(context, "_ibv_query_gid_table");
  struct adapter *adapter = adapterOf(context);
  if (!error && !(adapter->features & FAKE_VERBS_GID_TYPES)) error = EOPNOTSUPP;
  if (!error && (flags != 0 || size < sizeof(*entries))) error = EINVAL;
  if (error) return error < 0 ? error : -error;
  size_t found = 0;
  pthread_mutex_lock(&fakeLock);
  for (uint32_t port = 1; port <= adapter->portCount; port++) {
    for (uint32_t index = 0; index < MAX_GIDS && found < max; index++) {
      const struct gidEntry *entry = gid_at(adapter, port, index);
      if (!entry) continue;
      memset((char *)entries + found * size, 0, size);
      *(struct ibv_gid_entry *)((char *)entries + found++ * size) = entry_of(entry, port, index);
    }
  }
  pthread_mutex_unlock(&fakeLock);
  return (ssize_t)found;
}

const char *ibv_wc_status_str(enum ibv_wc_status status) {
  static const char *const names[] = {
      "success", "local length error", "local QP operation error",
      "local EE context operation error", "local protection error",
      "Work Request Flushed Error", "memory management operation error", "bad response error",
      "local access error", "remote invalid request error", "remote access error",
      "remote operation error", "transport retry counter exceeded", "RNR retry counter exceeded",
  };
  return (size_t)status < sizeof(names) / sizeof(names[0]) ? names[status] : "unknown";
}

const char *ibv_event_type_str(enum ibv_event_type event) {
  static const char *const names[] = {
      "CQ error", "local work queue catastrophic error", "invalid request local work queue error",
      "local access violation work queue error", "communication established",
      "send queue drained", "path migrated", "path migration request error",
      "local catastrophic error", "port active", "port error", "LID change", "P_Key change",
      "SM change", "SRQ catastrophic error", "SRQ limit reached", "last WQE reached",
      "client reregistration", "GID table change",
  };
  return (size_t)event < sizeof(names) / sizeof(names[0]) ? names[event] : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state) {
  static const char *const names[] = {"no state change", "down", "init", "armed", "active"};
  return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "invalid state";
}

const char *ibv_node_type_str(int type) {
  return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}
