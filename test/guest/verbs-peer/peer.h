// What the files of verbs-peer share: see main.c.
#pragma once
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_OBJECTS = 1024, MAX_SEGMENTS = 16, MAX_BURST = 64 };

struct region {
  uint8_t *bytes;
  uint64_t length;
  struct ibv_mr *mr;
  /** Stays when the region has been deregistered: a key that is no longer good. */
  uint32_t lkey;
};

struct queue_pair {
  struct ibv_qp *qp;
  struct ibv_cq *send_cq, *receive_cq;
  /** Undefined unless the connection manager made it. */
  struct rdma_cm_id *id;
  /** Requests that wait for `post`. */
  struct ibv_send_wr burst[MAX_BURST];
  struct ibv_sge segments[MAX_BURST][MAX_SEGMENTS];
  int burst_length;
};

struct peer {
  struct ibv_context *context;
  struct rdma_event_channel *channel;
  struct rdma_cm_id *listener;
  const char *ip;
  int gid_index;
  struct ibv_pd *pds[MAX_OBJECTS];
  struct region regions[MAX_OBJECTS];
  struct ibv_mw *windows[MAX_OBJECTS];
  struct ibv_ah *handles[MAX_OBJECTS];
  struct queue_pair *qps[MAX_OBJECTS];
  int pd_count, region_count, window_count, handle_count, qp_count;
};

/** The words of a command, taken one after the other. */
struct command {
  char *rest;
  FILE *reply;
};

void die(const char *what);
/** An answer that says what could not be done, by errno. */
void refuse(struct command *command, const char *what);
const char *next_word(struct command *command);
uint64_t next_number(struct command *command);
/** The next word as an index below `count`. */
int next_index(struct command *command, int count);

void open_device(struct peer *peer, const char *ip);
union ibv_gid gid_of(const char *ip);
struct ibv_ah_attr path_to(struct peer *peer, const char *ip);
struct queue_pair *next_qp(struct peer *peer, struct command *command);
/** Makes its completion queues and finds a place for it; `id` for the connection manager. */
struct queue_pair *make_qp(struct peer *peer, struct rdma_cm_id *id, struct ibv_pd *pd,
                           struct ibv_qp_init_attr attributes);

typedef void command_handler(struct peer *peer, struct command *command);

command_handler do_pd, do_region, do_deregister, do_fill, do_digest, do_put, do_word, do_window;
command_handler do_qp, do_connect, do_datagrams, do_handle, do_state, do_error;
command_handler do_listen, do_accept, do_dial, do_disconnect;
command_handler do_receive, do_send, do_bind, do_post, do_poll;
