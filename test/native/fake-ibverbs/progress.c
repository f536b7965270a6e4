/* Who carries requests out: the caller, the test, or a thread. */
#include <sched.h>

#include "internal.h"

/* Requests between two releases of the lock: small, so that the caller gets in between. */
enum { BURST = 4 };

static void *worker(void *argument) {
  struct device *device = argument;
  pthread_mutex_lock(&device->lock);
  while (!device->stopping) {
    if (execute(device, BURST) == 0) {
      pthread_cond_wait(&device->work, &device->lock);
      continue;
    }
    pthread_mutex_unlock(&device->lock);
    sched_yield();
    pthread_mutex_lock(&device->lock);
  }
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

int fake_verbs_set_mode(struct ibv_context *context, enum fake_verbs_mode mode) {
  struct device *device = deviceOf(context);
  pthread_mutex_lock(&device->lock);
  enum fake_verbs_mode before = device->mode;
  device->mode = mode;
  device->stopping = true;
  pthread_cond_signal(&device->work);
  pthread_mutex_unlock(&device->lock);
  if (before == FAKE_VERBS_THREAD) pthread_join(device->thread, NULL);
  device->stopping = false;
  if (mode != FAKE_VERBS_THREAD) return 0;
  int error = pthread_create(&device->thread, NULL, worker, device);
  if (error) device->mode = FAKE_VERBS_MANUAL;
  return error;
}

unsigned fake_verbs_progress(struct ibv_context *context, unsigned limit) {
  struct device *device = deviceOf(context);
  pthread_mutex_lock(&device->lock);
  unsigned done = execute(device, limit);
  pthread_mutex_unlock(&device->lock);
  return done;
}
