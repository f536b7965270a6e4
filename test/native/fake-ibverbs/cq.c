/* Completion queues and their channels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
  int error = refused(context, "ibv_create_comp_channel");
  struct channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  if (!channel) return failed(error ? error : ENOMEM);
  channel->verbs.context = context;
  channel->verbs.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (channel->verbs.fd < 0) {
    free(channel);
    return NULL;
  }
  channel->end = &channel->first;
  pthread_mutex_lock(&fakeLock);
  count(context, KIND_CHANNEL, 1);
  pthread_mutex_unlock(&fakeLock);
  return &channel->verbs;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *verbs) {
  int error = injected("ibv_destroy_comp_channel");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  bool busy = verbs->refcnt > 0;
  if (!busy) count(verbs->context, KIND_CHANNEL, -1);
  pthread_mutex_unlock(&fakeLock);
  if (busy) return EBUSY;
  close(verbs->fd);
  free(verbs);
  return 0;
}

static void channelPush(struct channel *channel, struct cq *cq) {
  cq->nextInChannel = NULL;
  *channel->end = cq;
  channel->end = &cq->nextInChannel;
}

static void channelRemove(struct channel *channel, const struct cq *cq) {
  struct cq **at = &channel->first;
  while (*at && *at != cq) at = &(*at)->nextInChannel;
  if (*at) *at = cq->nextInChannel;
  for (at = &channel->first; *at; at = &(*at)->nextInChannel) continue;
  channel->end = at;
}

static void notify(struct cq *cq) {
  struct channel *channel = (struct channel *)cq->verbs.channel;
  cq->armed = ARMED_NOT;
  if (!channel) return;
  if (cq->eventsWaiting++ == 0) channelPush(channel, cq);
  uint64_t one = 1;
  if (write(channel->verbs.fd, &one, sizeof(one)) != sizeof(one)) abort();
}

int ibv_get_cq_event(struct ibv_comp_channel *verbs, struct ibv_cq **out, void **cq_context) {
  struct channel *channel = (struct channel *)verbs;
  int error = injected("ibv_get_cq_event");
  uint64_t one;
  if (error) tell_errno(error);
  if (error || read(verbs->fd, &one, sizeof(one)) != sizeof(one)) return -1;
  pthread_mutex_lock(&fakeLock);
  struct cq *cq = channel->first;
  if (cq) {
    channelRemove(channel, cq);
    if (--cq->eventsWaiting > 0) channelPush(channel, cq);
    cq->eventsGiven++;
    *out = &cq->verbs;
    *cq_context = cq->verbs.cq_context;
  }
  pthread_mutex_unlock(&fakeLock);
  if (!cq) errno = EAGAIN;
  return cq ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned number) {
  pthread_mutex_lock(&fakeLock);
  ((struct cq *)cq)->eventsAcked += number;
  pthread_cond_broadcast(&fakeAcked);
  pthread_mutex_unlock(&fakeLock);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector) {
  int error = refused(context, "ibv_create_cq");
  bool valid = cqe >= 1 && cqe <= MAX_CQE && comp_vector >= 0 &&
               comp_vector < context->num_comp_vectors &&
               (!channel || channel->context == context);
  if (!error && !valid) error = EINVAL;
  struct cq *cq = error ? NULL : calloc(1, sizeof(*cq));
  if (cq) cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
  if (!cq || !cq->ring) {
    free(cq);
    return failed(error ? error : ENOMEM);
  }
  cq->verbs.context = context;
  cq->verbs.channel = channel;
  cq->verbs.cq_context = cq_context;
  cq->verbs.cqe = cqe;
  cq->size = (uint32_t)cqe;
  pthread_mutex_lock(&fakeLock);
  if (channel) channel->refcnt++;
  count(context, KIND_CQ, 1);
  pthread_mutex_unlock(&fakeLock);
  return &cq->verbs;
}

int ibv_resize_cq(struct ibv_cq *verbs, int cqe) {
  struct cq *cq = (struct cq *)verbs;
  int error = refused(verbs->context, "ibv_resize_cq");
  if (!error && !(adapterOf(verbs->context)->features & FAKE_VERBS_CQ_RESIZE)) error = EOPNOTSUPP;
  pthread_mutex_lock(&fakeLock);
  uint32_t held = cq->tail - cq->head;
  if (!error && (cqe < 1 || cqe > MAX_CQE || (uint32_t)cqe < held)) error = EINVAL;
  struct cqe *ring = error ? NULL : calloc((size_t)cqe, sizeof(*ring));
  if (!error && !ring) error = ENOMEM;
  if (!error) {
    for (uint32_t i = 0; i < held; i++) ring[i] = cq->ring[(cq->head + i) % cq->size];
    free(cq->ring);
    cq->ring = ring;
    cq->head = 0;
    cq->tail = held;
    cq->size = (uint32_t)cqe;
    verbs->cqe = cqe;
  }
  pthread_mutex_unlock(&fakeLock);
  return error;
}

/* Events that nobody has fetched are taken back; those that were fetched must be acknowledged. */
static void settle_events(struct cq *cq) {
  struct ibv_cq *verbs = &cq->verbs;
  for (; cq->eventsWaiting > 0; cq->eventsWaiting--) {
    uint64_t one;
    if (read(verbs->channel->fd, &one, sizeof(one)) != sizeof(one)) break;
  }
  if (verbs->channel) channelRemove((struct channel *)verbs->channel, cq);
  forget_events(contextOf(verbs->context), cq);
  await_acks("ibv_destroy_cq", &cq->eventsGiven, &cq->eventsAcked);
  await_acks("ibv_destroy_cq", &cq->asyncGiven, &verbs->async_events_completed);
}

