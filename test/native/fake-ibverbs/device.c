/* The one device, its context, protection domains and asynchronous events. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

/* Opaque in our ABI header; only its address means anything. */
struct ibv_device {
  char name[64];
};
static struct ibv_device theDevice = {"fake0"};

struct ibv_device **ibv_get_device_list(int *count) {
  int error = injected("ibv_get_device_list");
  struct ibv_device **list = error ? NULL : calloc(2, sizeof(*list));
  if (!list) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  list[0] = &theDevice;
  if (count) *count = 1;
  return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }

struct ibv_context *ibv_open_device(struct ibv_device *which) {
  int error = injected("ibv_open_device");
  struct device *device = error ? NULL : calloc(1, sizeof(*device));
  if (!device) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  device->verbs.device = which;
  device->verbs.num_comp_vectors = 1;
  device->verbs.cmd_fd = -1;
  device->verbs.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (device->verbs.async_fd < 0) {
    free(device);
    return NULL;
  }
  struct ibv_context_ops *ops = &device->verbs.ops;
  ops->alloc_mw = window_alloc;
  ops->dealloc_mw = window_dealloc;
  ops->poll_cq = cq_poll;
  ops->req_notify_cq = cq_arm;
  ops->post_send = post_send;
  ops->post_recv = post_recv;
  ops->post_srq_recv = post_srq_recv;
  pthread_mutex_init(&device->verbs.mutex, NULL);
  pthread_mutex_init(&device->lock, NULL);
  pthread_cond_init(&device->work, NULL);
  pthread_cond_init(&device->acked, NULL);
  device->eventsEnd = &device->events;
  return &device->verbs;
}

int ibv_close_device(struct ibv_context *context) {
  struct device *device = deviceOf(context);
  int error = injected("ibv_close_device");
  if (error) return error;
  if (device->objects > 0) return EBUSY;
  fake_verbs_set_mode(context, FAKE_VERBS_IMMEDIATE);
  forget_events(device, NULL);
  close(context->async_fd);
  pthread_cond_destroy(&device->work);
  pthread_cond_destroy(&device->acked);
  pthread_mutex_destroy(&device->lock);
  pthread_mutex_destroy(&context->mutex);
  free(device);
  return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  int error = injected("ibv_alloc_pd");
  struct pd *pd = error ? NULL : calloc(1, sizeof(*pd));
  if (!pd) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  pd->verbs.context = context;
  pthread_mutex_lock(&deviceOf(context)->lock);
  deviceOf(context)->objects++;
  pthread_mutex_unlock(&deviceOf(context)->lock);
  return &pd->verbs;
}

int ibv_dealloc_pd(struct ibv_pd *verbs) {
  struct device *device = deviceOf(verbs->context);
  struct pd *pd = (struct pd *)verbs;
  int error = injected("ibv_dealloc_pd");
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  bool busy = pd->users > 0;
  if (!busy) device->objects--;
  pthread_mutex_unlock(&device->lock);
  if (busy) return EBUSY;
  free(pd);
  return 0;
}

void raise_event(struct device *device, enum ibv_event_type type, void *element) {
  struct event *event = calloc(1, sizeof(*event));
  if (!event) abort();
  event->what.event_type = type;
  event->what.element.qp = element;
  *device->eventsEnd = event;
  device->eventsEnd = &event->next;
  uint64_t one = 1;
  if (write(device->verbs.async_fd, &one, sizeof(one)) != sizeof(one)) abort();
}

/* An object goes, and with it the events about it that nobody has fetched; NULL: all of them. */
void forget_events(struct device *device, const void *element) {
  struct event **at = &device->events;
  while (*at) {
    struct event *event = *at;
    if (element && event->what.element.qp != element) {
      at = &event->next;
      continue;
    }
    *at = event->next;
    free(event);
    uint64_t one;
    if (read(device->verbs.async_fd, &one, sizeof(one)) != sizeof(one)) break;
  }
  for (at = &device->events; *at; at = &(*at)->next) continue;
  device->eventsEnd = at;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *out) {
  struct device *device = deviceOf(context);
  int error = injected("ibv_get_async_event");
  if (error) {
    errno = error;
    return -1;
  }
  uint64_t one;
  if (read(context->async_fd, &one, sizeof(one)) != sizeof(one)) return -1;
  pthread_mutex_lock(&device->lock);
  struct event *event = device->events;
  if (event) {
    device->events = event->next;
    if (!device->events) device->eventsEnd = &device->events;
    *out = event->what;
  }
  pthread_mutex_unlock(&device->lock);
  free(event);
  if (!event) errno = EAGAIN;
  return event ? 0 : -1;
}

/* Destroying an object does not wait for its asynchronous events here. */
void ibv_ack_async_event(struct ibv_async_event *event) { (void)event; }
