/*
 * A libibverbs without hardware: queue pairs of one device talk to each other in memory. For tests
 * of what is built on verbs. The calls are those of the public API (verbs_abi.h has the types);
 * what only a fake can do is at the end.
 *
 * What it does as hardware does:
 * - A send queue slot is free again when a completion of it, or of a later request, is polled.
 * - post_* stop at the first request they refuse, name it in bad_wr and return errno.
 * - Errors move the queue pair to ERR; whatever is or will be posted then is flushed in order.
 * - Moving to RESET, or destroying, discards the requests and their completions.
 * - A CQ that overruns loses the completion, raises CQ_ERR and moves its queue pairs to ERR.
 * - A notification is one-shot and only for a completion added after req_notify_cq.
 * - A request that finds no receive waits for one (RNR); there is no retry limit.
 * - iova must agree with the address modulo 4096 (the kernel's rule for registration).
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include "verbs_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* How posted requests are carried out. */
enum fake_verbs_mode {
  FAKE_VERBS_IMMEDIATE, /* before the posting call returns */
  FAKE_VERBS_MANUAL,    /* by fake_verbs_progress */
  FAKE_VERBS_THREAD,    /* by a thread of the device, some time */
};

/* Changes the mode; leaving THREAD joins the thread. Requests that wait stay waiting. */
int fake_verbs_set_mode(struct ibv_context *context, enum fake_verbs_mode mode);
/* The thread sleeps so long after each request (below a second); 0: it does not. */
void fake_verbs_set_pace(struct ibv_context *context, unsigned microseconds);
/* Carries out at most `limit` requests (0: all that can be); returns how many. */
unsigned fake_verbs_progress(struct ibv_context *context, unsigned limit);
/*
 * The nth call (1 is the next one) of the function of that name fails with the errno given, once.
 * Every function above can be named, and those behind the context as "ibv_poll_cq",
 * "ibv_req_notify_cq", "ibv_post_send", "ibv_post_recv", "ibv_post_srq_recv", "ibv_alloc_mw",
 * "ibv_dealloc_mw". A posting call counts per request. EINVAL: no such function.
 */
int fake_verbs_inject(const char *function, unsigned nth, int error);
void fake_verbs_clear_injections(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