int ibv_destroy_cq(struct ibv_cq *verbs) {
  struct cq *cq = (struct cq *)verbs;
  int error = injected("ibv_destroy_cq");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  if (cq->users > 0) {
    pthread_mutex_unlock(&fakeLock);
    return EBUSY;
  }
  settle_events(cq);
  count(verbs->context, KIND_CQ, -1);
  if (verbs->channel) verbs->channel->refcnt--;
  pthread_mutex_unlock(&fakeLock);
  free(cq->ring);
  free(cq);
  return 0;
}

/* The completion is lost, and whoever depends on this queue is told (IBTA 11.6.3.1). */
static void overrun(struct cq *cq) {
  struct adapter *adapter = adapterOf(cq->verbs.context);
  cq->overrun = true;
  raise_cq(cq, IBV_EVENT_CQ_ERR);
  for (unsigned i = 0; i < MAX_QPS; i++) {
    struct qp *qp = adapter->qps[i];
    if (qp && (qp->verbs.send_cq == &cq->verbs || qp->verbs.recv_cq == &cq->verbs)) qp_fail(qp);
  }
}

void cq_add(struct cq *cq, const struct cqe *entry, bool solicited) {
  if (cq->overrun) return;
  if (cq->tail - cq->head == cq->size) {
    overrun(cq);
    return;
  }
  cq->ring[cq->tail++ % cq->size] = *entry;
  solicited |= entry->wc.status != IBV_WC_SUCCESS;
  if (cq->armed == ARMED_NEXT || (cq->armed == ARMED_SOLICITED && solicited)) notify(cq);
}

void cq_purge(struct cq *cq, const struct qp *qp) {
  uint32_t kept = cq->head;
  for (uint32_t i = cq->head; i != cq->tail; i++) {
    struct cqe *entry = &cq->ring[i % cq->size];
    if (entry->qp != qp) cq->ring[kept++ % cq->size] = *entry;
  }
  cq->tail = kept;
}

/* It answers as long as it has something, the device being there or not. */
int cq_poll(struct ibv_cq *verbs, int entries, struct ibv_wc *out) {
  struct cq *cq = (struct cq *)verbs;
  if (injected("ibv_poll_cq")) return -1;
  int found = 0;
  pthread_mutex_lock(&fakeLock);
  uint32_t at = cq->head % cq->size;
  for (; found < entries && cq->head != cq->tail; found++, cq->head++) {
    struct cqe *entry = &cq->ring[at];
    if (++at == cq->size) at = 0;
    out[found] = entry->wc;
    if (entry->isSend) entry->qp->freed = entry->sendIndex + 1;
  }
  pthread_mutex_unlock(&fakeLock);
  return found;
}

int cq_arm(struct ibv_cq *verbs, int solicitedOnly) {
  int error = refused(verbs->context, "ibv_req_notify_cq");
  if (error) return error;
  enum armed wish = solicitedOnly ? ARMED_SOLICITED : ARMED_NEXT;
  pthread_mutex_lock(&fakeLock);
  struct cq *cq = (struct cq *)verbs;
  if (wish > cq->armed) cq->armed = wish;
  pthread_mutex_unlock(&fakeLock);
  return 0;
}
