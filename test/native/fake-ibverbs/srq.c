/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static int add(struct srq *srq, struct adapter *adapter) {
  for (unsigned tries = 1; tries < MAX_SRQS; tries++) {
    unsigned slot = 1 + adapter->nextSrq++ % (MAX_SRQS - 1);
    if (adapter->srqs[slot]) continue;
    adapter->srqs[slot] = srq;
    srq->number = slot;
    return 0;
  }
  return ENOMEM;
}

static void use(struct srq *srq, int by) {
  ((struct pd *)srq->verbs.pd)->users += (unsigned)by;
  if (srq->cq) srq->cq->users += (unsigned)by;
  if (srq->xrcd) srq->xrcd->users += (unsigned)by;
  count(srq->verbs.context, KIND_SRQ, by);
}

struct srq *srq_make(struct ibv_pd *pd, void *srqContext, const struct ibv_srq_attr *attr,
                     struct xrcd *xrcd, struct cq *cq, int *error) {
  bool valid = attr->max_wr >= 1 && attr->max_wr <= MAX_WR && attr->max_sge <= MAX_SGE;
  struct srq *srq = valid ? calloc(1, sizeof(*srq)) : NULL;
  *error = valid ? ENOMEM : EINVAL;
  if (!srq || !receives_init(&srq->receives, attr->max_wr, attr->max_sge)) {
    free(srq);
    return NULL;
  }
  srq->verbs.context = pd->context;
  srq->verbs.srq_context = srqContext;
  srq->verbs.pd = pd;
  srq->xrcd = xrcd;
  srq->cq = cq;
  srq->limit = attr->srq_limit;
  pthread_mutex_lock(&fakeLock);
  *error = add(srq, adapterOf(pd->context));
  if (!*error) use(srq, 1);
  pthread_mutex_unlock(&fakeLock);
  if (!*error) return srq;
  free(srq->receives.slots);
  free(srq);
  return NULL;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr) {
  int error = refused(pd->context, "ibv_create_srq");
  if (error) return failed(error);
  struct srq *srq = srq_make(pd, attr->srq_context, &attr->attr, NULL, NULL, &error);
  return srq ? &srq->verbs : failed(error);
}

static int resize(struct srq *srq, uint32_t size) {
  struct receives *old = &srq->receives;
  struct receives next = {0};
  if (!(adapterOf(srq->verbs.context)->features & FAKE_VERBS_SRQ_RESIZE)) return EOPNOTSUPP;
  if (size < 1 || size > MAX_WR || size < old->tail - old->head || size < srq->limit) return EINVAL;
  if (!receives_init(&next, size, old->maxSge)) return ENOMEM;
  for (; old->head != old->tail; old->head++) {
    next.slots[next.tail++] = old->slots[old->head % old->size];
  }
  free(old->slots);
  *old = next;
  return 0;
}

int ibv_modify_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr, int mask) {
  struct srq *srq = (struct srq *)verbs;
  int error = refused(verbs->context, "ibv_modify_srq");
  pthread_mutex_lock(&fakeLock);
  if (!error && (mask & IBV_SRQ_MAX_WR)) error = resize(srq, attr->max_wr);
  if (!error && (mask & IBV_SRQ_LIMIT)) {
    if (attr->srq_limit > srq->receives.size) error = EINVAL;
    else srq->limit = attr->srq_limit;
  }
  pthread_mutex_unlock(&fakeLock);
  return error;
}

int ibv_query_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr) {
  const struct srq *srq = (struct srq *)verbs;
  int error = refused(verbs->context, "ibv_query_srq");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  *attr = (struct ibv_srq_attr){srq->receives.size, srq->receives.maxSge, srq->limit};
  pthread_mutex_unlock(&fakeLock);
  return 0;
}

int ibv_destroy_srq(struct ibv_srq *verbs) {
  struct srq *srq = (struct srq *)verbs;
  int error = injected("ibv_destroy_srq");
  pthread_mutex_lock(&fakeLock);
  if (!error && srq->users > 0) error = EBUSY;
  if (!error) {
    adapterOf(verbs->context)->srqs[srq->number] = NULL;
    forget_events(contextOf(verbs->context), srq);
    await_acks("ibv_destroy_srq", &srq->asyncGiven, &verbs->events_completed);
    use(srq, -1);
  }
  pthread_mutex_unlock(&fakeLock);
  if (error) return error;
  free(srq->receives.slots);
  free(srq);
  return 0;
}
