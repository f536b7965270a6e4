/* Completion queues and their channels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
  int error = injected("ibv_create_comp_channel");
  struct channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  if (!channel) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  channel->verbs.context = context;
  channel->verbs.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  channel->end = &channel->first;
  pthread_mutex_lock(&deviceOf(context)->lock);
  deviceOf(context)->objects++;
  pthread_mutex_unlock(&deviceOf(context)->lock);
  return &channel->verbs;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *verbs) {
  int error = injected("ibv_destroy_comp_channel");
  if (error) return error;
  if (verbs->refcnt > 0) return EBUSY;
  pthread_mutex_lock(&deviceOf(verbs->context)->lock);
  deviceOf(verbs->context)->objects--;
  pthread_mutex_unlock(&deviceOf(verbs->context)->lock);
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
  struct device *device = deviceOf(verbs->context);
  struct channel *channel = (struct channel *)verbs;
  int error = injected("ibv_get_cq_event");
  uint64_t one;
  if (error) errno = error;
  if (error || read(verbs->fd, &one, sizeof(one)) != sizeof(one)) return -1;
  pthread_mutex_lock(&device->lock);
  struct cq *cq = channel->first;
  if (cq) {
    channelRemove(channel, cq);
    if (--cq->eventsWaiting > 0) channelPush(channel, cq);
    cq->eventsGiven++;
    *out = &cq->verbs;
    *cq_context = cq->verbs.cq_context;
  }
  pthread_mutex_unlock(&device->lock);
  if (!cq) errno = EAGAIN;
  return cq ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) {
  struct device *device = deviceOf(cq->context);
  pthread_mutex_lock(&device->lock);
  ((struct cq *)cq)->eventsAcked += count;
  pthread_cond_broadcast(&device->acked);
  pthread_mutex_unlock(&device->lock);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector) {
  int error = injected("ibv_create_cq");
  if (!error && (cqe < 1 || comp_vector >= context->num_comp_vectors)) error = EINVAL;
  struct cq *cq = error ? NULL : calloc(1, sizeof(*cq));
  if (cq) cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
  if (!cq || !cq->ring) {
    free(cq);
    errno = error ? error : ENOMEM;
    return NULL;
  }
  cq->verbs.context = context;
  cq->verbs.channel = channel;
  cq->verbs.cq_context = cq_context;
  cq->verbs.cqe = cqe;
  cq->size = (uint32_t)cqe;
  if (channel) channel->refcnt++;
  pthread_mutex_lock(&deviceOf(context)->lock);
  deviceOf(context)->objects++;
  pthread_mutex_unlock(&deviceOf(context)->lock);
  return &cq->verbs;
}

int ibv_resize_cq(struct ibv_cq *verbs, int cqe) {
  struct device *device = deviceOf(verbs->context);
  struct cq *cq = (struct cq *)verbs;
  int error = injected("ibv_resize_cq");
  pthread_mutex_lock(&device->lock);
  uint32_t held = cq->tail - cq->head;
  if (!error && (cqe < 1 || (uint32_t)cqe < held)) error = EINVAL;
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
  pthread_mutex_unlock(&device->lock);
  return error;
}

int ibv_destroy_cq(struct ibv_cq *verbs) {
  struct device *device = deviceOf(verbs->context);
  struct cq *cq = (struct cq *)verbs;
  int error = injected("ibv_destroy_cq");
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  if (cq->users > 0) {
    pthread_mutex_unlock(&device->lock);
    return EBUSY;
  }
  for (; cq->eventsWaiting > 0; cq->eventsWaiting--) {
    uint64_t one;
    if (read(verbs->channel->fd, &one, sizeof(one)) != sizeof(one)) break;
  }
  if (verbs->channel) channelRemove((struct channel *)verbs->channel, cq);
  while (cq->eventsGiven != cq->eventsAcked) pthread_cond_wait(&device->acked, &device->lock);
  forget_events(device, cq);
  device->objects--;
  pthread_mutex_unlock(&device->lock);
  if (verbs->channel) verbs->channel->refcnt--;
  free(cq->ring);
  free(cq);
  return 0;
}

/* The completion is lost, and whoever depends on this queue is told (IBTA 11.6.3.1). */
static void overrun(struct cq *cq) {
  struct device *device = deviceOf(cq->verbs.context);
  cq->overrun = true;
  raise_event(device, IBV_EVENT_CQ_ERR, cq);
  for (unsigned i = 0; i < device->qpLimit; i++) {
    struct qp *qp = device->qps[i];
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

int cq_poll(struct ibv_cq *verbs, int entries, struct ibv_wc *out) {
  struct device *device = deviceOf(verbs->context);
  struct cq *cq = (struct cq *)verbs;
  if (injected("ibv_poll_cq")) return -1;
  int count = 0;
  pthread_mutex_lock(&device->lock);
  uint32_t at = cq->head % cq->size;
  for (; count < entries && cq->head != cq->tail; count++, cq->head++) {
    struct cqe *entry = &cq->ring[at];
    if (++at == cq->size) at = 0;
    out[count] = entry->wc;
    if (entry->isSend) entry->qp->freed = entry->sendIndex + 1;
  }
  pthread_mutex_unlock(&device->lock);
  return count;
}

int cq_arm(struct ibv_cq *verbs, int solicitedOnly) {
  struct device *device = deviceOf(verbs->context);
  int error = injected("ibv_req_notify_cq");
  if (error) return error;
  enum armed wish = solicitedOnly ? ARMED_SOLICITED : ARMED_NEXT;
  pthread_mutex_lock(&device->lock);
  struct cq *cq = (struct cq *)verbs;
  if (wish > cq->armed) cq->armed = wish;
  pthread_mutex_unlock(&device->lock);
  return 0;
}
