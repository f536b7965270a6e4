/* Failures on demand, counted by function name. */
#include <errno.h>
#include <string.h>

#include "internal.h"

static const char *const FUNCTIONS[] = {
    "ibv_get_device_list", "ibv_open_device", "ibv_close_device",
    "ibv_get_async_event", "ibv_alloc_pd", "ibv_dealloc_pd",
    "ibv_reg_mr_iova", "ibv_dereg_mr", "ibv_alloc_mw",
    "ibv_dealloc_mw", "ibv_create_comp_channel", "ibv_destroy_comp_channel",
    "ibv_create_cq", "ibv_resize_cq", "ibv_destroy_cq",
    "ibv_get_cq_event", "ibv_poll_cq", "ibv_req_notify_cq",
    "ibv_create_srq", "ibv_modify_srq", "ibv_destroy_srq",
    "ibv_create_qp", "ibv_modify_qp", "ibv_query_qp",
    "ibv_destroy_qp", "ibv_post_send", "ibv_post_recv",
    "ibv_post_srq_recv",
};
enum { COUNT = sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]) };

static struct {
  unsigned countdown;
  int error;
} plans[COUNT];
static atomic_uint planned; /* how many: the usual zero costs one load */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int indexOf(const char *function) {
  for (int i = 0; i < COUNT; i++) {
    if (strcmp(FUNCTIONS[i], function) == 0) return i;
  }
  return -1;
}

int fake_verbs_inject(const char *function, unsigned nth, int error) {
  int i = indexOf(function);
  if (i < 0 || nth == 0) return EINVAL;
  pthread_mutex_lock(&lock);
  if (plans[i].countdown == 0) atomic_fetch_add(&planned, 1);
  plans[i].countdown = nth;
  plans[i].error = error;
  pthread_mutex_unlock(&lock);
  return 0;
}

void fake_verbs_clear_injections(void) {
  pthread_mutex_lock(&lock);
  memset(plans, 0, sizeof(plans));
  atomic_store(&planned, 0);
  pthread_mutex_unlock(&lock);
}

int injected(const char *function) {
  if (atomic_load_explicit(&planned, memory_order_relaxed) == 0) return 0;
  int error = 0;
  int i = indexOf(function);
  pthread_mutex_lock(&lock);
  if (i >= 0 && plans[i].countdown > 0 && --plans[i].countdown == 0) {
    error = plans[i].error;
    atomic_fetch_sub(&planned, 1);
  }
  pthread_mutex_unlock(&lock);
  return error;
}
