/* Failures on demand, and how often each function has been called. */
#include <string.h>

#include "internal.h"

static const char *const FUNCTIONS[] = {
    "rdma_create_event_channel", "rdma_create_id", "rdma_destroy_id", "rdma_migrate_id",
    "rdma_bind_addr", "rdma_resolve_addr", "rdma_resolve_route", "rdma_set_option",
    "rdma_connect", "rdma_establish", "rdma_listen", "rdma_accept", "rdma_reject",
    "rdma_notify", "rdma_disconnect", "rdma_init_qp_attr", "rdma_get_cm_event",
};
enum { COUNT = sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]) };

static struct {
  unsigned countdown, calls;
  int error;
} plans[COUNT];
static pthread_mutex_t planLock = PTHREAD_MUTEX_INITIALIZER;

static int indexOf(const char *function) {
  for (int i = 0; i < COUNT; i++) {
    if (strcmp(FUNCTIONS[i], function) == 0) return i;
  }
  return -1;
}

int fake_rdmacm_inject(const char *function, unsigned nth, int error) {
  int i = indexOf(function);
  if (i < 0 || nth == 0) return EINVAL;
  pthread_mutex_lock(&planLock);
  plans[i].countdown = nth;
  plans[i].error = error;
  pthread_mutex_unlock(&planLock);
  return 0;
}

unsigned fake_rdmacm_calls(const char *function) {
  int i = indexOf(function);
  return i < 0 ? 0 : plans[i].calls;
}

void clear_injections(void) { memset(plans, 0, sizeof(plans)); }

int injected(const char *function) {
  int error = 0;
  int i = indexOf(function);
  pthread_mutex_lock(&planLock);
  if (i >= 0) {
    plans[i].calls++;
    if (plans[i].countdown > 0 && --plans[i].countdown == 0) error = plans[i].error;
  }
  pthread_mutex_unlock(&planLock);
  return error;
}
