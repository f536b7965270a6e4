/* Queue pairs and shared receive queues: life, states, attributes. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

/* RC transitions (IBTA 11.2.5.2): what must be given, and what may be. */
static const struct {
  enum ibv_qp_state from, to;
  int required, optional;
} TRANSITIONS[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

static bool allowed(enum ibv_qp_state from, enum ibv_qp_state to, int mask) {
  mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return mask == 0;
  for (size_t i = 0; i < sizeof(TRANSITIONS) / sizeof(TRANSITIONS[0]); i++) {
    if (TRANSITIONS[i].from != from || TRANSITIONS[i].to != to) continue;
    int required = TRANSITIONS[i].required;
    return (mask & required) == required && (mask & ~(required | TRANSITIONS[i].optional)) == 0;
  }
  return false;
}

/* Takes over the attributes that the fake works with or gives back. */
static void assign(struct qp *qp, const struct ibv_qp_attr *from, int mask) {
  struct ibv_qp_attr *to = &qp->attr;
  if (mask & IBV_QP_ACCESS_FLAGS) to->qp_access_flags = from->qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) to->pkey_index = from->pkey_index;
  if (mask & IBV_QP_PORT) to->port_num = from->port_num;
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
}

static void discard(struct qp *qp) {
  qp->freed = qp->executed = qp->posted;
  qp->receives.head = qp->receives.tail;
  cq_purge((struct cq *)qp->verbs.send_cq, qp);
  cq_purge((struct cq *)qp->verbs.recv_cq, qp);
  qp->lastWqeReported = false;
}

void qp_fail(struct qp *qp) { qp->verbs.state = qp->attr.qp_state = IBV_QPS_ERR; }

int ibv_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask) {
  struct device *device = deviceOf(verbs->context);
  struct qp *qp = (struct qp *)verbs;
  int error = injected("ibv_modify_qp");
  pthread_mutex_lock(&device->lock);
  enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : verbs->state;
  if (!error && !allowed(verbs->state, to, mask)) error = EINVAL;
  if (!error) {
    assign(qp, attr, mask);
    if (to == IBV_QPS_RESET) discard(qp);
    verbs->state = qp->attr.qp_state = to;
    kick(device);
  }
  pthread_mutex_unlock(&device->lock);
  return error;
}

int ibv_query_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init_attr) {
  int error = injected("ibv_query_qp");
  if (error) return error;
  (void)mask;
  pthread_mutex_lock(&deviceOf(verbs->context)->lock);
  struct qp *qp = (struct qp *)verbs;
  *attr = qp->attr;
  attr->cap = qp->cap;
  *init_attr = (struct ibv_qp_init_attr){verbs->qp_context, verbs->send_cq, verbs->recv_cq,
                                         verbs->srq,        qp->cap,        verbs->qp_type,
                                         qp->signalAll};
  pthread_mutex_unlock(&deviceOf(verbs->context)->lock);
  return 0;
}

static int addToTable(struct device *device, struct qp *qp) {
  for (unsigned tries = 0; tries < MAX_QPS; tries++) {
    unsigned slot = device->nextQp++ % MAX_QPS; /* a number is not used again at once */
    if (device->qps[slot]) continue;
    device->qps[slot] = qp;
    if (slot >= device->qpLimit) device->qpLimit = slot + 1;
    qp->verbs.qp_num = FIRST_QPN + slot;
    return 0;
  }
  return ENOMEM;
}

static void count(struct qp *qp, int by) {
  ((struct pd *)qp->verbs.pd)->users += (unsigned)by;
  ((struct cq *)qp->verbs.send_cq)->users += (unsigned)by;
  ((struct cq *)qp->verbs.recv_cq)->users += (unsigned)by;
  if (qp->verbs.srq) ((struct srq *)qp->verbs.srq)->users += (unsigned)by;
}

