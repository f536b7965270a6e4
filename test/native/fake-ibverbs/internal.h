/*
 * What the files of the fake share. One lock for all devices: they talk to each other, and
 * correctness is what the fake is for. Everything below is used with that lock held.
 */
#ifndef FAKE_VERBS_INTERNAL_H
#define FAKE_VERBS_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fake_verbs.h"

enum {
  MAX_ADAPTERS = 8,
  MAX_PORTS = 2,
  MAX_GIDS = 16,
  MAX_KEYS = 1 << 16,
  MAX_QPS = 1 << 13,
  MAX_SRQS = 1 << 12,
  MAX_SGE = 32,
  MAX_INLINE = 512,
  MAX_WR = 1 << 16,
  MAX_CQE = 1 << 20,
  MAX_MEMBERS = 256, /* of multicast groups, in all */
  MAX_READS = 128,
  FIRST_QPN = 0x11,
  GRH_BYTES = 40,
  MULTICAST_QPN = 0xffffff,
  PAGE = 4096,
};

#define NEVER UINT64_MAX

/* What an lkey or rkey stands for; key = salt (8 bits) | slot (16) | variant (8). */
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

struct gidEntry {
  union ibv_gid gid;
  uint32_t type; /* IBV_GID_TYPE_* */
};

struct port {
  bool up;
  struct gidEntry gids[MAX_GIDS];
};

/* A member of a multicast group. */
struct member {
  struct qp *qp;
  union ibv_gid group;
};

/* A device of the machine; struct context is one opening of it. */
struct adapter {
  struct ibv_device verbs; /* first: what callers hold */
  bool present;            /* false: removed */
  uint64_t guid;           /* host order */
  unsigned features;       /* FAKE_VERBS_* that it has */
  uint8_t portCount;
  struct port ports[MAX_PORTS];
  struct key *keys;
  uint32_t random;
  struct qp *qps[MAX_QPS];
  unsigned nextQp;
  struct srq *srqs[MAX_SRQS];
  unsigned nextSrq;
  struct xrcDomain *domains;
};

