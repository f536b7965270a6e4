/* Who carries requests out, and when: the caller, the test, a thread, or the time. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

/* Requests between two releases of the lock: small, so that the caller gets in between. */
enum { BURST = 4 };

static struct qp *parked; /* those that wait for something, or until a time */
static int defaultMode = -1;
static pthread_t ticker;
static pthread_cond_t tick;
static bool tickerRuns, tickerStops;

static struct context *context_of(const struct qp *qp) { return contextOf(qp->verbs.context); }

static uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t now_of(const struct context *context) {
  return context->mode == FAKE_VERBS_MANUAL ? context->elapsedNs : clock_ns();
}

static void unpark(struct qp *qp) {
  if (!qp->parked) return;
  struct qp **at = &parked;
  while (*at != qp) at = &(*at)->nextWaiting;
  *at = qp->nextWaiting;
  qp->parked = false;
}

void make_runnable(struct qp *qp) {
  if (qp->domain) { /* an XRC target has no queues of its own */
    if (qp->attr.qp_state != IBV_QPS_ERR || qp->lastWqeReported) return;
    qp->lastWqeReported = true;
    raise_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
    return;
  }
  unpark(qp);
  if (qp->queued) return;
  qp->queued = true;
  qp->nextRunnable = NULL;
  *context_of(qp)->runnableEnd = qp;
  context_of(qp)->runnableEnd = &qp->nextRunnable;
}

void unschedule(struct qp *qp) {
  if (qp->domain) return;
  unpark(qp);
  qp->waiting = WAITING_NOT;
  if (!qp->queued) return;
  struct context *context = context_of(qp);
  struct qp **at = &context->runnable;
  while (*at != qp) at = &(*at)->nextRunnable;
  *at = qp->nextRunnable;
  for (at = &context->runnable; *at; at = &(*at)->nextRunnable) continue;
  context->runnableEnd = at;
  qp->queued = false;
}

/* Timers of contexts that do not stand still. */
static uint64_t next_deadline(void) {
  uint64_t next = NEVER;
  for (struct qp *qp = parked; qp; qp = qp->nextWaiting) {
    if (context_of(qp)->mode != FAKE_VERBS_MANUAL && qp->deadline < next) next = qp->deadline;
  }
  return next;
}

static void wake_due(void) {
  struct qp *qp = parked;
  while (qp) {
    struct qp *next = qp->nextWaiting;
    if (qp->deadline <= now_of(context_of(qp))) make_runnable(qp);
    qp = next;
  }
}

static void *run_ticker(void *nothing) {
  pthread_mutex_lock(&fakeLock);
  while (!tickerStops) {
    uint64_t next = next_deadline();
    if (next == NEVER) {
      pthread_cond_wait(&tick, &fakeLock);
      continue;
    }
    struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
    pthread_cond_timedwait(&tick, &fakeLock, &until);
    wake_due();
    kick();
  }
  pthread_mutex_unlock(&fakeLock);
  return nothing;
}

static void start_ticker(void) {
  if (tickerRuns) {
    pthread_cond_signal(&tick);
    return;
  }
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&tick, &monotonic);
  pthread_condattr_destroy(&monotonic);
  tickerStops = false;
  if (pthread_create(&ticker, NULL, run_ticker, NULL)) abort();
  tickerRuns = true;
}

/* The last context has gone. Who opens one meanwhile starts the thread anew. */
void schedule_end(void) {
  pthread_mutex_lock(&fakeLock);
  bool stop = tickerRuns && !tickerStops && !contexts;
  if (stop) {
    tickerStops = true;
    pthread_cond_signal(&tick);
  }
  pthread_mutex_unlock(&fakeLock);
  if (!stop) return;
  pthread_join(ticker, NULL);
  pthread_mutex_lock(&fakeLock);
  pthread_cond_destroy(&tick);
  tickerRuns = false;
  if (next_deadline() != NEVER) start_ticker();
  pthread_mutex_unlock(&fakeLock);
}

/* The first time that a request meets this, its time begins. */
void wait_until(struct qp *qp, enum waiting what, uint64_t ns) {
  if (qp->waiting != what) {
    qp->waiting = what;
    qp->deadline = ns == NEVER ? NEVER : now_of(context_of(qp)) + ns;
  }
  qp->parked = true;
  qp->nextWaiting = parked;
  parked = qp;
  bool timed = qp->deadline != NEVER && context_of(qp)->mode != FAKE_VERBS_MANUAL;
  if (timed) start_ticker();
}

void wake_waiting(void) {
  while (parked) make_runnable(parked);
}

void kick(void) {
  bool again = true;
  while (again) {
    again = false;
    for (struct context *context = contexts; context; context = context->next) {
      if (!context->runnable) continue;
      if (context->mode == FAKE_VERBS_THREAD) pthread_cond_signal(&context->work);
      if (context->mode == FAKE_VERBS_IMMEDIATE && execute(context, 0) > 0) again = true;
    }
  }
}

