// Queue pairs to where they can send: by hand, or by the connection manager.
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVE_TIMEOUT_MS = 5000 };

union ibv_gid gid_of(const char *ip) {
  union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
  if (inet_pton(AF_INET, ip, gid.raw + 12) == 1) return gid;
  if (inet_pton(AF_INET6, ip, gid.raw) != 1) die(ip);
  return gid;
}

struct ibv_ah_attr path_to(struct peer *peer, const char *ip) {
  struct ibv_ah_attr path = {.is_global = 1, .port_num = 1};
  path.grh.dgid = gid_of(ip);
  path.grh.sgid_index = (uint8_t)peer->gid_index;
  path.grh.hop_limit = 64;
  return path;
}

static enum ibv_mtu mtu_of(uint64_t bytes) {
  return bytes == 4096 ? IBV_MTU_4096 : bytes == 2048 ? IBV_MTU_2048 : IBV_MTU_1024;
}

/** As ibv_modify_qp, which returns what `refuse` looks for in errno. */
static int set(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
  errno = ibv_modify_qp(qp, attributes, mask);
  return errno;
}

/** For the timer of RNR NAKs, which the connection manager sets to 655 ms. */
static int set_rnr_timer(struct ibv_qp *qp, uint8_t timer) {
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = timer};
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

/**
 * connect <qp> <peer's ip> <peer's qpn> <send psn> <receive psn> <mtu> <access> <ack timeout>
 * <retries> <rnr retries> <rnr timer> <reads>: RC and UC.
 */
void do_connect(struct peer *peer, struct command *command) {
  struct ibv_qp *qp = next_qp(peer, command)->qp;
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  attributes.ah_attr = path_to(peer, next_word(command));
  attributes.dest_qp_num = (uint32_t)next_number(command);
  attributes.sq_psn = (uint32_t)next_number(command);
  attributes.rq_psn = (uint32_t)next_number(command);
  attributes.path_mtu = mtu_of(next_number(command));
  attributes.qp_access_flags = (unsigned)next_number(command);
  attributes.timeout = (uint8_t)next_number(command);
  attributes.retry_cnt = (uint8_t)next_number(command);
  attributes.rnr_retry = (uint8_t)next_number(command);
  attributes.min_rnr_timer = (uint8_t)next_number(command);
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = (uint8_t)next_number(command);
  const int reliable = qp->qp_type == IBV_QPT_RC;
  const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (set(qp, &attributes, to_init)) return refuse(command, "to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (reliable) to_rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (set(qp, &attributes, to_rtr)) return refuse(command, "to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  int to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable) to_rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  if (reliable) to_rts |= IBV_QP_MAX_QP_RD_ATOMIC;
  if (set(qp, &attributes, to_rts)) return refuse(command, "to RTS");
  fprintf(command->reply, "{}\n");
}

/** datagrams <qp> <qkey> <send psn>: UD. */
void do_datagrams(struct peer *peer, struct command *command) {
  struct ibv_qp *qp = next_qp(peer, command)->qp;
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  attributes.qkey = (uint32_t)next_number(command);
  attributes.sq_psn = (uint32_t)next_number(command);
  const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  if (set(qp, &attributes, to_init)) return refuse(command, "to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  if (set(qp, &attributes, IBV_QP_STATE)) return refuse(command, "to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  const int to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (set(qp, &attributes, to_rts)) return refuse(command, "to RTS");
  fprintf(command->reply, "{}\n");
}

/** handle <pd> <ip>: an address handle. */
void do_handle(struct peer *peer, struct command *command) {
  struct ibv_pd *pd = peer->pds[next_index(command, peer->pd_count)];
  struct ibv_ah_attr path = path_to(peer, next_word(command));
  struct ibv_ah *handle = ibv_create_ah(pd, &path);
  if (handle == NULL) return refuse(command, "ibv_create_ah");
  if (peer->handle_count == MAX_OBJECTS) die("too many address handles");
  peer->handles[peer->handle_count] = handle;
  fprintf(command->reply, "{\"id\":%d}\n", peer->handle_count++);
}

void do_state(struct peer *peer, struct command *command) {
  struct ibv_qp_attr attributes;
  struct ibv_qp_init_attr init;
  struct ibv_qp *qp = next_qp(peer, command)->qp;
  if (ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init)) return refuse(command, "ibv_query_qp");
  fprintf(command->reply, "{\"state\":%d}\n", attributes.qp_state);
}

void do_error(struct peer *peer, struct command *command) {
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};
  struct ibv_qp *qp = next_qp(peer, command)->qp;
  if (set(qp, &attributes, IBV_QP_STATE)) return refuse(command, "to ERR");
  fprintf(command->reply, "{}\n");
}

