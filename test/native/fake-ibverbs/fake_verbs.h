/*
 * A libibverbs without hardware: queue pairs of its devices talk to each other in memory. For tests
 * of what is built on verbs. The calls are those of the public API (verbs_abi.h and verbs_more.h
 * have the types); what only a fake can do is at the end.
 *
 * What it does as hardware does:
 * - A send queue slot is free again when a completion of it, or of a later request, is polled.
 * - post_* stop at the first request they refuse, name it in bad_wr and return errno.
 * - Errors move the queue pair to ERR; whatever is or will be posted then is flushed in order.
 * - Moving to RESET, or destroying, discards the requests and their completions.
 * - A CQ that overruns loses the completion, raises CQ_ERR and moves its queue pairs to ERR.
 * - A notification is one-shot and only for a completion added after req_notify_cq.
 * - A request that finds no receive waits for one (RNR), as often and as long as the attributes of
 *   the two queue pairs say; one that nobody answers fails after (retries + 1) timeouts.
 * - iova must agree with the address modulo 4096 (the kernel's rule for registration).
 * - ibv_close_device is refused (EBUSY) while objects are left; the real one leaks them.
 * - Destroying waits for the acknowledgement of the object's events: ten seconds, then it aborts,
 *   because whoever waits longer waits for ever.
 * - Numbers of queue pairs and keys are a device's own: two devices have the same ones.
 *
 * Where hardware and the kernel's rxe differ it does as mlx5 (LOC_LEN_ERR, LOC_PROT_ERR at the
 * receiver), but for SEND_WITH_INV of a wrong key, which the sender does not hear of (rxe).
 * A message is carried out as a whole: there are no packets, so nothing can be half done.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <sys/types.h>

#include "verbs_more.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Beside those of verbs_abi.h. */
uint64_t ibv_get_device_guid(struct ibv_device *device);
int ibv_get_device_index(struct ibv_device *device);
int ibv_fork_init(void);
int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey);
int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, uint16_t pkey);
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t max_entries, uint32_t flags, size_t entry_size);
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access);
const char *ibv_wc_status_str(enum ibv_wc_status status);
const char *ibv_event_type_str(enum ibv_event_type event);
const char *ibv_port_state_str(enum ibv_port_state state);
const char *ibv_node_type_str(int type);

/* How posted requests are carried out. */
enum fake_verbs_mode {
  FAKE_VERBS_IMMEDIATE, /* before the posting call returns */
  FAKE_VERBS_MANUAL,    /* by fake_verbs_progress */
  FAKE_VERBS_THREAD,    /* by a thread of the context, some time */
};

/* What a device may have, and may be without. */
enum fake_verbs_feature {
  FAKE_VERBS_XRC = 1 << 0,
  FAKE_VERBS_MW_TYPE_1 = 1 << 1,
  FAKE_VERBS_MW_TYPE_2B = 1 << 2,
  FAKE_VERBS_SRQ_RESIZE = 1 << 3,
  FAKE_VERBS_CQ_RESIZE = 1 << 4,
  FAKE_VERBS_COMM_EST = 1 << 5,
  FAKE_VERBS_GID_TYPES = 1 << 6, /* _ibv_query_gid_* answer; else EOPNOTSUPP, as old kernels */
  FAKE_VERBS_QP_EVENTS = 1 << 7, /* of errors, of the last receive; rdma_rxe has none */
  FAKE_VERBS_ALL_FEATURES = (1 << 8) - 1,
};

/*
 * Of one context, or with NULL of all that are open; where that is a mode, of later ones too.
 * Changing it joins the thread of THREAD. Requests that wait stay waiting.
 */
int fake_verbs_set_mode(struct ibv_context *context, enum fake_verbs_mode mode);
/* What contexts opened from now on start with: IMMEDIATE, or what FAKE_VERBS_MODE says. */
void fake_verbs_set_default_mode(enum fake_verbs_mode mode);
/* The thread sleeps so long after each request (below a second); 0: it does not. */
void fake_verbs_set_pace(struct ibv_context *context, unsigned microseconds);
/* Carries out at most `limit` requests (0: all that can be); returns how many. */
unsigned fake_verbs_progress(struct ibv_context *context, unsigned limit);
/* MANUAL: so much time passes for the timers of its queue pairs, which stands still otherwise. */
void fake_verbs_elapse(struct ibv_context *context, unsigned microseconds);