/* The first queue pair goes behind the others: one that is refilled all the time starves none. */
static void pass_turn(struct context *context) {
  struct qp *first = context->runnable;
  if (!first || !first->nextRunnable) return;
  context->runnable = first->nextRunnable;
  first->nextRunnable = NULL;
  *context->runnableEnd = first;
  context->runnableEnd = &first->nextRunnable;
}

static void *run_worker(void *argument) {
  struct context *context = argument;
  pthread_mutex_lock(&fakeLock);
  while (!context->stopping) {
    struct timespec pace = {0, (long)context->paceUs * 1000};
    if (execute(context, context->paceUs > 0 ? 1 : BURST) == 0) {
      pthread_cond_wait(&context->work, &fakeLock);
      continue;
    }
    pass_turn(context);
    kick();
    pthread_mutex_unlock(&fakeLock);
    if (pace.tv_nsec > 0) nanosleep(&pace, NULL);
    else sched_yield();
    pthread_mutex_lock(&fakeLock);
  }
  pthread_mutex_unlock(&fakeLock);
  return NULL;
}

enum fake_verbs_mode default_mode(void) {
  if (defaultMode >= 0) return (enum fake_verbs_mode)defaultMode;
  const char *named = getenv("FAKE_VERBS_MODE");
  if (named && strcmp(named, "manual") == 0) return FAKE_VERBS_MANUAL;
  if (named && strcmp(named, "thread") == 0) return FAKE_VERBS_THREAD;
  return FAKE_VERBS_IMMEDIATE;
}

void fake_verbs_set_default_mode(enum fake_verbs_mode mode) { defaultMode = (int)mode; }

/* What waits begins its time anew: the clocks of the modes have nothing in common. */
static void change_mode(struct context *context, enum fake_verbs_mode mode) {
  context->mode = mode;
  for (struct qp *qp = parked; qp; qp = qp->nextWaiting) {
    if (context_of(qp) == context) qp->waiting = WAITING_NOT;
  }
  wake_waiting();
}

static int set_mode(struct context *context, enum fake_verbs_mode mode) {
  pthread_mutex_lock(&fakeLock);
  enum fake_verbs_mode before = context->mode;
  change_mode(context, mode);
  context->stopping = true;
  pthread_cond_signal(&context->work);
  pthread_mutex_unlock(&fakeLock);
  if (before == FAKE_VERBS_THREAD) pthread_join(context->thread, NULL);
  pthread_mutex_lock(&fakeLock);
  context->stopping = false;
  int error = 0;
  if (mode == FAKE_VERBS_THREAD) {
    error = pthread_create(&context->thread, NULL, run_worker, context);
    if (error) context->mode = FAKE_VERBS_MANUAL;
  }
  kick();
  pthread_mutex_unlock(&fakeLock);
  return error;
}

int fake_verbs_set_mode(struct ibv_context *only, enum fake_verbs_mode mode) {
  if (only) return set_mode(contextOf(only), mode);
  int error = 0;
  fake_verbs_set_default_mode(mode);
  for (struct context *context = contexts; context && !error; context = context->next) {
    error = set_mode(context, mode);
  }
  return error;
}

void schedule_stop(struct context *context) { set_mode(context, FAKE_VERBS_MANUAL); }

/* Whether a call that names one context, or all by NULL, is about this one. */
static bool is_meant(const struct context *context, struct ibv_context *only) {
  return !only || contextOf(only) == context;
}

void fake_verbs_set_pace(struct ibv_context *only, unsigned microseconds) {
  pthread_mutex_lock(&fakeLock);
  for (struct context *context = contexts; context; context = context->next) {
    if (!is_meant(context, only)) continue;
    context->paceUs = microseconds < 1000000 ? microseconds : 999999;
  }
  pthread_mutex_unlock(&fakeLock);
}

unsigned fake_verbs_progress(struct ibv_context *only, unsigned limit) {
  unsigned done = 0, before;
  pthread_mutex_lock(&fakeLock);
  do { /* what one carries out may make work for another */
    before = done;
    for (struct context *context = contexts; context; context = context->next) {
      if (limit != 0 && done == limit) break;
      if (is_meant(context, only)) done += execute(context, limit == 0 ? 0 : limit - done);
    }
  } while (done != before && done != limit);
  kick();
  pthread_mutex_unlock(&fakeLock);
  return done;
}

void fake_verbs_elapse(struct ibv_context *only, unsigned microseconds) {
  pthread_mutex_lock(&fakeLock);
  for (struct context *context = contexts; context; context = context->next) {
    if (is_meant(context, only)) context->elapsedNs += (uint64_t)microseconds * 1000;
  }
  wake_due();
  kick();
  pthread_mutex_unlock(&fakeLock);
}
