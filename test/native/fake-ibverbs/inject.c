/* Failures on demand, counted by function name. */
#include <errno.h>
#include <string.h>

#include "internal.h"

static const char *const FUNCTIONS[] = {
    "ibv_get_device_list",  "ibv_open_device",     "ibv_close_device",    "ibv_query_device",
    "ibv_query_port",       "ibv_query_gid",       "ibv_query_pkey",      "_ibv_query_gid_ex",
    "_ibv_query_gid_table", "ibv_get_async_event", "ibv_alloc_pd",        "ibv_dealloc_pd",
    "ibv_reg_mr",           "ibv_reg_mr_iova",     "ibv_reg_mr_iova2",    "ibv_dereg_mr",
    "ibv_alloc_mw",         "ibv_dealloc_mw",      "ibv_bind_mw",         "ibv_create_ah",
    "ibv_destroy_ah",       "ibv_attach_mcast",    "ibv_detach_mcast",    "ibv_create_comp_channel",
    "ibv_destroy_comp_channel", "ibv_create_cq",   "ibv_resize_cq",       "ibv_destroy_cq",
    "ibv_get_cq_event",     "ibv_poll_cq",         "ibv_req_notify_cq",   "ibv_create_srq",
    "ibv_create_srq_ex",    "ibv_modify_srq",      "ibv_query_srq",       "ibv_get_srq_num",
    "ibv_destroy_srq",      "ibv_create_qp",       "ibv_create_qp_ex",    "ibv_open_qp",
    "ibv_modify_qp",        "ibv_query_qp",        "ibv_destroy_qp",      "ibv_open_xrcd",
    "ibv_close_xrcd",       "ibv_post_send",       "ibv_post_recv",       "ibv_post_srq_recv",
};
enum { COUNT = sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]) };

static struct {
  unsigned countdown, calls;
  int error;
} plans[COUNT];
static atomic_uint planned; /* how many: the usual zero costs one load */
static atomic_bool counting;
static enum fake_verbs_failure failureKind;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned requestCountdown;
static enum ibv_wc_status requestStatus;

static int indexOf(const char *function) {
  for (int i = 0; i < COUNT; i++) {
    if (strcmp(FUNCTIONS[i], function) == 0) return i;
  }
  return -1;
}

const char *fake_verbs_function(unsigned index) { return index < COUNT ? FUNCTIONS[index] : NULL; }

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

unsigned fake_verbs_calls(const char *function) {
  int i = indexOf(function);
  pthread_mutex_lock(&lock);
  atomic_store(&counting, true);
  unsigned calls = i < 0 ? 0 : plans[i].calls;
  pthread_mutex_unlock(&lock);
  return calls;
}

void fake_verbs_clear_injections(void) {
  pthread_mutex_lock(&lock);
  memset(plans, 0, sizeof(plans));
  failureKind = FAKE_VERBS_DOCUMENTED;
  atomic_store(&planned, 0);
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&fakeLock);
  requestCountdown = 0;
  pthread_mutex_unlock(&fakeLock);
}

void fake_verbs_set_failure(enum fake_verbs_failure how) {
  pthread_mutex_lock(&lock);
  failureKind = how;
  pthread_mutex_unlock(&lock);
}

/* What the function returns, if it is one that returns a number. */
static int failureFor(int error) {
  switch (failureKind) {
    case FAKE_VERBS_MINUS_ONE:
      errno = error;
      return -1;
    case FAKE_VERBS_NEGATIVE:
      return -error;
    case FAKE_VERBS_SILENT:
      return -1;
    default:
      return error;
  }
}

int injected(const char *function) {
  if (atomic_load_explicit(&planned, memory_order_relaxed) == 0 &&
      !atomic_load_explicit(&counting, memory_order_relaxed)) {
    return 0;
  }
  int error = 0;
  int i = indexOf(function);
  pthread_mutex_lock(&lock);
  if (i >= 0) plans[i].calls++;
  if (i >= 0 && plans[i].countdown > 0 && --plans[i].countdown == 0) {
    error = failureFor(plans[i].error);
    atomic_fetch_sub(&planned, 1);
  }
  pthread_mutex_unlock(&lock);
  return error;
}

/* -1 has set errno, or has left it alone on purpose. */
void tell_errno(int error) {
  if (error != -1) errno = error < 0 ? -error : error;
}

int refused(struct ibv_context *context, const char *function) {
  int error = injected(function);
  return !error && !adapterOf(context)->present ? EIO : error;
}

void fake_verbs_fail_request(unsigned nth, enum ibv_wc_status status) {
  pthread_mutex_lock(&fakeLock);
  requestCountdown = nth;
  requestStatus = status;
  pthread_mutex_unlock(&fakeLock);
}

enum ibv_wc_status spoilt(enum ibv_wc_status status) {
  if (requestCountdown == 0 || --requestCountdown > 0) return status;
  return requestStatus;
}
