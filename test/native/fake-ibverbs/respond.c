/* What a request does at its peer, and what the peer's side hears of it. */
#include <arpa/inet.h>

#include "internal.h"

enum { UNDEFINED = 0x7a7a7a7a };

void complete_receive(struct qp *qp, struct srq *srq, struct ibv_wc wc, bool solicited) {
  struct cqe cqe = {.wc = wc, .qp = qp};
  cqe.wc.qp_num = qp->verbs.qp_num;
  if (wc.status != IBV_WC_SUCCESS) {
    qp_fail(qp);
    cqe.wc.opcode = (enum ibv_wc_opcode)UNDEFINED;
    cqe.wc.byte_len = cqe.wc.imm_data = UNDEFINED;
    cqe.wc.vendor_err = 0x200u + wc.status;
  }
  if (srq && srq->cq) {
    cqe.qp = NULL; /* the completion outlives the target queue pair */
    cq_add(srq->cq, &cqe, solicited);
    return;
  }
  cq_add((struct cq *)qp->verbs.recv_cq, &cqe, solicited);
}

struct receives *receives_of(struct qp *qp, struct srq *srq) {
  return srq ? &srq->receives : &qp->receives;
}

/* Takes the next receive; the caller has seen that there is one. */
struct recvRequest *take_receive(struct qp *qp, struct srq *srq) {
  struct receives *queue = receives_of(qp, srq);
  struct recvRequest *request = &queue->slots[queue->head++ % queue->size];
  if (srq && srq->limit > queue->tail - queue->head) {
    srq->limit = 0;
    raise_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
  }
  return request;
}

static bool is_unreliable(const struct qp *qp) { return qp->verbs.qp_type == IBV_QPT_UC; }

/* Refused: an unreliable peer stays as it was. */
static enum ibv_wc_status refuse(struct qp *peer, int event, enum ibv_wc_status status) {
  if (is_unreliable(peer)) return status;
  qp_fail(peer);
  raise_qp(peer, event);
  return status;
}

static struct ibv_pd *pd_of(const struct qp *peer, const struct srq *srq) {
  return peer->domain ? srq->verbs.pd : peer->verbs.pd;
}

/* SEND in its three forms. */
static enum ibv_wc_status deliver(struct qp *peer, struct srq *srq, const struct ibv_send_wr *wr,
                                  struct cursor *from) {
  const struct receives *queue = receives_of(peer, srq);
  const struct recvRequest *receive = &queue->slots[queue->head % queue->size];
  struct ibv_wc wc = {.wr_id = receive->wr_id, .opcode = IBV_WC_RECV, .src_qp = UNDEFINED};
  struct cursor to;
  struct ibv_pd *pd = srq ? srq->verbs.pd : peer->verbs.pd;
  bool open = open_segments(peer->adapter, pd, receive->sge, receive->num_sge,
                            IBV_ACCESS_LOCAL_WRITE, false, &to);
  if (open && to.total < from->total && is_unreliable(peer)) return IBV_WC_SUCCESS; /* it stays */
  take_receive(peer, srq);
  if (!open) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    complete_receive(peer, srq, wc, false);
    return IBV_WC_REM_OP_ERR;
  }
  if (to.total < from->total) {
    wc.status = IBV_WC_LOC_LEN_ERR;
    complete_receive(peer, srq, wc, false);
    return IBV_WC_REM_INV_REQ_ERR;
  }
  wc.byte_len = (uint32_t)from->total;
  copy(&to, from);
  if (wr->opcode == IBV_WR_SEND_WITH_INV && window_invalidate(peer, wr->invalidate_rkey)) {
    wc.status = IBV_WC_REM_INV_REQ_ERR; /* the sender has its ACK */
    complete_receive(peer, srq, wc, false);
    return IBV_WC_SUCCESS;
  }
  if (wr->opcode == IBV_WR_SEND_WITH_IMM) wc.wc_flags = IBV_WC_WITH_IMM;
  if (wr->opcode == IBV_WR_SEND_WITH_INV) wc.wc_flags = IBV_WC_WITH_INV;
  wc.imm_data = wc.wc_flags ? wr->imm_data : (uint32_t)UNDEFINED; /* the union covers the rkey */
  complete_receive(peer, srq, wc, wr->send_flags & IBV_SEND_SOLICITED);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status rdma_write(struct qp *peer, struct srq *srq,
                                     const struct ibv_send_wr *wr, struct cursor *from) {
  uint8_t *at = remote_bytes(peer, pd_of(peer, srq), wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
                             from->total, IBV_ACCESS_REMOTE_WRITE);
  if (!at) return refuse(peer, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
  struct cursor to = contiguous(at, from->total);
  uint32_t length = (uint32_t)from->total;
  copy(&to, from);
  if (wr->opcode == IBV_WR_RDMA_WRITE) return IBV_WC_SUCCESS;
  struct ibv_wc wc = {
      .wr_id = take_receive(peer, srq)->wr_id,
      .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
      .byte_len = length,
      .imm_data = wr->imm_data,
      .wc_flags = IBV_WC_WITH_IMM,
      .src_qp = UNDEFINED,
  };
  complete_receive(peer, srq, wc, wr->send_flags & IBV_SEND_SOLICITED);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status rdma_read(struct qp *peer, struct srq *srq, const struct ibv_send_wr *wr,
                                    struct cursor *to) {
  if (peer->attr.max_dest_rd_atomic == 0) {
    return refuse(peer, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
  }
  uint8_t *at = remote_bytes(peer, pd_of(peer, srq), wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
                             to->total, IBV_ACCESS_REMOTE_READ);
  if (!at) return refuse(peer, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
  struct cursor from = contiguous(at, to->total);
  copy(to, &from);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status atomic(struct qp *peer, struct srq *srq, const struct ibv_send_wr *wr,
                                 struct cursor *to) {
  bool aligned = wr->wr.atomic.remote_addr % 8 == 0 && to->total == 8;
  if (!aligned || peer->attr.max_dest_rd_atomic == 0) {
    return refuse(peer, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
  }
  uint8_t *at = remote_bytes(peer, pd_of(peer, srq), wr->wr.atomic.rkey,
                             wr->wr.atomic.remote_addr, 8, IBV_ACCESS_REMOTE_ATOMIC);
  if (!at) return refuse(peer, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
  uint64_t *word = (uint64_t *)at;
  uint64_t before = wr->wr.atomic.compare_add;
  if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    before = __atomic_fetch_add(word, wr->wr.atomic.compare_add, __ATOMIC_SEQ_CST);
  } else {
    __atomic_compare_exchange_n(word, &before, wr->wr.atomic.swap, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
  }
  struct cursor from = contiguous((uint8_t *)&before, 8);
  copy(to, &from);
  return IBV_WC_SUCCESS;
}

enum ibv_wc_status carry_out(struct qp *peer, struct srq *srq, const struct ibv_send_wr *wr,
                             struct cursor *local) {
  switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return rdma_write(peer, srq, wr, local);
    case IBV_WR_RDMA_READ:
      return rdma_read(peer, srq, wr, local);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return atomic(peer, srq, wr, local);
    default:
      return deliver(peer, srq, wr, local);
  }
}