/*
 * The nth call (1 is the next one) of the function of that name fails with the errno given, once.
 * Every function that can fail can be named, and those behind the context by the names that
 * callers know: "ibv_poll_cq", "ibv_req_notify_cq", "ibv_post_send", "ibv_post_recv",
 * "ibv_post_srq_recv", "ibv_alloc_mw", "ibv_dealloc_mw", "ibv_bind_mw", "ibv_open_xrcd",
 * "ibv_close_xrcd", "ibv_create_srq_ex", "ibv_get_srq_num", "ibv_create_qp_ex", "ibv_open_qp".
 * A posting call counts per request. EINVAL: no such function.
 */
int fake_verbs_inject(const char *function, unsigned nth, int error);
/* How it fails, where it has a choice: drivers differ in what they make of errno. */
enum fake_verbs_failure {
  FAKE_VERBS_DOCUMENTED, /* errno is returned, or set when null or -1 is */
  FAKE_VERBS_MINUS_ONE,  /* -1 is returned, and errno set */
  FAKE_VERBS_NEGATIVE,   /* -errno is returned, as by rxe for a post */
  FAKE_VERBS_SILENT,     /* null or -1 is returned, and errno is left alone */
};
/* Of all injections until the next fake_verbs_clear_injections. */
void fake_verbs_set_failure(enum fake_verbs_failure how);
/* Names of all functions that fake_verbs_inject takes; NULL behind the last. */
const char *fake_verbs_function(unsigned index);
/* How often it has been called since the last fake_verbs_clear_injections. */
unsigned fake_verbs_calls(const char *function);
void fake_verbs_clear_injections(void);
/* The nth send request to be carried out from now on, of any queue pair, fails with a status. */
void fake_verbs_fail_request(unsigned nth, enum ibv_wc_status status);

/* Objects that exist: by kind ("pd", "mr", "mw", "ah", "channel", "cq", "srq", "qp", "xrcd",
 * "context", "list"), or NULL for all of them together. */
unsigned fake_verbs_objects(const char *kind);

/* Devices are named fake0 (198.51.100.1, 2001:db8::1) and fake1 (198.51.100.2, 2001:db8::2). */
/* One more, or one that is gone, without addresses. EEXIST; ENOSPC; EINVAL: ports are 1 or 2. */
int fake_verbs_add_device(const char *name, unsigned ports);
/*
 * It is unplugged: DEVICE_FATAL to every context; then all calls fail with EIO but those that
 * destroy or fetch. With `flush`, queue pairs go to ERR and flush first, as some drivers do.
 */
int fake_verbs_remove_device(const char *name, int flush);
/* Plugged in again, or everything as at the start: two devices, addresses, features, ports up. */
int fake_verbs_restore_device(const char *name);
void fake_verbs_restore(void);
/* Without a link nothing arrives. PORT_ERR and PORT_ACTIVE. */
int fake_verbs_set_link(const char *name, unsigned port, int up);
/* `gid` NULL: the entry is empty. Type IBV_GID_TYPE_*. GID_CHANGE. */
int fake_verbs_set_gid(const char *name, unsigned port, unsigned index, const uint8_t *gid,
                       unsigned type);
int fake_verbs_set_features(const char *name, unsigned features);
/* Registered memory in all, above which registration fails with ENOMEM; 0: no limit. */
void fake_verbs_set_memlock(uint64_t bytes);

/*
 * For what stands beside it (a fake of librdmacm or libibumad).
 * fake_verbs_find: the device, port (from 1) and index of a GID of RoCE v2; ENODEV.
 * fake_verbs_connect: from RESET or INIT to RTS, both, each other's peers; for tests too.
 */
int fake_verbs_find(const uint8_t gid[16], const char **device, unsigned *port, unsigned *index);
int fake_verbs_connect(struct ibv_qp *a, struct ibv_qp *b);
/* Whether a packet from one device to a GID arrives now: links, presence. */
int fake_verbs_reaches(const char *device, unsigned port, const uint8_t gid[16]);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