struct context {
  struct verbs_context verbs;
  struct adapter *adapter;
  struct context *next;
  enum fake_verbs_mode mode;
  bool stopping;
  unsigned paceUs;
  pthread_t thread;
  pthread_cond_t work; /* something to do, for the thread */
  unsigned objects;
  uint64_t elapsedNs; /* by fake_verbs_elapse: what time it is in MANUAL mode */
  struct qp *runnable, **runnableEnd;
  struct event *events, **eventsEnd;
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

struct ah {
  struct ibv_ah verbs;
  struct ibv_ah_attr attr;
};

struct channel {
  struct ibv_comp_channel verbs;
  struct cq *first, **end; /* one element per CQ with events that wait */
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
  unsigned asyncGiven;
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

/* An XRC domain, shared by those who opened the same file. */
struct xrcDomain {
  struct xrcDomain *next;
  uint64_t device, inode; /* 0, 0: private */
  unsigned handles;
};

struct xrcd {
  struct ibv_xrcd verbs;
  struct xrcDomain *domain;
  unsigned users;
};

struct srq {
  struct ibv_srq verbs;
  struct receives receives;
  uint32_t limit, number;
  unsigned users, asyncGiven;
  struct xrcd *xrcd; /* and its completion queue: */
  struct cq *cq;
};

struct sendRequest {
  struct ibv_send_wr wr;
  struct ibv_ah_attr to; /* UD: the handle may be gone by the time it is sent */
  struct ibv_pd *toPd;
  struct ibv_sge sge[MAX_SGE];
  uint8_t payload[MAX_INLINE];
};

enum waiting { WAITING_NOT, WAITING_RNR, WAITING_PATH };

struct qp {
  struct ibv_qp verbs; /* of an XRC target: without a caller; see struct handle */
  struct adapter *adapter;
  struct ibv_qp_attr attr;
  struct ibv_qp_cap cap;
  struct sendRequest *sends;
  uint32_t sendSize;
  uint32_t posted, executed, freed; /* free-running: freed <= executed <= posted */
  struct receives receives;
  bool signalAll, lastWqeReported, established, drainReported, blocksOwnMulticast;
  unsigned asyncGiven, windows;
  /* The scheduler's: in the list of runnables, or of those that wait until a time. */
  bool queued;
  struct qp *nextRunnable;
  enum waiting waiting; /* what the head of the send queue has met, since when it has */
  uint64_t deadline;
  bool parked;
  struct qp *nextWaiting;
  /* XRC targets */
  struct xrcDomain *domain;
  struct handle *handles;
};

/* What a caller has of an XRC target queue pair: it may be open many times. */
struct handle {
  struct ibv_qp verbs;
  struct qp *real;
  struct xrcd *xrcd;
  struct handle *next;
  unsigned asyncGiven;
};

/* Segments as a stream of bytes. */
struct cursor {
  uint8_t *bytes[MAX_SGE + 1];
  uint32_t lengths[MAX_SGE + 1];
  int count, at;
  uint32_t used;
  uint64_t total;
};

extern pthread_mutex_t fakeLock;
extern pthread_cond_t fakeAcked; /* events were acknowledged */
extern struct context *contexts;
extern struct adapter adapters[MAX_ADAPTERS];
extern unsigned adapterCount;

static inline struct context *contextOf(struct ibv_context *context) {
  return (struct context *)((char *)context - offsetof(struct verbs_context, context));
}

static inline struct adapter *adapterOf(struct ibv_context *context) {
  return contextOf(context)->adapter;
}

static inline struct qp *qpOf(struct ibv_qp *verbs) {
  if ((int)verbs->qp_type == IBV_QPT_XRC_RECV) return ((struct handle *)verbs)->real;
  return (struct qp *)verbs;
}

/* inject.c: the errno to fail with, or 0. EIO for every function of a device that was removed. */
int injected(const char *function);
int refused(struct ibv_context *context, const char *function);
/* The status that the completion of a send is to have instead, or the one given. */
enum ibv_wc_status spoilt(enum ibv_wc_status status);
/* NULL with errno. */
void *failed(int error);
/* For a function that returns null or -1: errno, of an error that injected() may have made. */
void tell_errno(int error);

/* count.c: how many there are of each kind of object. */
enum kind {
  KIND_LIST, KIND_CONTEXT, KIND_PD, KIND_MR, KIND_MW, KIND_AH, KIND_CHANNEL, KIND_CQ, KIND_SRQ,
  KIND_QP, KIND_XRCD, KINDS
};
void count(struct ibv_context *context, enum kind kind, int by);

/* adapter.c */
void adapters_init(void);
struct adapter *find_gid(const union ibv_gid *gid);
const struct gidEntry *gid_at(struct adapter *adapter, unsigned port, unsigned index);
bool is_multicast(const union ibv_gid *gid);
/* Whether a packet from one port to a GID arrives, and where; NULL: nobody hears it. */
struct adapter *route(struct adapter *from, const struct ibv_ah_attr *to);

/* events.c */
void raise_event(struct context *context, enum ibv_event_type type, struct ibv_async_event what);
void raise_qp(struct qp *qp, int type);
void raise_cq(struct cq *cq, int type);
void raise_srq(struct srq *srq, int type);
void raise_port(struct adapter *adapter, unsigned port, int type);
void forget_events(struct context *context, const void *element);
/* Waits until `*acked` has come up to `*given`; says so and aborts after ten seconds. */
void await_acks(const char *what, const unsigned *given, const uint32_t *acked);

/* memory.c */
struct key *alloc_key(struct adapter *adapter);
struct key *find_key(struct adapter *adapter, uint32_t value);
/* The bytes of a span that a key opens with the rights asked for; NULL when it does not. */
uint8_t *within(const struct key *key, uint64_t addr, uint64_t length);
uint8_t *local_bytes(struct adapter *adapter, struct ibv_pd *pd, const struct ibv_sge *sge,
                     int access);
uint8_t *remote_bytes(struct qp *responder, struct ibv_pd *pd, uint32_t rkey, uint64_t addr,
                      uint64_t length, int access);

/* window.c */
struct ibv_mw *window_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int window_dealloc(struct ibv_mw *mw);
int window_bind_type1(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
enum ibv_wc_status window_bind(struct qp *qp, const struct ibv_send_wr *wr);
enum ibv_wc_status window_invalidate(struct qp *qp, uint32_t rkey);
/* A queue pair is gone: the type 2 windows that it bound are nobody's. */
void windows_release(struct qp *qp);

/* cursor.c */
bool open_segments(struct adapter *adapter, struct ibv_pd *pd, const struct ibv_sge *sge,
                   int count, int access, bool isInline, struct cursor *out);
struct cursor contiguous(uint8_t *bytes, uint64_t length);
void copy(struct cursor *to, struct cursor *from);

/* cq.c; the two behind the context take the lock. */
void cq_add(struct cq *cq, const struct cqe *entry, bool solicited);
void cq_purge(struct cq *cq, const struct qp *qp);
int cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *out);
int cq_arm(struct ibv_cq *cq, int solicitedOnly);

/* post.c; all but the last two take the lock. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_one_send(struct qp *qp, const struct ibv_send_wr *wr);
bool receives_init(struct receives *queue, uint32_t size, uint32_t maxSge);

/* transitions.c: 0 or EINVAL. */
int check_transition(const struct qp *qp, const struct ibv_qp_attr *attr, int mask);

/* qp.c */
void qp_fail(struct qp *qp);
struct qp *qp_make(struct adapter *adapter, const struct ibv_qp_cap *cap, bool withReceives);
int qp_number(struct qp *qp);
void qp_free(struct qp *qp);

/* srq.c */
struct srq *srq_make(struct ibv_pd *pd, void *srqContext, const struct ibv_srq_attr *attr,
                     struct xrcd *xrcd, struct cq *cq, int *error);

/* xrc.c */
void xrc_attach(struct verbs_context *verbs);
int xrc_close(struct ibv_qp *handle);
struct srq *xrc_srq(struct qp *target, uint32_t number);

/* execute.c */
enum outcome { DONE, WAITS };
void complete_send(struct qp *qp, enum ibv_wc_status status);
unsigned execute(struct context *context, unsigned limit);

/* respond.c: what a request does at its peer. */
void complete_receive(struct qp *qp, struct srq *srq, struct ibv_wc wc, bool solicited);
struct receives *receives_of(struct qp *qp, struct srq *srq);
struct recvRequest *take_receive(struct qp *qp, struct srq *srq);
enum ibv_wc_status carry_out(struct qp *peer, struct srq *srq, const struct ibv_send_wr *wr,
                             struct cursor *local);

/* datagram.c */
void send_datagram(struct qp *qp, const struct sendRequest *request, const struct cursor *from);
void leave_groups(struct qp *qp);

/* schedule.c */
void make_runnable(struct qp *qp);
void unschedule(struct qp *qp);
void wait_until(struct qp *qp, enum waiting what, uint64_t ns);
uint64_t now_of(const struct context *context);
/* Something that a waiting queue pair may have waited for has happened. */
void wake_waiting(void);
/* After a call that may have made work: does it, or wakes who will. */
void kick(void);
void schedule_stop(struct context *context);
void schedule_end(void);
enum fake_verbs_mode default_mode(void);

#endif
