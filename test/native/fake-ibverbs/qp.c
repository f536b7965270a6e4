/* Queue pairs: life and attributes. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

/* Takes over the attributes that the fake works with or gives back. */
static void assign(struct qp *qp, const struct ibv_qp_attr *from, int mask) {
  struct ibv_qp_attr *to = &qp->attr;
  if (mask & IBV_QP_ACCESS_FLAGS) to->qp_access_flags = from->qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) to->pkey_index = from->pkey_index;
  if (mask & IBV_QP_PORT) to->port_num = from->port_num;
  if (mask & IBV_QP_QKEY) to->qkey = from->qkey;
  if (mask & IBV_QP_AV) to->ah_attr = from->ah_attr;
  if (mask & IBV_QP_PATH_MTU) to->path_mtu = from->path_mtu;
  if (mask & IBV_QP_DEST_QPN) to->dest_qp_num = from->dest_qp_num;
  if (mask & IBV_QP_RQ_PSN) to->rq_psn = from->rq_psn;
  if (mask & IBV_QP_SQ_PSN) to->sq_psn = from->sq_psn;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to->max_dest_rd_atomic = from->max_dest_rd_atomic;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to->max_rd_atomic = from->max_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) to->min_rnr_timer = from->min_rnr_timer;
  if (mask & IBV_QP_TIMEOUT) to->timeout = from->timeout;
  if (mask & IBV_QP_RETRY_CNT) to->retry_cnt = from->retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to->rnr_retry = from->rnr_retry;
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) to->en_sqd_async_notify = from->en_sqd_async_notify;
}

static void discard(struct qp *qp) {
  qp->freed = qp->executed = qp->posted;
  qp->receives.head = qp->receives.tail;
  if (qp->verbs.send_cq) cq_purge((struct cq *)qp->verbs.send_cq, qp);
  if (qp->verbs.recv_cq) cq_purge((struct cq *)qp->verbs.recv_cq, qp);
  qp->lastWqeReported = qp->established = qp->drainReported = false;
  windows_release(qp);
  unschedule(qp);
}

/* The `state` that callers see in struct ibv_qp follows by a modify or a query only. */
void qp_fail(struct qp *qp) {
  qp->attr.qp_state = IBV_QPS_ERR;
  make_runnable(qp);
}

static void move(struct qp *qp, enum ibv_qp_state to) {
  if (to == IBV_QPS_RESET) discard(qp);
  if (to == IBV_QPS_RTR) qp->established = false;
  if (to == IBV_QPS_SQD) qp->drainReported = false;
  qp->attr.qp_state = to;
  make_runnable(qp);
  wake_waiting(); /* it may be the peer that somebody waits for */
}

int ibv_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask) {
  struct qp *qp = qpOf(verbs);
  int error = refused(verbs->context, "ibv_modify_qp");
  pthread_mutex_lock(&fakeLock);
  if (!error) error = check_transition(qp, attr, mask);
  if (!error) {
    assign(qp, attr, mask);
    if (mask & IBV_QP_STATE) move(qp, attr->qp_state);
    verbs->state = qp->attr.qp_state;
    kick();
  }
  pthread_mutex_unlock(&fakeLock);
  return error;
}

int ibv_query_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init_attr) {
  int error = refused(verbs->context, "ibv_query_qp");
  if (error) return error;
  (void)mask;
  pthread_mutex_lock(&fakeLock);
  struct qp *qp = qpOf(verbs);
  *attr = qp->attr;
  attr->cap = qp->cap;
  attr->cur_qp_state = attr->qp_state;
  attr->sq_draining = attr->qp_state == IBV_QPS_SQD && !qp->drainReported;
  verbs->state = attr->qp_state;
  *init_attr = (struct ibv_qp_init_attr){verbs->qp_context, verbs->send_cq, verbs->recv_cq,
                                         verbs->srq,        qp->cap,        verbs->qp_type,
                                         qp->signalAll};
  pthread_mutex_unlock(&fakeLock);
  return 0;
}

/* Gives it a number of its device; ENOMEM. A number is not used again at once. */
int qp_number(struct qp *qp) {
  for (unsigned tries = 0; tries < MAX_QPS; tries++) {
    unsigned slot = qp->adapter->nextQp++ % MAX_QPS;
    if (qp->adapter->qps[slot]) continue;
    qp->adapter->qps[slot] = qp;
    qp->verbs.qp_num = FIRST_QPN + slot;
    return 0;
  }
  return ENOMEM;
}

static void use(struct qp *qp, int by) {
  ((struct pd *)qp->verbs.pd)->users += (unsigned)by;
  ((struct cq *)qp->verbs.send_cq)->users += (unsigned)by;
  if (qp->verbs.recv_cq) ((struct cq *)qp->verbs.recv_cq)->users += (unsigned)by;
  if (qp->verbs.srq) ((struct srq *)qp->verbs.srq)->users += (unsigned)by;
  count(qp->verbs.context, KIND_QP, by);
}

