/* Connections and datagram services: who is told what, and the attributes of the queue pairs. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { INVALID_SERVICE_ID = 8, CONSUMER_REJECT = 28, SIDR_UNSUPPORTED = 1, SIDR_REJECTED = 2 };
enum { REQ_BYTES = 56, REP_BYTES = 196, REJ_BYTES = 148 };
enum { SIDR_REQ_BYTES = 180, SIDR_REP_BYTES = 136 };

static struct id *listenerFor(const struct id *from) {
  const struct sockaddr *to = &from->verbs.route.addr.dst_addr;
  for (struct id *id = ids; id; id = id->next) {
    const struct sockaddr *at = &id->verbs.route.addr.src_addr;
    if (id->state != LISTEN || id->verbs.ps != from->verbs.ps) continue;
    if (port_of(at) != port_of(to)) continue;
    if (is_wildcard(at) || same_address(at, to)) return id;
  }
  return NULL;
}

static void keep(struct id *id, const struct rdma_conn_param *given) {
  id->parameters = *given;
  if (given->private_data) memcpy(id->privateData, given->private_data, given->private_data_len);
  id->parameters.private_data = NULL;
}

/* The identifier that a request makes on the listening side. */
static void arrive(struct id *from, struct id *listener) {
  struct id *id = calloc(1, sizeof(*id));
  if (!id) abort();
  id->verbs = (struct rdma_cm_id){
      .channel = listener->verbs.channel,
      .context = listener->verbs.context,
      .ps = listener->verbs.ps,
      .qp_type = listener->verbs.qp_type,
      .verbs = from->verbs.verbs,
      .port_num = 1,
  };
  uint8_t gid[16];
  find_device(&from->verbs.route.addr.dst_addr, &id->verbs.verbs, gid);
  id->verbs.route.addr.src_storage = from->verbs.route.addr.dst_storage;
  id->verbs.route.addr.dst_storage = from->verbs.route.addr.src_storage;
  id->state = REQ_RCVD;
  id->peer = from;
  id->listener = listener;
  id->timeout = from->timeout;
  id->mtu = from->mtu;
  id->psn = from->psn + 0x1000;
  from->peer = id;
  id->next = ids;
  ids = id;
  listener->waiting++;
  post_parameters(id, RDMA_CM_EVENT_CONNECT_REQUEST, from,
                  is_datagram(id) ? SIDR_REQ_BYTES : REQ_BYTES);
}

static void refuse(struct id *id, int reason) {
  struct event *event = new_event(
      id, is_datagram(id) ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED, reason);
  set_private_data(event, NULL, 0, is_datagram(id) ? SIDR_REP_BYTES : REJ_BYTES);
  id->state = CLOSED;
  queue_event(event);
}

static void request(struct id *id) {
  struct id *listener = listenerFor(id);
  if (!listener) refuse(id, is_datagram(id) ? SIDR_UNSUPPORTED : INVALID_SERVICE_ID);
  else if (listener->waiting < listener->backlog) arrive(id, listener);
}

void retry_requests(struct id *listener) {
  for (struct id *id = ids; id && listener->waiting < listener->backlog; id = id->next) {
    if (id->state == REQ_SENT && !id->peer && !id->lost && listenerFor(id) == listener) {
      arrive(id, listener);
    }
  }
}

EXPORT int rdma_connect(struct rdma_cm_id *verbs, struct rdma_conn_param *parameters) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  size_t limit = is_datagram(id) ? SIDR_REQ_BYTES : REQ_BYTES;
  if (id->state != ROUTE_RESOLVED || parameters->private_data_len > limit) return fail(EINVAL);
  pthread_mutex_lock(&lock);
  keep(id, parameters);
  id->state = REQ_SENT;
  id->lost = switches[FAKE_DROP_REQ];
  if (switches[FAKE_UNREACHABLE]) post(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  else if (!id->lost) request(id);
  pthread_mutex_unlock(&lock);
  return 0;
}

EXPORT int rdma_listen(struct rdma_cm_id *verbs, int backlog) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  if (id->state != BOUND) return fail(EINVAL);
  id->backlog = backlog;
  id->state = LISTEN;
  return 0;
}

