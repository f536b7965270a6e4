/*
 * The part of the librdmacm ABI that connections need: same names, same values, same layout as the
 * public API documents them (rdma_cm(7)), so that what is compiled against this runs against the
 * real one. Pointers that we never follow are typed void. Sizes are those of 64-bit Linux.
 */
#ifndef RDMACM_ABI_H
#define RDMACM_ABI_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "abi/verbs_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rdma_cm_event_type {
  RDMA_CM_EVENT_ADDR_RESOLVED,
  RDMA_CM_EVENT_ADDR_ERROR,
  RDMA_CM_EVENT_ROUTE_RESOLVED,
  RDMA_CM_EVENT_ROUTE_ERROR,
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_CONNECT_RESPONSE,
  RDMA_CM_EVENT_CONNECT_ERROR,
  RDMA_CM_EVENT_UNREACHABLE,
  RDMA_CM_EVENT_REJECTED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_CM_EVENT_DISCONNECTED,
  RDMA_CM_EVENT_DEVICE_REMOVAL,
  RDMA_CM_EVENT_MULTICAST_JOIN,
  RDMA_CM_EVENT_MULTICAST_ERROR,
  RDMA_CM_EVENT_ADDR_CHANGE,
  RDMA_CM_EVENT_TIMEWAIT_EXIT,
};

enum rdma_port_space {
  RDMA_PS_IPOIB = 0x0002,
  RDMA_PS_TCP = 0x0106,
  RDMA_PS_UDP = 0x0111,
  RDMA_PS_IB = 0x013F,
};

/* The Q_Key of datagram services whose users choose none. */
#define RDMA_UDP_QKEY 0x01234567

enum { RDMA_OPTION_ID = 0, RDMA_OPTION_IB = 1 };
enum {
  RDMA_OPTION_ID_TOS = 0,
  RDMA_OPTION_ID_REUSEADDR = 1,
  RDMA_OPTION_ID_AFONLY = 2,
  RDMA_OPTION_ID_ACK_TIMEOUT = 3,
};
enum { RDMA_OPTION_IB_PATH = 1 };

struct rdma_event_channel {
  int fd;
};

/* A path as the subnet administrator would tell it; on RoCE the kernel makes it up. */
struct ibv_sa_path_rec {
  uint8_t dgid[16];
  uint8_t sgid[16];
  uint16_t dlid; /* big-endian, as slid, flow_label and pkey */
  uint16_t slid;
  int raw_traffic;
  uint32_t flow_label;
  uint8_t hop_limit;
  uint8_t traffic_class;
  int reversible;
  uint8_t numb_path;
  uint16_t pkey;
  uint8_t sl;
  uint8_t mtu_selector;
  uint8_t mtu;
  uint8_t rate_selector;
  uint8_t rate;
  uint8_t packet_life_time_selector;
  uint8_t packet_life_time;
  uint8_t preference;
};

/* A path as RDMA_OPTION_IB_PATH takes it; numbers are big-endian. */
struct ibv_path_data {
  uint32_t flags;
  uint32_t reserved;
  struct {
    uint64_t service_id;
    uint8_t dgid[16];
    uint8_t sgid[16];
    uint16_t dlid;
    uint16_t slid;
    uint32_t flowlabel_hoplimit;
    uint8_t tclass;
    uint8_t reversible_numpath;
    uint16_t pkey;
    uint16_t qosclass_sl;
    uint8_t mtu;
    uint8_t rate;
    uint8_t packetlifetime;
    uint8_t preference;
    uint8_t reserved[6];
  } path;
};

struct rdma_ib_addr {
  uint64_t sgid[2];
  uint64_t dgid[2];
  uint16_t pkey;
};

struct rdma_addr {
  union {
    struct sockaddr src_addr;
    struct sockaddr_in src_sin;
    struct sockaddr_in6 src_sin6;
    struct sockaddr_storage src_storage;
  };
  union {
    struct sockaddr dst_addr;
    struct sockaddr_in dst_sin;
    struct sockaddr_in6 dst_sin6;
    struct sockaddr_storage dst_storage;
  };
  union {
    struct rdma_ib_addr ibaddr;
  } addr;
};

struct rdma_route {
  struct rdma_addr addr;
  struct ibv_sa_path_rec *path_rec;
  int num_paths;
};

struct rdma_cm_id {
  struct ibv_context *verbs;
  struct rdma_event_channel *channel;
  void *context;
  struct ibv_qp *qp;
  struct rdma_route route;
  enum rdma_port_space ps;
  uint8_t port_num;
  struct rdma_cm_event *event;
  void *send_cq_channel;
  struct ibv_cq *send_cq;
  void *recv_cq_channel;
  struct ibv_cq *recv_cq;
  struct ibv_srq *srq;
  struct ibv_pd *pd;
  enum ibv_qp_type qp_type;
};

struct rdma_conn_param {
  const void *private_data;
  uint8_t private_data_len;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t flow_control;
  uint8_t retry_count;
  uint8_t rnr_retry_count;
  uint8_t srq;
  uint32_t qp_num;
};

struct rdma_ud_param {
  const void *private_data;
  uint8_t private_data_len;
  struct ibv_ah_attr ah_attr;
  uint32_t qp_num;
  uint32_t qkey;
};

struct rdma_cm_event {
  struct rdma_cm_id *id;
  struct rdma_cm_id *listen_id;
  enum rdma_cm_event_type event;
  int status;
  union {
    struct rdma_conn_param conn;
    struct rdma_ud_param ud;
  } param;
};

/* Each fails by -1 and errno, or by NULL and errno. */
struct rdma_event_channel *rdma_create_event_channel(void);
void rdma_destroy_event_channel(struct rdma_event_channel *channel);
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps);
/* Waits until every event of it has been acknowledged. */
int rdma_destroy_id(struct rdma_cm_id *id);
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms);
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);
int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
int rdma_establish(struct rdma_cm_id *id);
int rdma_listen(struct rdma_cm_id *id, int backlog);
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int rdma_disconnect(struct rdma_cm_id *id);
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int rdma_ack_cm_event(struct rdma_cm_event *event);

VERBS_ABI_CHECK(sizeof(struct ibv_sa_path_rec) == 64);
VERBS_ABI_CHECK(sizeof(struct ibv_path_data) == 72);
VERBS_ABI_CHECK(sizeof(struct rdma_addr) == 296);
VERBS_ABI_CHECK(offsetof(struct rdma_cm_id, route) == 32);
VERBS_ABI_CHECK(offsetof(struct rdma_cm_id, ps) == 344);
VERBS_ABI_CHECK(offsetof(struct rdma_cm_id, event) == 352);
VERBS_ABI_CHECK(offsetof(struct rdma_cm_id, qp_type) == 408);
VERBS_ABI_CHECK(sizeof(struct rdma_conn_param) == 24);
VERBS_ABI_CHECK(offsetof(struct rdma_ud_param, qp_num) == 48);
VERBS_ABI_CHECK(sizeof(struct rdma_cm_event) == 80);

#ifdef __cplusplus
}
#endif
#endif
