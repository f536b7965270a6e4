/* XRC: domains, their shared receive queues, and target queue pairs that many may have open. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "internal.h"

static struct xrcDomain *find_domain(struct adapter *adapter, const struct stat *file) {
  struct xrcDomain *domain = adapter->domains;
  while (domain && (domain->device != file->st_dev || domain->inode != file->st_ino)) {
    domain = domain->next;
  }
  return domain;
}

/* The domain of a file, as its inode has it; -1: one of one's own. */
static int enter_domain(struct adapter *adapter, int fd, int flags, struct xrcDomain **out) {
  struct stat file = {0};
  if (fd != -1 && fstat(fd, &file) != 0) return EBADF;
  struct xrcDomain *domain = fd == -1 ? NULL : find_domain(adapter, &file);
  if (domain && (flags & O_EXCL)) return EINVAL;
  if (fd != -1 && !domain && !(flags & O_CREAT)) return EAGAIN;
  if (!domain) {
    domain = calloc(1, sizeof(*domain));
    if (!domain) return ENOMEM;
    domain->device = file.st_dev;
    domain->inode = file.st_ino;
    domain->next = adapter->domains;
    adapter->domains = domain;
  }
  domain->handles++;
  *out = domain;
  return 0;
}

static void leave_domain(struct adapter *adapter, struct xrcDomain *domain) {
  if (--domain->handles > 0) return;
  struct xrcDomain **at = &adapter->domains;
  while (*at != domain) at = &(*at)->next;
  *at = domain->next;
  free(domain);
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr) {
  const uint32_t all = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  struct adapter *adapter = adapterOf(context);
  int error = refused(context, "ibv_open_xrcd");
  if (!error && !(adapter->features & FAKE_VERBS_XRC)) error = EOPNOTSUPP;
  if (!error && attr->comp_mask != all) error = EINVAL;
  struct xrcd *xrcd = error ? NULL : calloc(1, sizeof(*xrcd));
  if (!xrcd) return failed(error ? error : ENOMEM);
  xrcd->verbs.context = context;
  pthread_mutex_lock(&fakeLock);
  error = enter_domain(adapter, attr->fd, attr->oflags, &xrcd->domain);
  if (!error) count(context, KIND_XRCD, 1);
  pthread_mutex_unlock(&fakeLock);
  if (!error) return &xrcd->verbs;
  free(xrcd);
  return failed(error);
}