void qp_free(struct qp *qp) {
  if (!qp) return;
  free(qp->sends);
  free(qp->receives.slots);
  free(qp);
}

struct qp *qp_make(struct adapter *adapter, const struct ibv_qp_cap *cap, bool withReceives) {
  struct qp *qp = calloc(1, sizeof(*qp));
  if (!qp) return NULL;
  qp->adapter = adapter;
  qp->cap = *cap;
  qp->sendSize = cap->max_send_wr;
  qp->sends = calloc(cap->max_send_wr + 1u, sizeof(*qp->sends));
  uint32_t receives = withReceives ? cap->max_recv_wr : 0;
  if (qp->sends && receives_init(&qp->receives, receives, cap->max_recv_sge)) return qp;
  qp_free(qp);
  return NULL;
}

static int check(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr) {
  const struct ibv_qp_cap *cap = &attr->cap;
  bool sends = attr->qp_type == IBV_QPT_XRC_SEND;
  bool type = attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_UC ||
              attr->qp_type == IBV_QPT_UD || sends;
  if (!type) return EOPNOTSUPP;
  if (!attr->send_cq || (!attr->recv_cq && !sends)) return EINVAL;
  if (attr->send_cq->context != pd->context) return EINVAL;
  if (attr->recv_cq && attr->recv_cq->context != pd->context) return EINVAL;
  if (attr->srq && (sends || attr->srq->context != pd->context)) return EINVAL;
  if (cap->max_send_wr > MAX_WR || cap->max_recv_wr > MAX_WR) return EINVAL;
  if (cap->max_send_sge > MAX_SGE || cap->max_recv_sge > MAX_SGE) return EINVAL;
  return cap->max_inline_data > MAX_INLINE ? EINVAL : 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
  int error = refused(pd->context, "ibv_create_qp");
  if (!error) error = check(pd, attr);
  if (error) return failed(error);
  bool withReceives = !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND;
  struct qp *qp = qp_make(adapterOf(pd->context), &attr->cap, withReceives);
  if (!qp) return failed(ENOMEM);
  qp->signalAll = attr->sq_sig_all;
  qp->verbs.context = pd->context;
  qp->verbs.qp_context = attr->qp_context;
  qp->verbs.pd = pd;
  qp->verbs.send_cq = attr->send_cq;
  qp->verbs.recv_cq = attr->recv_cq;
  qp->verbs.srq = attr->srq;
  qp->verbs.qp_type = attr->qp_type;
  pthread_mutex_lock(&fakeLock);
  error = qp_number(qp);
  if (!error) use(qp, 1);
  pthread_mutex_unlock(&fakeLock);
  if (!error) return &qp->verbs;
  qp_free(qp);
  return failed(error);
}

int ibv_destroy_qp(struct ibv_qp *verbs) {
  int error = injected("ibv_destroy_qp");
  if (error) return error;
  if (verbs->qp_type == IBV_QPT_XRC_RECV) return xrc_close(verbs);
  struct qp *qp = (struct qp *)verbs;
  pthread_mutex_lock(&fakeLock);
  qp->adapter->qps[verbs->qp_num - FIRST_QPN] = NULL;
  leave_groups(qp);
  discard(qp);
  wake_waiting();
  forget_events(contextOf(verbs->context), qp);
  await_acks("ibv_destroy_qp", &qp->asyncGiven, &verbs->events_completed);
  use(qp, -1);
  pthread_mutex_unlock(&fakeLock);
  qp_free(qp);
  return 0;
}

static int to_state(struct ibv_qp *qp, const struct ibv_qp *peer, enum ibv_qp_state state) {
  bool datagram = qp->qp_type == IBV_QPT_UD, reliable = qp->qp_type == IBV_QPT_RC;
  const struct adapter *there = adapterOf(peer->context);
  struct ibv_qp_attr attr = {
      .qp_state = state, .port_num = 1, .qkey = 0x11111111, .path_mtu = IBV_MTU_4096,
      .dest_qp_num = peer->qp_num, .qp_access_flags = 15, .max_dest_rd_atomic = 16,
      .max_rd_atomic = 16, .min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = 3;
  attr.ah_attr.grh.dgid = there->ports[0].gids[3].gid;
  int masks[IBV_QPS_RTS + 1] = {
      [IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                       (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
      [IBV_QPS_RTR] = datagram ? 0
                               : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                                               : 0),
      [IBV_QPS_RTS] = IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                                : 0)};
  return ibv_modify_qp(qp, &attr, masks[state] | IBV_QP_STATE);
}

int fake_verbs_connect(struct ibv_qp *a, struct ibv_qp *b) {
  const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
  for (int i = 0; i < 3; i++) {
    int error = states[i] == a->state ? 0 : to_state(a, b, states[i]);
    if (!error && states[i] != b->state) error = to_state(b, a, states[i]);
    if (error) return error;
  }
  return 0;
}
