/* Carrying out what was posted: in order within a queue pair, round robin among them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_DATAGRAM = 4096 };

static const enum ibv_wc_opcode WC_OPCODE[] = {
    [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
    [IBV_WR_SEND] = IBV_WC_SEND,
    [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
    [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
    [IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
    [IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
    [IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

/* What the public API leaves undefined is made conspicuous, so that nobody comes to rely on it. */
enum { UNDEFINED = 0x7a7a7a7a };

static bool is_unreliable(const struct qp *qp) {
  return qp->verbs.qp_type == IBV_QPT_UC || qp->verbs.qp_type == IBV_QPT_UD;
}

/* An unreliable queue pair whose sending fails goes on receiving (IBTA 10.3.1, SQE). */
static void fail_sending(struct qp *qp) {
  if (qp->attr.qp_state == IBV_QPS_SQE) return;
  bool running = qp->attr.qp_state == IBV_QPS_RTS || qp->attr.qp_state == IBV_QPS_SQD;
  if (is_unreliable(qp) && running) {
    qp->attr.qp_state = IBV_QPS_SQE;
    make_runnable(qp);
  } else {
    qp_fail(qp);
  }
}

void complete_send(struct qp *qp, enum ibv_wc_status status) {
  const struct ibv_send_wr *wr = &qp->sends[qp->executed % qp->sendSize].wr;
  uint32_t index = qp->executed++;
  bool signalled = qp->signalAll || (wr->send_flags & IBV_SEND_SIGNALED);
  bool ok = status == IBV_WC_SUCCESS;
  qp->waiting = WAITING_NOT;
  if (!ok) fail_sending(qp);
  if (ok && !signalled) return;
  struct cqe cqe = {.qp = qp, .isSend = true, .sendIndex = index};
  cqe.wc = (struct ibv_wc){
      .wr_id = wr->wr_id,
      .status = status,
      .opcode = ok ? WC_OPCODE[wr->opcode] : (enum ibv_wc_opcode)UNDEFINED,
      .vendor_err = ok ? UNDEFINED : 0x100u + status,
      .byte_len = UNDEFINED,
      .imm_data = UNDEFINED,
      .src_qp = UNDEFINED,
      .qp_num = qp->verbs.qp_num,
  };
  cq_add((struct cq *)qp->verbs.send_cq, &cqe, false);
}

