/* Listing and opening devices; contexts and protection domains. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

pthread_mutex_t fakeLock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fakeAcked = PTHREAD_COND_INITIALIZER;
struct context *contexts;

void *failed(int error) {
  tell_errno(error);
  return NULL;
}

struct ibv_device **ibv_get_device_list(int *number) {
  int error = injected("ibv_get_device_list");
  struct ibv_device **list = error ? NULL : calloc(MAX_ADAPTERS + 1, sizeof(*list));
  if (!list) return failed(error ? error : ENOMEM);
  int found = 0;
  pthread_mutex_lock(&fakeLock);
  adapters_init();
  for (unsigned i = 0; i < adapterCount; i++) {
    if (adapters[i].present) list[found++] = &adapters[i].verbs;
  }
  count(NULL, KIND_LIST, 1);
  pthread_mutex_unlock(&fakeLock);
  if (number) *number = found;
  return list;
}

void ibv_free_device_list(struct ibv_device **list) {
  pthread_mutex_lock(&fakeLock);
  count(NULL, KIND_LIST, -1);
  pthread_mutex_unlock(&fakeLock);
  free(list);
}

const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }

uint64_t ibv_get_device_guid(struct ibv_device *device) {
  return htobe64(((struct adapter *)device)->guid);
}

int ibv_get_device_index(struct ibv_device *device) {
  return (int)((struct adapter *)device - adapters);
}

int ibv_fork_init(void) { return 0; }

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
                      size_t bytes);

static void fill_operations(struct verbs_context *verbs) {
  struct ibv_context_ops *ops = &verbs->context.ops;
  ops->alloc_mw = window_alloc;
  ops->dealloc_mw = window_dealloc;
  ops->bind_mw = window_bind_type1;
  ops->poll_cq = cq_poll;
  ops->req_notify_cq = cq_arm;
  ops->post_send = post_send;
  ops->post_recv = post_recv;
  ops->post_srq_recv = post_srq_recv;
  verbs->query_port = query_port;
  verbs->sz = sizeof(*verbs);
  verbs->context.abi_compat = (void *)UINTPTR_MAX;
  xrc_attach(verbs);
}

struct ibv_context *ibv_open_device(struct ibv_device *which) {
  struct adapter *adapter = (struct adapter *)which;
  int error = injected("ibv_open_device");
  if (!error && !adapter->present) error = ENODEV;
  struct context *context = error ? NULL : calloc(1, sizeof(*context));
  if (!context) return failed(error ? error : ENOMEM);
  struct ibv_context *verbs = &context->verbs.context;
  verbs->device = which;
  verbs->num_comp_vectors = 1;
  verbs->cmd_fd = -1;
  verbs->async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (verbs->async_fd < 0) {
    free(context);
    return NULL;
  }
  fill_operations(&context->verbs);
  pthread_mutex_init(&verbs->mutex, NULL);
  pthread_cond_init(&context->work, NULL);
  context->adapter = adapter;
  context->eventsEnd = &context->events;
  context->runnableEnd = &context->runnable;
  pthread_mutex_lock(&fakeLock);
  if (!adapter->keys) adapter->keys = calloc(MAX_KEYS, sizeof(*adapter->keys));
  if (!adapter->keys) abort();
  count(NULL, KIND_CONTEXT, 1);
  context->next = contexts;
  contexts = context;
  pthread_mutex_unlock(&fakeLock);
  fake_verbs_set_mode(verbs, default_mode());
  return verbs;
}

/* With the last context the keys go: nothing is left for a leak checker to find. */
static void leave(struct context *context) {
  struct context **at = &contexts;
  bool last = true;
  while (*at != context) at = &(*at)->next;
  *at = context->next;
  for (struct context *other = contexts; other; other = other->next) {
    if (other->adapter == context->adapter) last = false;
  }
  if (last) {
    free(context->adapter->keys);
    context->adapter->keys = NULL;
  }
  count(NULL, KIND_CONTEXT, -1);
}

int ibv_close_device(struct ibv_context *verbs) {
  struct context *context = contextOf(verbs);
  int error = injected("ibv_close_device");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  bool busy = context->objects > 0;
  pthread_mutex_unlock(&fakeLock);
  if (busy) return EBUSY;
  schedule_stop(context);
  pthread_mutex_lock(&fakeLock);
  forget_events(context, NULL);
  leave(context);
  bool none = contexts == NULL;
  pthread_mutex_unlock(&fakeLock);
  if (none) schedule_end();
  close(verbs->async_fd);
  pthread_cond_destroy(&context->work);
  pthread_mutex_destroy(&verbs->mutex);
  free(context);
  return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  int error = refused(context, "ibv_alloc_pd");
  struct pd *pd = error ? NULL : calloc(1, sizeof(*pd));
  if (!pd) return failed(error ? error : ENOMEM);
  pd->verbs.context = context;
  pthread_mutex_lock(&fakeLock);
  count(context, KIND_PD, 1);
  pthread_mutex_unlock(&fakeLock);
  return &pd->verbs;
}

int ibv_dealloc_pd(struct ibv_pd *verbs) {
  struct pd *pd = (struct pd *)verbs;
  int error = injected("ibv_dealloc_pd");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  bool busy = pd->users > 0;
  if (!busy) count(verbs->context, KIND_PD, -1);
  pthread_mutex_unlock(&fakeLock);
  if (busy) return EBUSY;
  free(pd);
  return 0;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr,
                      size_t bytes) {
  int error = refused(context, "ibv_query_port");
  struct adapter *adapter = adapterOf(context);
  if (!error && (number < 1 || number > adapter->portCount)) error = EINVAL;
  if (error) return error;
  bool up = adapter->ports[number - 1].up;
  struct ibv_port_attr all = {
      .state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
      .max_mtu = IBV_MTU_4096,
      .active_mtu = IBV_MTU_4096,
      .gid_tbl_len = MAX_GIDS,
      .port_cap_flags = 1 << 16, /* communication management */
      .max_msg_sz = 1u << 30,
      .pkey_tbl_len = 1,
      .max_vl_num = 1,
      .active_width = 2,
      .active_speed = 32,
      .phys_state = up ? 5 : 3,
      .link_layer = IBV_LINK_LAYER_ETHERNET,
      .flags = 1 << 1, /* a GRH is required */
  };
  for (size_t i = 0; i < bytes && i < sizeof(all); i++) {
    ((uint8_t *)attr)[i] = ((const uint8_t *)&all)[i];
  }
  return 0;
}

/* By name it knows what was there when it was young: up to link_layer and flags. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr) {
  return query_port(context, port, attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}
