/* What the files of the fake share. One lock: correctness is what it is for. */
#ifndef FAKE_RDMACM_INTERNAL_H
#define FAKE_RDMACM_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "fake_rdmacm.h"

#define EXPORT __attribute__((visibility("default")))

enum state {
  IDLE,
  BOUND,
  ADDR_QUERY,
  ADDR_RESOLVED,
  ROUTE_RESOLVED,
  LISTEN,
  REQ_SENT,
  REQ_RCVD,
  REP_SENT,
  REP_RCVD,
  ESTABLISHED,
  DREQ_SENT,
  DREQ_RCVD,
  TIMEWAIT,
  CLOSED,
};

struct event {
  struct rdma_cm_event verbs;
  struct event *next;
  struct id *owner; /* whose destruction waits for it */
  uint8_t privateData[256];
};

struct channel {
  struct rdma_event_channel verbs;
  struct event *first, **end;
};

struct id {
  struct rdma_cm_id verbs;
  struct id *next; /* of all that there are */
  enum state state;
  struct id *peer;
  struct id *listener;
  bool ownsPort;      /* bound by its user: what a request makes is not */
  bool accepted;      /* events reach it */
  bool fetched;       /* its CONNECT_REQUEST has been */
  bool lost;          /* its request never arrived */
  unsigned unacked;
  int backlog, waiting; /* a listener's: requests that nobody has fetched */
  struct rdma_conn_param parameters; /* given by connect or accept */
  uint8_t privateData[256];
  uint8_t timeout;
  enum ibv_mtu mtu;
  uint32_t psn;
};

extern pthread_mutex_t lock;
extern struct id *ids;
extern int switches[FAKE_SWITCHES];

/* inject.c: the errno to fail with, or 0. Counts the call. */
int injected(const char *function);
void clear_injections(void);
/* Leaves with -1 when the call is to fail. */
#define FAIL_IF_INJECTED()              \
  do {                                  \
    int error_ = injected(__func__);    \
    if (error_) return fail(error_);    \
  } while (0)
static inline int fail(int error) {
  errno = error;
  return -1;
}

/* ids.c: what the kernel does with the identifiers of a descriptor that is closed. Lock held. */
void end_ids_of(struct rdma_event_channel *channel);

/* addresses.c */
bool find_device(const struct sockaddr *address, struct ibv_context **device, uint8_t gid[16]);
void reset_addresses(void);
bool same_address(const struct sockaddr *a, const struct sockaddr *b);
bool is_wildcard(const struct sockaddr *address);
uint16_t port_of(const struct sockaddr *address);
void set_port(struct sockaddr *address, uint16_t port);
const char *device_name(const struct ibv_context *context);
size_t address_length(const struct sockaddr *address);
bool needs_scope(const struct sockaddr *address);
void set_transport(bool iwarp);

/* events.c: with the lock held. */
struct event *new_event(struct id *id, enum rdma_cm_event_type type, int status);
void queue_event(struct event *event);
/* An event without parameters. */
void post(struct id *id, enum rdma_cm_event_type type, int status);
/* One with the peer's parameters, and private data padded to the length of its field. */
void post_parameters(struct id *id, enum rdma_cm_event_type type, const struct id *from,
                     uint8_t fieldBytes);
void set_private_data(struct event *event, const void *data, size_t length, uint8_t fieldBytes);
void drop_events(struct id *id);

/* connect.c: with the lock held. */
bool is_datagram(const struct id *id);
/* Hands requests that wait for room to their listener. */
void retry_requests(struct id *listener);
/* What an identifier that goes tells its peer. */
void leave(struct id *id);
void enter_timewait(struct id *id);

#endif
