/* Carrying out what was posted: in order within a queue pair, round robin among them. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum outcome { DONE, WAITS };

/* Segments as a stream of bytes. */
struct cursor {
  uint8_t *bytes[MAX_SGE];
  uint32_t lengths[MAX_SGE];
  int count, at;
  uint32_t used;
  uint64_t total;
};

static bool open_segments(struct qp *qp, const struct ibv_sge *sge, int count, int access,
                          bool isInline, struct cursor *out) {
  *out = (struct cursor){.count = count};
  for (int i = 0; i < count; i++) {
    out->lengths[i] = sge[i].length;
    out->total += sge[i].length;
    if (sge[i].length == 0) continue;
    out->bytes[i] = isInline ? (uint8_t *)(uintptr_t)sge[i].addr
                             : local_bytes(deviceOf(qp->verbs.context), qp->verbs.pd, &sge[i],
                                           access);
    if (!out->bytes[i]) return false;
  }
  return true;
}

/* One contiguous piece of remote memory as a cursor. */
static struct cursor contiguous(uint8_t *bytes, uint64_t length) {
  return (struct cursor){
      .bytes = {bytes}, .lengths = {(uint32_t)length}, .count = 1, .total = length};
}

static void copy(struct cursor *to, struct cursor *from) {
  while (from->at < from->count && to->at < to->count) {
    uint32_t source = from->lengths[from->at] - from->used;
    uint32_t target = to->lengths[to->at] - to->used;
    uint32_t n = source < target ? source : target;
    if (n > 0) {
      memcpy(to->bytes[to->at] + to->used, from->bytes[from->at] + from->used, n);
      from->used += n;
      to->used += n;
    }
    if (n == source) from->at++, from->used = 0;
    if (n == target) to->at++, to->used = 0;
  }
}

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