static void answerDatagram(struct id *id, const struct rdma_conn_param *parameters) {
  keep(id, parameters);
  id->state = CLOSED;
  post_parameters(id->peer, RDMA_CM_EVENT_ESTABLISHED, id, SIDR_REP_BYTES);
  id->peer->state = CLOSED;
  id->peer->peer = NULL;
  id->peer = NULL;
}

static void acceptConnection(struct id *id, const struct rdma_conn_param *parameters) {
  keep(id, parameters);
  id->accepted = true;
  id->state = REP_SENT;
  if (switches[FAKE_DROP_REP]) {
    post(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    return;
  }
  if (switches[FAKE_IWARP]) {
    id->state = id->peer->state = ESTABLISHED;
    post_parameters(id->peer, RDMA_CM_EVENT_ESTABLISHED, id, REP_BYTES);
    post(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    return;
  }
  id->peer->state = REP_RCVD;
  post_parameters(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, id, REP_BYTES);
}

EXPORT int rdma_accept(struct rdma_cm_id *verbs, struct rdma_conn_param *parameters) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  pthread_mutex_lock(&lock);
  size_t limit = is_datagram(id) ? SIDR_REP_BYTES : REP_BYTES;
  bool fits = parameters->private_data_len <= limit;
  bool possible = id->state == REQ_RCVD && id->peer && fits;
  if (possible && is_datagram(id)) answerDatagram(id, parameters);
  else if (possible) acceptConnection(id, parameters);
  pthread_mutex_unlock(&lock);
  return possible ? 0 : fail(EINVAL);
}

EXPORT int rdma_reject(struct rdma_cm_id *verbs, const void *data, uint8_t length) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  pthread_mutex_lock(&lock);
  struct id *peer = id->state == REQ_RCVD ? id->peer : NULL;
  if (peer) {
    bool datagram = is_datagram(id);
    struct event *event =
        datagram ? new_event(peer, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECTED)
                 : new_event(peer, RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT);
    set_private_data(event, data, length, datagram ? SIDR_REP_BYTES : REJ_BYTES);
    peer->state = id->state = CLOSED;
    peer->peer = id->peer = NULL;
    queue_event(event);
  }
  pthread_mutex_unlock(&lock);
  return peer ? 0 : fail(EINVAL);
}

EXPORT int rdma_establish(struct rdma_cm_id *verbs) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  pthread_mutex_lock(&lock);
  bool possible = id->state == REP_RCVD && !verbs->qp;
  if (possible) {
    id->state = ESTABLISHED;
    if (id->peer && id->peer->state == REP_SENT && !switches[FAKE_DROP_RTU]) {
      id->peer->state = ESTABLISHED;
      post(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0);
    }
  }
  pthread_mutex_unlock(&lock);
  return possible ? 0 : fail(EINVAL);
}

EXPORT int rdma_notify(struct rdma_cm_id *verbs, enum ibv_event_type event) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  const int COMM_EST = 4;
  int error = 0;
  pthread_mutex_lock(&lock);
  if ((int)event != COMM_EST) error = EINVAL;
  else if (id->state == ESTABLISHED) error = EISCONN;
  else if (id->state != REP_SENT) error = EINVAL;
  if (!error) {
    id->state = ESTABLISHED;
    post(id, RDMA_CM_EVENT_ESTABLISHED, 0);
  }
  pthread_mutex_unlock(&lock);
  return error ? fail(error) : 0;
}

void enter_timewait(struct id *id) {
  id->state = TIMEWAIT;
  if (!switches[FAKE_NO_TIMEWAIT] && !switches[FAKE_IWARP]) {
    post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  }
}

static void unlink(struct id *id) {
  if (id->peer) id->peer->peer = NULL;
  id->peer = NULL;
}

