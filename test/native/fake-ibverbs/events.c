/* Asynchronous events: per context, through a descriptor; counted per object until acknowledged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum { ACK_SECONDS = 10 };

static void give(struct ibv_context *context) {
  uint64_t one = 1;
  if (write(context->async_fd, &one, sizeof(one)) != sizeof(one)) abort();
}

void raise_event(struct context *context, enum ibv_event_type type, struct ibv_async_event what) {
  struct event *event = calloc(1, sizeof(*event));
  if (!event) abort();
  event->what = what;
  event->what.event_type = type;
  *context->eventsEnd = event;
  context->eventsEnd = &event->next;
  give(&context->verbs.context);
}

/* An XRC target's events go to everybody who has it open. */
void raise_qp(struct qp *qp, int type) {
  bool isEnd = type != IBV_EVENT_COMM_EST && type != IBV_EVENT_SQ_DRAINED;
  if (isEnd && !(qp->adapter->features & FAKE_VERBS_QP_EVENTS)) return;
  struct ibv_async_event what = {0};
  if (!qp->domain) {
    what.element.qp = &qp->verbs;
    raise_event(contextOf(qp->verbs.context), (enum ibv_event_type)type, what);
    return;
  }
  for (struct handle *handle = qp->handles; handle; handle = handle->next) {
    what.element.qp = &handle->verbs;
    raise_event(contextOf(handle->verbs.context), (enum ibv_event_type)type, what);
  }
}

void raise_cq(struct cq *cq, int type) {
  struct ibv_async_event what = {.element.cq = &cq->verbs};
  raise_event(contextOf(cq->verbs.context), (enum ibv_event_type)type, what);
}

void raise_srq(struct srq *srq, int type) {
  struct ibv_async_event what = {.element.srq = &srq->verbs};
  raise_event(contextOf(srq->verbs.context), (enum ibv_event_type)type, what);
}

void raise_port(struct adapter *adapter, unsigned port, int type) {
  for (struct context *context = contexts; context; context = context->next) {
    if (context->adapter != adapter) continue;
    struct ibv_async_event what = {.element.port_num = (int)port};
    raise_event(context, (enum ibv_event_type)type, what);
  }
}

static bool is_about_an_object(const struct ibv_async_event *event) {
  switch ((int)event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_GID_CHANGE:
      return false;
    default:
      return true;
  }
}

/* An object goes, and with it the events about it that nobody has fetched; NULL: all of them. */
void forget_events(struct context *context, const void *element) {
  struct event **at = &context->events;
  while (*at) {
    struct event *event = *at;
    bool about = is_about_an_object(&event->what) && event->what.element.qp == element;
    if (element && !about) {
      at = &event->next;
      continue;
    }
    *at = event->next;
    free(event);
    uint64_t one;
    if (read(context->verbs.context.async_fd, &one, sizeof(one)) != sizeof(one)) break;
  }
  for (at = &context->events; *at; at = &(*at)->next) continue;
  context->eventsEnd = at;
}

/* Where the acknowledgements of an event's object are counted: what was given, what came back. */
static uint32_t *acked_of(const struct ibv_async_event *event, unsigned **given) {
  switch ((int)event->event_type) {
    case IBV_EVENT_CQ_ERR: {
      struct cq *cq = (struct cq *)event->element.cq;
      *given = &cq->asyncGiven;
      return &cq->verbs.async_events_completed;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      struct srq *srq = (struct srq *)event->element.srq;
      *given = &srq->asyncGiven;
      return &srq->verbs.events_completed;
    }
    default: {
      struct ibv_qp *qp = event->element.qp;
      *given = qp->qp_type == IBV_QPT_XRC_RECV ? &((struct handle *)qp)->asyncGiven
                                               : &((struct qp *)qp)->asyncGiven;
      return &qp->events_completed;
    }
  }
}

int ibv_get_async_event(struct ibv_context *verbs, struct ibv_async_event *out) {
  struct context *context = contextOf(verbs);
  int error = injected("ibv_get_async_event");
  if (error) {
    tell_errno(error);
    return -1;
  }
  uint64_t one;
  if (read(verbs->async_fd, &one, sizeof(one)) != sizeof(one)) return -1;
  pthread_mutex_lock(&fakeLock);
  struct event *event = context->events;
  if (event) {
    context->events = event->next;
    if (!context->events) context->eventsEnd = &context->events;
    *out = event->what;
    unsigned *given;
    if (is_about_an_object(out) && acked_of(out, &given)) ++*given;
  }
  pthread_mutex_unlock(&fakeLock);
  free(event);
  if (!event) errno = EAGAIN;
  return event ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event) {
  if (!is_about_an_object(event)) return;
  unsigned *given;
  pthread_mutex_lock(&fakeLock);
  ++*acked_of(event, &given);
  pthread_cond_broadcast(&fakeAcked);
  pthread_mutex_unlock(&fakeLock);
}

void await_acks(const char *what, const unsigned *given, const uint32_t *acked) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ACK_SECONDS;
  while (*given != *acked) {
    if (pthread_cond_timedwait(&fakeAcked, &fakeLock, &until) != ETIMEDOUT) continue;
    fprintf(stderr, "fake libibverbs: %s waits for %u acknowledgements, %u came\n", what, *given,
            *acked);
    abort();
  }
}