/** The next event of the connection manager: its id if it is the wanted one. */
static struct rdma_cm_id *expect_event(struct peer *peer, enum rdma_cm_event_type wanted) {
  struct rdma_cm_event *event;
  if (rdma_get_cm_event(peer->channel, &event)) die("rdma_get_cm_event");
  struct rdma_cm_id *id = event->id;
  if (event->event != wanted) {
    fprintf(stderr, "verbs-peer: %s (%d), not %s\n", rdma_event_str(event->event), event->status,
            rdma_event_str(wanted));
    exit(1);
  }
  rdma_ack_cm_event(event);
  return id;
}

static struct rdma_cm_id *create_id(struct peer *peer) {
  struct rdma_cm_id *id;
  if (rdma_create_id(peer->channel, &id, NULL, RDMA_PS_TCP)) die("rdma_create_id");
  return id;
}

static struct addrinfo *resolve(const char *ip, const char *port) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  if (getaddrinfo(ip, port, &hints, &found) != 0) die("getaddrinfo");
  return found;
}

/** listen <port> */
void do_listen(struct peer *peer, struct command *command) {
  struct addrinfo *own = resolve(peer->ip, next_word(command));
  peer->listener = create_id(peer);
  if (rdma_bind_addr(peer->listener, own->ai_addr)) return refuse(command, "rdma_bind_addr");
  if (rdma_listen(peer->listener, 8)) return refuse(command, "rdma_listen");
  freeaddrinfo(own);
  fprintf(command->reply, "{}\n");
}

/** <pd> <depth> <segments> <inline bytes> <reads> <rnr retries> <rnr timer>, of a connection. */
struct wishes {
  struct ibv_pd *pd;
  struct ibv_qp_init_attr attributes;
  struct rdma_conn_param parameters;
  uint8_t rnr_timer;
};

static struct wishes next_wishes(struct peer *peer, struct command *command) {
  struct wishes wishes = {.attributes = {.qp_type = IBV_QPT_RC}, .parameters = {.retry_count = 6}};
  struct ibv_qp_cap *cap = &wishes.attributes.cap;
  wishes.pd = peer->pds[next_index(command, peer->pd_count)];
  cap->max_send_wr = cap->max_recv_wr = (uint32_t)next_number(command);
  cap->max_send_sge = cap->max_recv_sge = (uint32_t)next_number(command);
  cap->max_inline_data = (uint32_t)next_number(command);
  const uint8_t reads = (uint8_t)next_number(command);
  wishes.parameters.responder_resources = wishes.parameters.initiator_depth = reads;
  wishes.parameters.rnr_retry_count = (uint8_t)next_number(command);
  wishes.rnr_timer = (uint8_t)next_number(command);
  return wishes;
}

static void answer_connected(struct peer *peer, struct command *command, struct queue_pair *qp,
                             const struct wishes *wishes) {
  expect_event(peer, RDMA_CM_EVENT_ESTABLISHED);
  if (set_rnr_timer(qp->qp, wishes->rnr_timer)) die("min_rnr_timer");
  fprintf(command->reply, "{\"id\":%d,\"qpn\":%" PRIu32 "}\n", peer->qp_count - 1,
          qp->qp->qp_num);
}

void do_accept(struct peer *peer, struct command *command) {
  struct wishes wishes = next_wishes(peer, command);
  struct rdma_cm_id *id = expect_event(peer, RDMA_CM_EVENT_CONNECT_REQUEST);
  struct queue_pair *qp = make_qp(peer, id, wishes.pd, wishes.attributes);
  if (rdma_accept(id, &wishes.parameters)) die("rdma_accept");
  answer_connected(peer, command, qp, &wishes);
}

/** dial <ip> <port> and the wishes */
void do_dial(struct peer *peer, struct command *command) {
  const char *ip = next_word(command);
  struct addrinfo *to = resolve(ip, next_word(command));
  struct wishes wishes = next_wishes(peer, command);
  struct rdma_cm_id *id = create_id(peer);
  if (rdma_resolve_addr(id, NULL, to->ai_addr, RESOLVE_TIMEOUT_MS)) die("rdma_resolve_addr");
  expect_event(peer, RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id, RESOLVE_TIMEOUT_MS)) die("rdma_resolve_route");
  expect_event(peer, RDMA_CM_EVENT_ROUTE_RESOLVED);
  freeaddrinfo(to);
  struct queue_pair *qp = make_qp(peer, id, wishes.pd, wishes.attributes);
  if (rdma_connect(id, &wishes.parameters)) die("rdma_connect");
  answer_connected(peer, command, qp, &wishes);
}

/** disconnect <qp> */
void do_disconnect(struct peer *peer, struct command *command) {
  if (rdma_disconnect(next_qp(peer, command)->id)) return refuse(command, "rdma_disconnect");
  fprintf(command->reply, "{}\n");
}