static void sendDreq(struct id *id) {
  struct id *peer = id->peer;
  id->state = DREQ_SENT;
  if (!peer || switches[FAKE_DROP_DREQ]) {
    post(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    enter_timewait(id);
  } else if (switches[FAKE_IWARP]) {
    post(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    post(peer, RDMA_CM_EVENT_DISCONNECTED, 0);
    peer->state = id->state = CLOSED;
    unlink(id);
  } else if (peer->state == ESTABLISHED || peer->state == REP_SENT) {
    peer->state = DREQ_RCVD;
    post(peer, RDMA_CM_EVENT_DISCONNECTED, 0);
  }
}

static void sendDrep(struct id *id) {
  struct id *peer = id->peer;
  enter_timewait(id);
  unlink(id);
  if (!peer || peer->state != DREQ_SENT) return;
  post(peer, RDMA_CM_EVENT_DISCONNECTED, 0);
  enter_timewait(peer);
}

EXPORT int rdma_disconnect(struct rdma_cm_id *verbs) {
  FAIL_IF_INJECTED();
  struct id *id = (struct id *)verbs;
  pthread_mutex_lock(&lock);
  if (id->state == ESTABLISHED) sendDreq(id);
  else if (id->state == DREQ_RCVD) sendDrep(id);
  pthread_mutex_unlock(&lock);
  return 0;
}

/* Requests that nobody has fetched go with their listener. */
static void leaveListener(struct id *listener) {
  listener->state = CLOSED;
  for (struct id **at = &ids; *at;) {
    struct id *id = *at;
    if (id->listener != listener) {
      at = &id->next;
      continue;
    }
    id->listener = NULL;
    if (id->fetched) {
      at = &id->next;
      continue;
    }
    leave(id);
    drop_events(id);
    *at = id->next;
    free(id);
  }
}

void leave(struct id *id) {
  struct id *peer = id->peer;
  if (id->state == LISTEN) leaveListener(id);
  if (!peer) return;
  switch (id->state) {
    case REQ_RCVD:
      peer->peer = NULL;
      refuse(peer, is_datagram(id) ? SIDR_REJECTED : CONSUMER_REJECT);
      break;
    case REP_RCVD:
    case REP_SENT:
      post(peer, RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT);
      if (peer->state == ESTABLISHED) enter_timewait(peer);
      else peer->state = CLOSED;
      break;
    case ESTABLISHED:
      sendDreq(id);
      break;
    case DREQ_RCVD:
      sendDrep(id);
      break;
    default:
      break;
  }
  unlink(id);
}

static int attributesFor(const struct id *id, struct ibv_qp_attr *out, int *mask) {
  const struct id *peer = id->peer;
  enum ibv_qp_state state = out->qp_state;
  if (!id->verbs.verbs) return EINVAL;
  if (state == IBV_QPS_INIT) {
    out->pkey_index = 0;
    out->port_num = 1;
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    return 0;
  }
  bool possible = id->state == REQ_RCVD || id->state == REP_RCVD || id->state == REP_SENT ||
                  id->state == ESTABLISHED;
  if (!possible || !peer) return EINVAL;
  if (state == IBV_QPS_RTR) {
    uint8_t gid[16] = {0};
    struct ibv_context *device;
    find_device(&id->verbs.route.addr.dst_addr, &device, gid);
    memcpy(&out->ah_attr.grh.dgid, gid, 16);
    out->ah_attr.grh.hop_limit = 64;
    out->ah_attr.is_global = 1;
    out->ah_attr.dlid = (uint16_t)switches[FAKE_LID];
    out->ah_attr.port_num = 1;
    out->path_mtu = id->mtu;
    out->dest_qp_num = peer->parameters.qp_num;
    out->rq_psn = id->psn;
    out->max_dest_rd_atomic = peer->parameters.initiator_depth;
    *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return 0;
  }
  bool active = !id->listener && id->state != REQ_RCVD && id->state != REP_SENT;
  const struct id *asker = active ? id : peer;
  out->sq_psn = peer->psn;
  out->timeout = id->timeout;
  out->retry_cnt = asker->parameters.retry_count;
  out->rnr_retry = peer->parameters.rnr_retry_count;
  out->max_rd_atomic = peer->parameters.responder_resources;
  *mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
          IBV_QP_MAX_QP_RD_ATOMIC;
  return 0;
}

EXPORT int rdma_init_qp_attr(struct rdma_cm_id *verbs, struct ibv_qp_attr *out, int *mask) {
  FAIL_IF_INJECTED();
  pthread_mutex_lock(&lock);
  int error = attributesFor((struct id *)verbs, out, mask);
  pthread_mutex_unlock(&lock);
  return error ? fail(error) : 0;
}
