/* What the files of the fake share. One lock a device: correctness is what it is for. */
#ifndef FAKE_VERBS_INTERNAL_H
#define FAKE_VERBS_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fake_verbs.h"

enum { MAX_KEYS = 4096, MAX_QPS = 4096, MAX_SGE = 32, MAX_INLINE = 512, FIRST_QPN = 0x11 };

/* What an lkey or rkey stands for; key = (index << 8) | variant. */
struct key {
  enum { KEY_FREE, KEY_REGION, KEY_WINDOW } kind;
  uint32_t value;
  struct ibv_pd *pd;
  int access;
  uint64_t start;  /* in the region's iova space */
  uint64_t length; /* a window that is not bound has valid == false */
  uint8_t *bytes;
  bool valid;
  struct region *region; /* a window's */
  struct qp *owner;      /* a type 2 window belongs to the queue pair that bound it */
};

struct device {
  struct ibv_context verbs;
  pthread_mutex_t lock;
  pthread_cond_t work;   /* something to do, for the thread */
  pthread_cond_t acked;  /* events were acknowledged */
  enum fake_verbs_mode mode;
  bool stopping;
  pthread_t thread;
  unsigned objects;
  struct key keys[MAX_KEYS];
  struct qp *qps[MAX_QPS];
  unsigned nextQp;
  unsigned qpLimit;   /* one past the highest slot ever used */
  unsigned scanFrom;  /* round robin among queue pairs */
  struct event *events, **eventsEnd;
  uint32_t nextSrqn;
};

struct event {
  struct event *next;
  struct ibv_async_event what;
};

struct pd {
  struct ibv_pd verbs;
  unsigned users;
};

struct region {
  struct ibv_mr verbs;
  unsigned windows;
};

struct window {
  struct ibv_mw verbs;
};

struct channel {
  struct ibv_comp_channel verbs;
  struct cq *first, **end; /* one element per event that waits: a CQ can be in it only once */
};

struct cqe {
  struct ibv_wc wc;
  struct qp *qp;
  bool isSend;
  uint32_t sendIndex; /* slots up to and with this one are free when it is polled */
};

enum armed { ARMED_NOT, ARMED_SOLICITED, ARMED_NEXT };

struct cq {
  struct ibv_cq verbs;
  struct cqe *ring;
  uint32_t size, head, tail; /* free-running */
  enum armed armed;
  bool overrun;
  unsigned users;
  unsigned eventsWaiting, eventsGiven, eventsAcked;
  struct cq *nextInChannel;
};

struct recvRequest {
  uint64_t wr_id;
  int num_sge;
  struct ibv_sge sge[MAX_SGE];
};

/* A receive queue, or a shared one. */
struct receives {
  struct recvRequest *slots;
  uint32_t size, head, tail;
  uint32_t maxSge;
};

struct srq {
  struct ibv_srq verbs;
  struct receives receives;
  uint32_t limit;
  unsigned users;
};

struct sendRequest {
  struct ibv_send_wr wr;
  struct ibv_sge sge[MAX_SGE];
  uint8_t payload[MAX_INLINE];
};

struct qp {
  struct ibv_qp verbs;
  struct ibv_qp_attr attr;
  struct ibv_qp_cap cap;
  struct sendRequest *sends;
  uint32_t sendSize;
  uint32_t posted, executed, freed; /* free-running: freed <= executed <= posted */
  struct receives receives;
  bool signalAll, lastWqeReported;
};

static inline struct device *deviceOf(struct ibv_context *context) {
  return (struct device *)context;
}

/* inject.c: the errno to fail with, or 0. */
int injected(const char *function);

/* device.c */
void wake(struct device *device);
void raise_event(struct device *device, enum ibv_event_type type, void *element);
void forget_events(struct device *device, const void *element);

/* memory.c */
int alloc_key(struct device *device, struct key **out);
struct key *find_key(struct device *device, uint32_t value);
/* The bytes of a span that a key opens with the rights asked for; NULL when it does not. */
uint8_t *local_bytes(struct device *device, struct ibv_pd *pd, const struct ibv_sge *sge,
                     int access);
uint8_t *remote_bytes(struct qp *responder, uint32_t rkey, uint64_t addr, uint64_t length,
                      int access);
struct ibv_mw *window_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int window_dealloc(struct ibv_mw *mw);
bool window_bind(struct qp *qp, const struct ibv_send_wr *wr);
bool window_invalidate(struct qp *qp, uint32_t rkey);

/* cq.c: all with the device's lock held, but for the two calls behind the context. */
void cq_add(struct cq *cq, const struct cqe *entry, bool solicited);
void cq_purge(struct cq *cq, const struct qp *qp);
int cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *out);
int cq_arm(struct ibv_cq *cq, int solicitedOnly);

/* post.c */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
bool receives_init(struct receives *queue, uint32_t size, uint32_t maxSge);

/* qp.c */
void qp_fail(struct qp *qp);

/* execute.c */
unsigned execute(struct device *device, unsigned limit);
/* After a call that may have made work: does it, or wakes who will. Lock held. */
void kick(struct device *device);

#endif