static bool needs_receive(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool fits(const struct qp *qp, const struct qp *peer) {
  if (qp->verbs.qp_type == IBV_QPT_XRC_SEND) return peer->domain != NULL;
  return !peer->domain && peer->verbs.qp_type == qp->verbs.qp_type;
}

/* Who would answer; NULL: nobody does. */
static struct qp *peer_of(struct qp *qp) {
  struct adapter *there = route(qp->adapter, &qp->attr.ah_attr);
  uint32_t slot = qp->attr.dest_qp_num - FIRST_QPN;
  struct qp *peer = there && slot < MAX_QPS ? there->qps[slot] : NULL;
  if (!peer || !fits(qp, peer) || peer->attr.dest_qp_num != qp->verbs.qp_num) return NULL;
  enum ibv_qp_state state = peer->attr.qp_state;
  bool hears = state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
  return hears && route(there, &peer->attr.ah_attr) == qp->adapter ? peer : NULL;
}

/* RNR NAK timer by code in units of 10 us (IBTA table 45). */
static uint64_t rnr_ns(uint8_t code) {
  static const uint16_t tens[32] = {
      65535, 1,   2,   3,   4,   6,    8,    12,   16,   24,   32,    48,    64,    96,    128,
      192,   256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,  8192,  12288, 16384, 24576,
      32768, 49152};
  return (uint64_t)tens[code & 31] * 10000;
}

static bool is_over(const struct qp *qp, enum waiting what) {
  return qp->waiting == what && qp->deadline <= now_of(contextOf(qp->verbs.context));
}

/* Nobody answers: the retries are used up after as many timeouts and one more (IBTA 9.9.2.1). */
static enum outcome await_path(struct qp *qp) {
  const struct ibv_qp_attr *attr = &qp->attr;
  uint64_t timeout = attr->timeout ? (4096ull << attr->timeout) * (attr->retry_cnt + 1u) : NEVER;
  if (is_over(qp, WAITING_PATH)) {
    complete_send(qp, IBV_WC_RETRY_EXC_ERR);
    return DONE;
  }
  wait_until(qp, WAITING_PATH, timeout);
  return WAITS;
}

static enum outcome await_receive(struct qp *qp, const struct qp *peer) {
  uint8_t retries = qp->attr.rnr_retry;
  if (retries == 0 || is_over(qp, WAITING_RNR)) {
    complete_send(qp, IBV_WC_RNR_RETRY_EXC_ERR);
    return DONE;
  }
  wait_until(qp, WAITING_RNR, retries == 7 ? NEVER : retries * rnr_ns(peer->attr.min_rnr_timer));
  return WAITS;
}

static void note_established(struct qp *peer) {
  if (peer->established || peer->attr.qp_state != IBV_QPS_RTR) return;
  peer->established = true;
  if (peer->adapter->features & FAKE_VERBS_COMM_EST) raise_qp(peer, IBV_EVENT_COMM_EST);
}

/* The request of a reliable queue pair, to a peer that answers. */
static enum outcome reliable(struct qp *qp, const struct ibv_send_wr *wr, struct cursor *local) {
  struct qp *peer = peer_of(qp);
  if (!peer) return await_path(qp);
  struct srq *srq = (struct srq *)peer->verbs.srq;
  if (peer->domain) srq = xrc_srq(peer, wr->qp_type.xrc.remote_srqn);
  note_established(peer);
  if (peer->domain && !srq) {
    raise_qp(peer, IBV_EVENT_QP_REQ_ERR);
    qp_fail(peer);
    complete_send(qp, IBV_WC_REM_INV_REQ_ERR);
    return DONE;
  }
  const struct receives *receives = receives_of(peer, srq);
  bool empty = receives->head == receives->tail;
  if (needs_receive(wr->opcode) && empty) return await_receive(qp, peer);
  complete_send(qp, carry_out(peer, srq, wr, local));
  return DONE;
}

/* An unreliable connection: what its peer cannot take is lost, and nobody is told. */
static void unreliable(struct qp *qp, const struct ibv_send_wr *wr, struct cursor *local) {
  struct qp *peer = peer_of(qp);
  if (peer) {
    struct srq *srq = (struct srq *)peer->verbs.srq;
    const struct receives *receives = receives_of(peer, srq);
    note_established(peer);
    bool empty = receives->head == receives->tail;
    if (!needs_receive(wr->opcode) || !empty) carry_out(peer, srq, wr, local);
  }
  complete_send(qp, IBV_WC_SUCCESS);
}

static enum outcome execute_remote(struct qp *qp, struct sendRequest *request) {
  const struct ibv_send_wr *wr = &request->wr;
  bool reads = wr->opcode >= IBV_WR_RDMA_READ && wr->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
  struct cursor local;
  if (!open_segments(qp->adapter, qp->verbs.pd, request->sge, wr->num_sge,
                     reads ? IBV_ACCESS_LOCAL_WRITE : 0, wr->send_flags & IBV_SEND_INLINE,
                     &local)) {
    complete_send(qp, IBV_WC_LOC_PROT_ERR);
    return DONE;
  }
  uint64_t longest = qp->verbs.qp_type == IBV_QPT_UD ? MAX_DATAGRAM : 1u << 30;
  if (local.total > longest) {
    complete_send(qp, IBV_WC_LOC_LEN_ERR);
    return DONE;
  }
  if (!is_unreliable(qp)) return reliable(qp, wr, &local);
  if (qp->verbs.qp_type == IBV_QPT_UC) {
    unreliable(qp, wr, &local);
  } else if (request->toPd != qp->verbs.pd) {
    complete_send(qp, IBV_WC_LOC_QP_OP_ERR);
  } else {
    send_datagram(qp, request, &local);
    complete_send(qp, IBV_WC_SUCCESS);
  }
  return DONE;
}

static enum outcome execute_head(struct qp *qp) {
  struct sendRequest *request = &qp->sends[qp->executed % qp->sendSize];
  const struct ibv_send_wr *wr = &request->wr;
  enum ibv_wc_status status = qp->waiting ? IBV_WC_SUCCESS : spoilt(IBV_WC_SUCCESS);
  if (status == IBV_WC_SUCCESS && wr->opcode == IBV_WR_BIND_MW) {
    complete_send(qp, window_bind(qp, wr));
  } else if (status == IBV_WC_SUCCESS && wr->opcode == IBV_WR_LOCAL_INV) {
    complete_send(qp, window_invalidate(qp, wr->invalidate_rkey));
  } else if (status == IBV_WC_SUCCESS) {
    return execute_remote(qp, request);
  } else {
    complete_send(qp, status);
  }
  return DONE;
}

/* One request of a queue pair in ERR: its sends, and its own receives, are flushed in order. */
static enum outcome flush_one(struct qp *qp) {
  if (qp->executed != qp->posted) {
    complete_send(qp, IBV_WC_WR_FLUSH_ERR);
    return DONE;
  }
  if (qp->attr.qp_state == IBV_QPS_SQE) return WAITS;
  if (!qp->verbs.srq && qp->receives.head != qp->receives.tail) {
    struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};
    wc.wr_id = qp->receives.slots[qp->receives.head++ % qp->receives.size].wr_id;
    complete_receive(qp, NULL, wc, false);
    return DONE;
  }
  if (qp->verbs.srq && !qp->lastWqeReported) {
    qp->lastWqeReported = true;
    raise_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
  }
  return WAITS;
}

/* What has begun is finished; then it is drained, and says so to whoever asked (IBTA 10.3.1). */
static enum outcome drain(struct qp *qp) {
  if (qp->waiting) return execute_head(qp);
  if (qp->drainReported) return WAITS;
  qp->drainReported = true;
  if (qp->attr.en_sqd_async_notify) raise_qp(qp, IBV_EVENT_SQ_DRAINED);
  return WAITS;
}

static enum outcome step(struct qp *qp) {
  switch (qp->attr.qp_state) {
    case IBV_QPS_ERR:
    case IBV_QPS_SQE:
      return flush_one(qp);
    case IBV_QPS_SQD:
      return drain(qp);
    case IBV_QPS_RTS:
      return qp->executed == qp->posted ? WAITS : execute_head(qp);
    default:
      return WAITS;
  }
}

/* A queue pair stays in turn as long as it can: who measures it does not measure scheduling. */
unsigned execute(struct context *context, unsigned limit) {
  unsigned done = 0;
  while (context->runnable && (limit == 0 || done < limit)) {
    struct qp *qp = context->runnable;
    if (step(qp) == DONE) {
      done++;
      continue;
    }
    context->runnable = qp->nextRunnable;
    if (!context->runnable) context->runnableEnd = &context->runnable;
    qp->queued = false;
  }
  return done;
}