static void complete_send(struct qp *qp, enum ibv_wc_status status) {
  const struct ibv_send_wr *wr = &qp->sends[qp->executed % qp->sendSize].wr;
  uint32_t index = qp->executed++;
  bool signalled = qp->signalAll || (wr->send_flags & IBV_SEND_SIGNALED);
  bool ok = status == IBV_WC_SUCCESS;
  if (!ok) qp_fail(qp);
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

static void complete_receive(struct qp *qp, struct ibv_wc wc, bool solicited) {
  struct cqe cqe = {.wc = wc, .qp = qp};
  cqe.wc.qp_num = qp->verbs.qp_num;
  if (wc.status != IBV_WC_SUCCESS) {
    qp_fail(qp);
    cqe.wc.opcode = (enum ibv_wc_opcode)UNDEFINED;
    cqe.wc.byte_len = cqe.wc.imm_data = UNDEFINED;
    cqe.wc.vendor_err = 0x200u + wc.status;
  }
  cq_add((struct cq *)qp->verbs.recv_cq, &cqe, solicited);
}

static struct receives *receives_of(struct qp *qp) {
  return qp->verbs.srq ? &((struct srq *)qp->verbs.srq)->receives : &qp->receives;
}

/* Takes the next receive; the caller has seen that there is one. */
static struct recvRequest *take_receive(struct qp *qp) {
  struct receives *queue = receives_of(qp);
  struct recvRequest *request = &queue->slots[queue->head++ % queue->size];
  struct srq *srq = (struct srq *)qp->verbs.srq;
  if (srq && srq->limit > queue->tail - queue->head) {
    srq->limit = 0;
    raise_event(deviceOf(qp->verbs.context), IBV_EVENT_SRQ_LIMIT_REACHED, srq);
  }
  return request;
}

static void access_error(struct qp *responder) {
  qp_fail(responder);
  raise_event(deviceOf(responder->verbs.context), IBV_EVENT_QP_ACCESS_ERR, responder);
}

/* SEND in its three forms. */
static enum ibv_wc_status deliver(struct qp *peer, const struct ibv_send_wr *wr,
                                  struct cursor *from) {
  struct recvRequest *receive = take_receive(peer);
  struct ibv_wc wc = {.wr_id = receive->wr_id, .opcode = IBV_WC_RECV, .src_qp = UNDEFINED};
  struct cursor to;
  if (!open_segments(peer, receive->sge, receive->num_sge, IBV_ACCESS_LOCAL_WRITE, false, &to)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    complete_receive(peer, wc, false);
    return IBV_WC_REM_OP_ERR;
  }
  if (to.total < from->total) {
    wc.status = IBV_WC_LOC_LEN_ERR;
    complete_receive(peer, wc, false);
    return IBV_WC_REM_INV_REQ_ERR;
  }
  if (wr->opcode == IBV_WR_SEND_WITH_INV && !window_invalidate(peer, wr->invalidate_rkey)) {
    wc.status = IBV_WC_LOC_QP_OP_ERR;
    complete_receive(peer, wc, false);
    return IBV_WC_REM_ACCESS_ERR;
  }
  wc.byte_len = (uint32_t)from->total;
  copy(&to, from);
  if (wr->opcode == IBV_WR_SEND_WITH_IMM) wc.wc_flags = IBV_WC_WITH_IMM;
  if (wr->opcode == IBV_WR_SEND_WITH_INV) wc.wc_flags = IBV_WC_WITH_INV;
  wc.imm_data = wc.wc_flags ? wr->imm_data : (uint32_t)UNDEFINED; /* the union covers the rkey */
  complete_receive(peer, wc, wr->send_flags & IBV_SEND_SOLICITED);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status rdma_write(struct qp *peer, const struct ibv_send_wr *wr,
                                     struct cursor *from) {
  uint8_t *at = remote_bytes(peer, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, from->total,
                             IBV_ACCESS_REMOTE_WRITE);
  if (!at) {
    access_error(peer);
    return IBV_WC_REM_ACCESS_ERR;
  }
  struct cursor to = contiguous(at, from->total);
  uint32_t length = (uint32_t)from->total;
  copy(&to, from);
  if (wr->opcode == IBV_WR_RDMA_WRITE) return IBV_WC_SUCCESS;
  struct ibv_wc wc = {
      .wr_id = take_receive(peer)->wr_id,
      .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
      .byte_len = length,
      .imm_data = wr->imm_data,
      .wc_flags = IBV_WC_WITH_IMM,
      .src_qp = UNDEFINED,
  };
  complete_receive(peer, wc, wr->send_flags & IBV_SEND_SOLICITED);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status rdma_read(struct qp *peer, const struct ibv_send_wr *wr,
                                    struct cursor *to) {
  uint8_t *at = remote_bytes(peer, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, to->total,
                             IBV_ACCESS_REMOTE_READ);
  if (!at) {
    access_error(peer);
    return IBV_WC_REM_ACCESS_ERR;
  }
  struct cursor from = contiguous(at, to->total);
  copy(to, &from);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status atomic(struct qp *peer, const struct ibv_send_wr *wr,
                                 struct cursor *to) {
  if (wr->wr.atomic.remote_addr % 8 != 0 || to->total != 8) {
    qp_fail(peer);
    return IBV_WC_REM_INV_REQ_ERR;
  }
  uint8_t *at = remote_bytes(peer, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, 8,
                             IBV_ACCESS_REMOTE_ATOMIC);
  if (!at) {
    access_error(peer);
    return IBV_WC_REM_ACCESS_ERR;
  }
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

static bool needs_receive(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static enum ibv_wc_status carry_out(struct qp *peer, const struct ibv_send_wr *wr,
                                    struct cursor *local) {
  switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return rdma_write(peer, wr, local);
    case IBV_WR_RDMA_READ:
      return rdma_read(peer, wr, local);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return atomic(peer, wr, local);
    default:
      return deliver(peer, wr, local);
  }
}

static struct qp *peer_of(struct qp *qp) {
  struct device *device = deviceOf(qp->verbs.context);
  uint32_t slot = qp->attr.dest_qp_num - FIRST_QPN;
  struct qp *peer = slot < MAX_QPS ? device->qps[slot] : NULL;
  bool ready = peer && (peer->verbs.state == IBV_QPS_RTR || peer->verbs.state == IBV_QPS_RTS);
  return ready && peer->attr.dest_qp_num == qp->verbs.qp_num ? peer : NULL;
}

static enum outcome execute_head(struct qp *qp) {
  struct sendRequest *request = &qp->sends[qp->executed % qp->sendSize];
  const struct ibv_send_wr *wr = &request->wr;
  if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV) {
    bool ok = wr->opcode == IBV_WR_BIND_MW ? window_bind(qp, wr)
                                           : window_invalidate(qp, wr->invalidate_rkey);
    complete_send(qp, ok ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
    return DONE;
  }
  bool reads = wr->opcode >= IBV_WR_RDMA_READ && wr->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
  struct cursor local;
  if (!open_segments(qp, request->sge, wr->num_sge, reads ? IBV_ACCESS_LOCAL_WRITE : 0,
                     wr->send_flags & IBV_SEND_INLINE, &local)) {
    complete_send(qp, IBV_WC_LOC_PROT_ERR);
    return DONE;
  }
  struct qp *peer = peer_of(qp);
  if (!peer) {
    complete_send(qp, IBV_WC_RETRY_EXC_ERR);
    return DONE;
  }
  struct receives *receives = receives_of(peer);
  if (needs_receive(wr->opcode) && receives->head == receives->tail) return WAITS;
  complete_send(qp, carry_out(peer, wr, &local));
  return DONE;
}

/* One request of a queue pair in ERR: its sends, and its own receives, are flushed in order. */
static enum outcome flush_one(struct qp *qp) {
  if (qp->executed != qp->posted) {
    complete_send(qp, IBV_WC_WR_FLUSH_ERR);
    return DONE;
  }
  if (!qp->verbs.srq && qp->receives.head != qp->receives.tail) {
    struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};
    wc.wr_id = qp->receives.slots[qp->receives.head++ % qp->receives.size].wr_id;
    complete_receive(qp, wc, false);
    return DONE;
  }
  if (qp->verbs.srq && !qp->lastWqeReported) {
    qp->lastWqeReported = true;
    raise_event(deviceOf(qp->verbs.context), IBV_EVENT_QP_LAST_WQE_REACHED, qp);
  }
  return WAITS;
}

static enum outcome step(struct qp *qp) {
  if (qp->verbs.state == IBV_QPS_ERR) return flush_one(qp);
  if (qp->verbs.state != IBV_QPS_RTS || qp->executed == qp->posted) return WAITS;
  return execute_head(qp);
}

unsigned execute(struct device *device, unsigned limit) {
  unsigned done = 0;
  unsigned idle = 0; /* queue pairs in a row that had nothing to do */
  while (device->qpLimit > 0 && idle < device->qpLimit && (limit == 0 || done < limit)) {
    if (device->scanFrom >= device->qpLimit) device->scanFrom = 0;
    struct qp *qp = device->qps[device->scanFrom];
    if (qp && step(qp) == DONE) {
      done++;
      idle = 0;
      continue; /* stay with it: the bench is not about scheduling */
    }
    device->scanFrom++;
    idle++;
  }
  return done;
}

void kick(struct device *device) {
  if (device->mode == FAKE_VERBS_IMMEDIATE) execute(device, 0);
  if (device->mode == FAKE_VERBS_THREAD) pthread_cond_signal(&device->work);
}