static void freeQp(struct qp *qp) {
  free(qp->sends);
  free(qp->receives.slots);
  free(qp);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
  struct device *device = deviceOf(pd->context);
  const struct ibv_qp_cap *cap = &attr->cap;
  int error = injected("ibv_create_qp");
  if (!error && (attr->qp_type != IBV_QPT_RC || cap->max_send_sge > MAX_SGE ||
                 cap->max_recv_sge > MAX_SGE || cap->max_inline_data > MAX_INLINE)) {
    error = EINVAL;
  }
  struct qp *qp = error ? NULL : calloc(1, sizeof(*qp));
  if (qp) {
    qp->cap = *cap;
    qp->sendSize = cap->max_send_wr;
    qp->sends = calloc(cap->max_send_wr + 1u, sizeof(*qp->sends));
    if (!qp->sends || !receives_init(&qp->receives, attr->srq ? 0 : cap->max_recv_wr,
                                     cap->max_recv_sge)) {
      freeQp(qp);
      qp = NULL;
    }
  }
  if (!qp) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  qp->signalAll = attr->sq_sig_all;
  qp->verbs.context = pd->context;
  qp->verbs.qp_context = attr->qp_context;
  qp->verbs.pd = pd;
  qp->verbs.send_cq = attr->send_cq;
  qp->verbs.recv_cq = attr->recv_cq;
  qp->verbs.srq = attr->srq;
  qp->verbs.qp_type = attr->qp_type;
  pthread_mutex_lock(&device->lock);
  error = addToTable(device, qp);
  if (!error) count(qp, 1);
  pthread_mutex_unlock(&device->lock);
  if (!error) return &qp->verbs;
  freeQp(qp);
  errno = error;
  return NULL;
}

int ibv_destroy_qp(struct ibv_qp *verbs) {
  struct device *device = deviceOf(verbs->context);
  struct qp *qp = (struct qp *)verbs;
  int error = injected("ibv_destroy_qp");
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  discard(qp);
  forget_events(device, qp);
  count(qp, -1);
  device->qps[verbs->qp_num - FIRST_QPN] = NULL;
  pthread_mutex_unlock(&device->lock);
  freeQp(qp);
  return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr) {
  struct device *device = deviceOf(pd->context);
  int error = injected("ibv_create_srq");
  if (!error && (attr->attr.max_wr == 0 || attr->attr.max_sge > MAX_SGE)) error = EINVAL;
  struct srq *srq = error ? NULL : calloc(1, sizeof(*srq));
  if (!srq || !receives_init(&srq->receives, attr->attr.max_wr, attr->attr.max_sge)) {
    free(srq);
    errno = error ? error : ENOMEM;
    return NULL;
  }
  srq->verbs.context = pd->context;
  srq->verbs.srq_context = attr->srq_context;
  srq->verbs.pd = pd;
  pthread_mutex_lock(&device->lock);
  srq->verbs.handle = ++device->nextSrqn;
  ((struct pd *)pd)->users++;
  pthread_mutex_unlock(&device->lock);
  return &srq->verbs;
}

int ibv_modify_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr, int mask) {
  int error = injected("ibv_modify_srq");
  if (error) return error;
  if (mask != IBV_SRQ_LIMIT) return EOPNOTSUPP; /* the size stays, as on most hardware */
  pthread_mutex_lock(&deviceOf(verbs->context)->lock);
  ((struct srq *)verbs)->limit = attr->srq_limit;
  pthread_mutex_unlock(&deviceOf(verbs->context)->lock);
  return 0;
}

int ibv_destroy_srq(struct ibv_srq *verbs) {
  struct device *device = deviceOf(verbs->context);
  struct srq *srq = (struct srq *)verbs;
  int error = injected("ibv_destroy_srq");
  pthread_mutex_lock(&device->lock);
  if (!error && srq->users > 0) error = EBUSY;
  if (!error) {
    forget_events(device, srq);
    ((struct pd *)verbs->pd)->users--;
  }
  pthread_mutex_unlock(&device->lock);
  if (error) return error;
  free(srq->receives.slots);
  free(srq);
  return 0;
}
