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

struct ibv_device **ibv_get_device_list(int *num_devices);
void ibv_free_device_list(struct ibv_device **list);
struct ibv_context *ibv_open_device(struct ibv_device *device);
/* EBUSY while objects are left (the real one leaks them). */
int ibv_close_device(struct ibv_context *context);
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void ibv_ack_async_event(struct ibv_async_event *event);

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
int ibv_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access);
int ibv_dereg_mr(struct ibv_mr *mr);

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector);
int ibv_resize_cq(struct ibv_cq *cq, int cqe);
/* Waits until every event of it has been acknowledged, as the real one does. */
int ibv_destroy_cq(struct ibv_cq *cq);
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int ibv_destroy_srq(struct ibv_srq *srq);

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init_attr);
int ibv_destroy_qp(struct ibv_qp *qp);

/* How posted requests are carried out. */
enum fake_verbs_mode {
  FAKE_VERBS_IMMEDIATE, /* before the posting call returns */
  FAKE_VERBS_MANUAL,    /* by fake_verbs_progress */
  FAKE_VERBS_THREAD,    /* by a thread of the device, some time */
};

/* Changes the mode; leaving THREAD joins the thread. Requests that wait stay waiting. */
int fake_verbs_set_mode(struct ibv_context *context, enum fake_verbs_mode mode);
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