static int close_xrcd(struct ibv_xrcd *verbs) {
  struct xrcd *xrcd = (struct xrcd *)verbs;
  int error = injected("ibv_close_xrcd");
  pthread_mutex_lock(&fakeLock);
  if (!error && xrcd->users > 0) error = EBUSY;
  if (!error) {
    leave_domain(adapterOf(verbs->context), xrcd->domain);
    count(verbs->context, KIND_XRCD, -1);
  }
  pthread_mutex_unlock(&fakeLock);
  if (!error) free(xrcd);
  return error;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context,
                                     struct ibv_srq_init_attr_ex *attr) {
  const uint32_t needed = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  const uint32_t xrc = needed | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  int error = refused(context, "ibv_create_srq_ex");
  bool isXrc = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC;
  if (!error && isXrc && !(adapterOf(context)->features & FAKE_VERBS_XRC)) error = EOPNOTSUPP;
  if (!error && (attr->comp_mask & ~xrc)) error = EINVAL;
  if (!error && isXrc && attr->comp_mask != xrc) error = EINVAL;
  if (!error && !(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) error = EINVAL;
  if (error) return failed(error);
  struct xrcd *xrcd = isXrc ? (struct xrcd *)attr->xrcd : NULL;
  struct cq *cq = isXrc ? (struct cq *)attr->cq : NULL;
  struct srq *srq = srq_make(attr->pd, attr->srq_context, &attr->attr, xrcd, cq, &error);
  return srq ? &srq->verbs : failed(error);
}

static int get_srq_num(struct ibv_srq *verbs, uint32_t *number) {
  const struct srq *srq = (struct srq *)verbs;
  int error = refused(verbs->context, "ibv_get_srq_num");
  if (!error && !srq->xrcd) error = EINVAL;
  if (!error) *number = srq->number;
  return error;
}

/* The receive queue that a request names, if it is of the target's domain. */
struct srq *xrc_srq(struct qp *target, uint32_t number) {
  struct srq *srq = number < MAX_SRQS ? target->adapter->srqs[number] : NULL;
  return srq && srq->xrcd && srq->xrcd->domain == target->domain ? srq : NULL;
}

/* Lock held: one more opening of a target queue pair. */
static struct ibv_qp *add_handle(struct ibv_context *context, struct qp *real, struct xrcd *xrcd,
                                 struct handle *handle, void *qpContext) {
  handle->verbs.context = context;
  handle->verbs.qp_context = qpContext;
  handle->verbs.qp_num = real->verbs.qp_num;
  handle->verbs.state = real->attr.qp_state;
  handle->verbs.qp_type = IBV_QPT_XRC_RECV;
  handle->real = real;
  handle->xrcd = xrcd;
  handle->next = real->handles;
  real->handles = handle;
  xrcd->users++;
  count(context, KIND_QP, 1);
  return &handle->verbs;
}

static struct ibv_qp *create_target(struct ibv_context *context,
                                    const struct ibv_qp_init_attr_ex *attr) {
  const struct ibv_qp_cap none = {0};
  struct xrcd *xrcd = (struct xrcd *)attr->xrcd;
  struct handle *handle = calloc(1, sizeof(*handle));
  struct qp *real = handle ? qp_make(adapterOf(context), &none, false) : NULL;
  struct ibv_qp *made = NULL;
  if (real) {
    real->verbs.qp_type = IBV_QPT_XRC_RECV;
    real->domain = xrcd->domain;
    pthread_mutex_lock(&fakeLock);
    if (qp_number(real) == 0) made = add_handle(context, real, xrcd, handle, attr->qp_context);
    pthread_mutex_unlock(&fakeLock);
  }
  if (made) return made;
  qp_free(real);
  free(handle);
  return failed(ENOMEM);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr) {
  int error = refused(context, "ibv_create_qp_ex");
  bool isTarget = attr->qp_type == IBV_QPT_XRC_RECV;
  bool isXrc = isTarget || attr->qp_type == IBV_QPT_XRC_SEND;
  uint32_t mask = isTarget ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  if (!error && isXrc && !(adapterOf(context)->features & FAKE_VERBS_XRC)) error = EOPNOTSUPP;
  bool flagged = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if (flagged) mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if (!error && attr->comp_mask != mask) error = EINVAL;
  bool blocks = flagged && attr->create_flags == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  if (!error && flagged && (!blocks || attr->qp_type != IBV_QPT_UD)) error = EINVAL;
  if (error) return failed(error);
  if (isTarget) return create_target(context, attr);
  struct ibv_qp_init_attr plain = {attr->qp_context, attr->send_cq, attr->recv_cq, attr->srq,
                                   attr->cap,        attr->qp_type, attr->sq_sig_all};
  if (isXrc) plain.recv_cq = NULL;
  struct ibv_qp *made = ibv_create_qp(attr->pd, &plain);
  if (made && blocks) qpOf(made)->blocksOwnMulticast = true;
  return made;
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr) {
  const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  int error = refused(context, "ibv_open_qp");
  bool valid = (attr->comp_mask & ~(uint32_t)IBV_QP_OPEN_ATTR_CONTEXT) == needed &&
               attr->qp_type == IBV_QPT_XRC_RECV;
  if (!error && !valid) error = EINVAL;
  struct handle *handle = error ? NULL : calloc(1, sizeof(*handle));
  if (!handle) return failed(error ? error : ENOMEM);
  struct xrcd *xrcd = (struct xrcd *)attr->xrcd;
  uint32_t slot = attr->qp_num - FIRST_QPN;
  struct ibv_qp *made = NULL;
  pthread_mutex_lock(&fakeLock);
  struct qp *real = slot < MAX_QPS ? adapterOf(context)->qps[slot] : NULL;
  bool has = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT;
  if (real && real->domain && real->domain == xrcd->domain) {
    made = add_handle(context, real, xrcd, handle, has ? attr->qp_context : NULL);
  }
  pthread_mutex_unlock(&fakeLock);
  if (made) return made;
  free(handle);
  return failed(EINVAL);
}

/* The last one to close it ends it. */
int xrc_close(struct ibv_qp *verbs) {
  struct handle *handle = (struct handle *)verbs;
  struct qp *real = handle->real;
  pthread_mutex_lock(&fakeLock);
  struct handle **at = &real->handles;
  while (*at != handle) at = &(*at)->next;
  *at = handle->next;
  forget_events(contextOf(verbs->context), handle);
  await_acks("ibv_destroy_qp", &handle->asyncGiven, &verbs->events_completed);
  handle->xrcd->users--;
  count(verbs->context, KIND_QP, -1);
  bool last = real->handles == NULL;
  if (last) real->adapter->qps[real->verbs.qp_num - FIRST_QPN] = NULL;
  pthread_mutex_unlock(&fakeLock);
  free(handle);
  if (last) qp_free(real);
  return 0;
}

void xrc_attach(struct verbs_context *verbs) {
  verbs->open_xrcd = open_xrcd;
  verbs->close_xrcd = close_xrcd;
  verbs->create_srq_ex = create_srq_ex;
  verbs->get_srq_num = get_srq_num;
  verbs->create_qp_ex = create_qp_ex;
  verbs->open_qp = open_qp;
}
