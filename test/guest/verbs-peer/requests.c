// Work requests and completions.
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_PAUSE_US = 300 };

/** <count> {<region> <offset> <length>}... */
static int next_segments(struct peer *peer, struct command *command, struct ibv_sge *segments) {
  const int count = next_index(command, MAX_SEGMENTS + 1);
  for (int at = 0; at < count; at++) {
    const struct region *region = &peer->regions[next_index(command, peer->region_count)];
    segments[at].addr = (uintptr_t)region->bytes + next_number(command);
    segments[at].length = (uint32_t)next_number(command);
    segments[at].lkey = region->lkey;
  }
  return count;
}

/** receive <qp> <wr id> and segments */
void do_receive(struct peer *peer, struct command *command) {
  struct queue_pair *qp = next_qp(peer, command);
  struct ibv_sge segments[MAX_SEGMENTS];
  struct ibv_recv_wr wr = {.sg_list = segments};
  struct ibv_recv_wr *bad;
  wr.wr_id = next_number(command);
  wr.num_sge = next_segments(peer, command, segments);
  errno = ibv_post_recv(qp->qp, &wr, &bad);
  if (errno != 0) return refuse(command, "ibv_post_recv");
  fprintf(command->reply, "{}\n");
}

static struct ibv_send_wr *next_place(struct queue_pair *qp) {
  if (qp->burst_length == MAX_BURST) die("too long a burst");
  struct ibv_send_wr *wr = &qp->burst[qp->burst_length];
  memset(wr, 0, sizeof *wr);
  wr->sg_list = qp->segments[qp->burst_length++];
  return wr;
}

/**
 * send <qp> <opcode> <flags> <wr id> <immediate or key> <remote address> <rkey> <compare or add>
 * <swap> <address handle> <remote qpn> <qkey> and segments: waits for `post`.
 */
void do_send(struct peer *peer, struct command *command) {
  struct queue_pair *qp = next_qp(peer, command);
  struct ibv_send_wr *wr = next_place(qp);
  wr->opcode = (enum ibv_wr_opcode)next_number(command);
  wr->send_flags = (unsigned)next_number(command);
  wr->wr_id = next_number(command);
  const uint32_t immediate = (uint32_t)next_number(command);
  const uint64_t address = next_number(command);
  const uint32_t rkey = (uint32_t)next_number(command);
  const uint64_t compare_add = next_number(command);
  const uint64_t swap = next_number(command);
  const uint64_t handle = next_number(command);
  const uint32_t remote_qpn = (uint32_t)next_number(command);
  const uint32_t qkey = (uint32_t)next_number(command);
  if (wr->opcode == IBV_WR_SEND_WITH_INV || wr->opcode == IBV_WR_LOCAL_INV) {
    wr->invalidate_rkey = immediate;
  } else {
    wr->imm_data = htonl(immediate);
  }
  if (qp->qp->qp_type == IBV_QPT_UD) {
    wr->wr.ud.ah = peer->handles[handle];
    wr->wr.ud.remote_qpn = remote_qpn;
    wr->wr.ud.remote_qkey = qkey;
  } else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr->wr.atomic.remote_addr = address;
    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.compare_add = compare_add;
    wr->wr.atomic.swap = swap;
  } else {
    wr->wr.rdma.remote_addr = address;
    wr->wr.rdma.rkey = rkey;
  }
  wr->num_sge = next_segments(peer, command, wr->sg_list);
  fprintf(command->reply, "{}\n");
}

/** bind <qp> <flags> <wr id> <window> <access> <region> <offset> <length>: waits for `post`. */
void do_bind(struct peer *peer, struct command *command) {
  struct queue_pair *qp = next_qp(peer, command);
  struct ibv_send_wr *wr = next_place(qp);
  wr->opcode = IBV_WR_BIND_MW;
  wr->send_flags = (unsigned)next_number(command);
  wr->wr_id = next_number(command);
  struct ibv_mw *window = peer->windows[next_index(command, peer->window_count)];
  wr->bind_mw.mw = window;
  wr->bind_mw.rkey = ibv_inc_rkey(window->rkey);
  wr->bind_mw.bind_info.mw_access_flags = (unsigned)next_number(command);
  struct region *region = &peer->regions[next_index(command, peer->region_count)];
  wr->bind_mw.bind_info.mr = region->mr;
  wr->bind_mw.bind_info.addr = (uintptr_t)region->bytes + next_number(command);
  wr->bind_mw.bind_info.length = next_number(command);
  fprintf(command->reply, "{\"rkey\":%" PRIu32 "}\n", wr->bind_mw.rkey);
}

/** post <qp>: what `send` and `bind` have prepared, in one call. */
void do_post(struct peer *peer, struct command *command) {
  struct queue_pair *qp = next_qp(peer, command);
  struct ibv_send_wr *bad;
  const int count = qp->burst_length;
  qp->burst_length = 0;
  for (int at = 0; at + 1 < count; at++) qp->burst[at].next = &qp->burst[at + 1];
  if (count > 0) errno = ibv_post_send(qp->qp, qp->burst, &bad);
  if (count > 0 && errno != 0) return refuse(command, "ibv_post_send");
  // Type 2: libibverbs leaves the present key of a window to its caller.
  for (int at = 0; at < count; at++) {
    const struct ibv_send_wr *wr = &qp->burst[at];
    if (wr->opcode == IBV_WR_BIND_MW) wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
  }
  fprintf(command->reply, "{}\n");
}

static void print_completion(FILE *reply, const struct ibv_wc *wc) {
  const uint32_t immediate =
      (wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc->imm_data) : wc->invalidated_rkey;
  fprintf(reply, "[%" PRIu64 ",%d,%d,%" PRIu32 ",%u,%" PRIu32 ",%" PRIu32 "]", wc->wr_id,
          wc->status, wc->opcode, wc->byte_len, wc->wc_flags, immediate, wc->src_qp);
}

/** Takes one completion out, if there is one. */
static int take(struct ibv_cq *cq, struct ibv_wc *wc) {
  const int count = ibv_poll_cq(cq, 1, wc);
  if (count < 0) die("ibv_poll_cq");
  return count;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/** Prints up to `count` completions as a list; gives up at the deadline. */
static void print_completions(FILE *reply, struct ibv_cq *cq, int count, int64_t deadline_ms) {
  struct ibv_wc wc;
  for (int seen = 0; seen < count;) {
    if (take(cq, &wc)) {
      if (seen++ > 0) fputc(',', reply);
      print_completion(reply, &wc);
    } else if (now_ms() >= deadline_ms) {
      return;
    } else {
      usleep(POLL_PAUSE_US);
    }
  }
}

/** poll <qp> <sends> <receives> <timeout ms>: so many completions of each, or fewer in time. */
void do_poll(struct peer *peer, struct command *command) {
  struct queue_pair *qp = next_qp(peer, command);
  const int sends = (int)next_number(command);
  const int receives = (int)next_number(command);
  const int64_t deadline_ms = now_ms() + (int64_t)next_number(command);
  fputs("{\"sends\":[", command->reply);
  print_completions(command->reply, qp->send_cq, sends, deadline_ms);
  fputs("],\"receives\":[", command->reply);
  print_completions(command->reply, qp->receive_cq, receives, deadline_ms);
  fputs("]}\n", command->reply);
}
