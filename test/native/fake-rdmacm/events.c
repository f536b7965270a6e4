/* Event channels. The descriptor is readable while an event waits. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

static unsigned channels, unackedEvents;

EXPORT struct rdma_event_channel *rdma_create_event_channel(void) {
  int error = injected(__func__);
  struct channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  if (!channel) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  channel->verbs.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  channel->end = &channel->first;
  pthread_mutex_lock(&lock);
  channels++;
  pthread_mutex_unlock(&lock);
  return &channel->verbs;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *verbs) {
  struct channel *channel = (struct channel *)verbs;
  pthread_mutex_lock(&lock);
  channels--;
  end_ids_of(verbs);
  while (channel->first) {
    struct event *event = channel->first;
    channel->first = event->next;
    free(event);
  }
  pthread_mutex_unlock(&lock);
  close(verbs->fd);
  free(channel);
}

struct event *new_event(struct id *id, enum rdma_cm_event_type type, int status) {
  struct event *event = calloc(1, sizeof(*event));
  if (!event) abort();
  event->verbs.id = &id->verbs;
  event->verbs.event = type;
  event->verbs.status = status;
  event->owner = id;
  return event;
}

void queue_event(struct event *event) {
  struct channel *channel = (struct channel *)event->owner->verbs.channel;
  *channel->end = event;
  channel->end = &event->next;
  uint64_t one = 1;
  if (write(channel->verbs.fd, &one, sizeof(one)) != sizeof(one)) abort();
}

void post(struct id *id, enum rdma_cm_event_type type, int status) {
  if (id->accepted) queue_event(new_event(id, type, status));
}

void set_private_data(struct event *event, const void *data, size_t length, uint8_t fieldBytes) {
  if (length > 0) memcpy(event->privateData, data, length);
  if (is_datagram((struct id *)event->verbs.id)) {
    event->verbs.param.ud.private_data = event->privateData;
    event->verbs.param.ud.private_data_len = fieldBytes;
  } else {
    event->verbs.param.conn.private_data = event->privateData;
    event->verbs.param.conn.private_data_len = fieldBytes;
  }
}

void post_parameters(struct id *id, enum rdma_cm_event_type type, const struct id *from,
                     uint8_t fieldBytes) {
  struct event *event = new_event(id, type, 0);
  const struct rdma_conn_param *given = &from->parameters;
  if (is_datagram(id)) {
    event->verbs.param.ud.qp_num = given->qp_num;
    event->verbs.param.ud.qkey = RDMA_UDP_QKEY;
  } else {
    event->verbs.param.conn = *given;
    event->verbs.param.conn.responder_resources = given->initiator_depth;
    event->verbs.param.conn.initiator_depth = given->responder_resources;
  }
  set_private_data(event, from->privateData, given->private_data_len, fieldBytes);
  if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    event->verbs.listen_id = &id->listener->verbs;
    event->owner = id->listener;
  }
  queue_event(event);
}

static bool isOf(const struct event *event, const struct id *id) {
  return event->owner == id || event->verbs.id == &id->verbs;
}

void drop_events(struct id *id) {
  struct channel *channel = (struct channel *)id->verbs.channel;
  for (struct event **at = &channel->first; *at;) {
    struct event *event = *at;
    if (!isOf(event, id)) {
      at = &event->next;
      continue;
    }
    *at = event->next;
    free(event);
    uint64_t one;
    if (read(channel->verbs.fd, &one, sizeof(one)) != sizeof(one)) abort();
  }
  channel->end = &channel->first;
  while (*channel->end) channel->end = &(*channel->end)->next;
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *verbs, struct rdma_cm_event **out) {
  FAIL_IF_INJECTED();
  if (switches[FAKE_UNREADABLE]) return fail(switches[FAKE_UNREADABLE]);
  struct channel *channel = (struct channel *)verbs;
  if (!(fcntl(verbs->fd, F_GETFL) & O_NONBLOCK)) {
    struct pollfd readable = {verbs->fd, POLLIN, 0};
    poll(&readable, 1, -1);
  }
  pthread_mutex_lock(&lock);
  struct event *event = channel->first;
  if (event) {
    uint64_t one;
    if (read(verbs->fd, &one, sizeof(one)) != sizeof(one)) abort();
    channel->first = event->next;
    if (!channel->first) channel->end = &channel->first;
    event->owner->unacked++;
    unackedEvents++;
    if (event->verbs.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      ((struct id *)event->verbs.id)->fetched = true;
      event->owner->waiting--;
      retry_requests(event->owner);
    }
  }
  pthread_mutex_unlock(&lock);
  if (!event) return fail(EAGAIN);
  *out = &event->verbs;
  return 0;
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *verbs) {
  struct event *event = (struct event *)verbs;
  pthread_mutex_lock(&lock);
  event->owner->unacked--;
  unackedEvents--;
  pthread_mutex_unlock(&lock);
  free(event);
  return 0;
}

void fake_rdmacm_raise(enum rdma_cm_event_type type, int status, const char *device) {
  pthread_mutex_lock(&lock);
  for (struct id *id = ids; id; id = id->next) {
    if (!id->verbs.verbs) continue;
    if (!device || strcmp(device_name(id->verbs.verbs), device) == 0) post(id, type, status);
  }
  pthread_mutex_unlock(&lock);
}

unsigned fake_rdmacm_live(void) {
  pthread_mutex_lock(&lock);
  unsigned count = channels + unackedEvents;
  for (struct id *id = ids; id; id = id->next) count++;
  pthread_mutex_unlock(&lock);
  return count;
}
