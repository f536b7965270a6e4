/* Posting: requests are checked and copied, one after the other, until one is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

bool receives_init(struct receives *queue, uint32_t size, uint32_t maxSge) {
  queue->size = size;
  queue->maxSge = maxSge;
  queue->slots = size ? calloc(size, sizeof(*queue->slots)) : NULL;
  return size == 0 || queue->slots;
}

static int copy_payload(struct qp *qp, struct sendRequest *to, const struct ibv_send_wr *wr) {
  uint32_t length = 0;
  for (int i = 0; i < wr->num_sge; i++) {
    const struct ibv_sge *sge = &wr->sg_list[i];
    if (sge->length > qp->cap.max_inline_data - length) return EINVAL;
    /* Inline payload lies in the caller's own memory, under no key. */
    memcpy(to->payload + length, (const void *)(uintptr_t)sge->addr, sge->length);
    length += sge->length;
  }
  to->sge[0] = (struct ibv_sge){(uintptr_t)to->payload, length, 0};
  to->wr.num_sge = 1;
  return 0;
}

#define BIT(opcode) (1u << IBV_WR_##opcode)
enum {
  DATAGRAM = BIT(SEND) | BIT(SEND_WITH_IMM),
  UNRELIABLE = DATAGRAM | BIT(RDMA_WRITE) | BIT(RDMA_WRITE_WITH_IMM) | BIT(BIND_MW) |
               BIT(LOCAL_INV) | BIT(SEND_WITH_INV),
  RELIABLE =
      UNRELIABLE | BIT(RDMA_READ) | BIT(ATOMIC_CMP_AND_SWP) | BIT(ATOMIC_FETCH_AND_ADD),
  INLINABLE = DATAGRAM | BIT(RDMA_WRITE) | BIT(RDMA_WRITE_WITH_IMM) | BIT(SEND_WITH_INV),
};

static unsigned opcodes_of(enum ibv_qp_type type) {
  if (type == IBV_QPT_UD) return DATAGRAM;
  return type == IBV_QPT_UC ? UNRELIABLE : RELIABLE;
}

static int check_send(const struct qp *qp, const struct ibv_send_wr *wr) {
  if (qp->domain || qp->attr.qp_state < IBV_QPS_RTS) return EINVAL;
  if (qp->posted - qp->freed == qp->sendSize) return ENOMEM;
  if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge) return EINVAL;
  if ((unsigned)wr->opcode > IBV_WR_SEND_WITH_INV) return EINVAL;
  if (!(opcodes_of(qp->verbs.qp_type) >> wr->opcode & 1)) return EINVAL;
  bool isInline = wr->send_flags & IBV_SEND_INLINE;
  if (isInline && !(INLINABLE >> wr->opcode & 1)) return EINVAL;
  return qp->verbs.qp_type == IBV_QPT_UD && !wr->wr.ud.ah ? EINVAL : 0;
}

int post_one_send(struct qp *qp, const struct ibv_send_wr *wr) {
  int error = check_send(qp, wr);
  if (error) return error;
  struct sendRequest *to = &qp->sends[qp->posted % qp->sendSize];
  to->wr = *wr;
  if (qp->verbs.qp_type == IBV_QPT_UD) {
    const struct ah *ah = (const struct ah *)wr->wr.ud.ah;
    to->to = ah->attr;
    to->toPd = ah->verbs.pd;
  }
  if (wr->send_flags & IBV_SEND_INLINE) {
    error = copy_payload(qp, to, wr);
    if (error) return error;
  } else {
    for (int i = 0; i < wr->num_sge; i++) to->sge[i] = wr->sg_list[i];
  }
  qp->posted++;
  if (!qp->parked) make_runnable(qp); /* what waits does not wait shorter for one more */
  return 0;
}

int post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct qp *qp = qpOf(verbs);
  int error = 0;
  pthread_mutex_lock(&fakeLock);
  for (; wr; wr = wr->next) {
    error = refused(verbs->context, "ibv_post_send");
    bool isBind = wr->opcode == IBV_WR_BIND_MW;
    if (!error && isBind && wr->bind_mw.mw->type == IBV_MW_TYPE_1) error = EINVAL;
    if (!error && isBind && wr->imm_data) error = EINVAL; /* as librxe does */
    if (!error) error = post_one_send(qp, wr);
    if (error) break;
  }
  if (error) *bad = wr;
  kick();
  pthread_mutex_unlock(&fakeLock);
  return error;
}

static int post_one_receive(struct receives *queue, const struct ibv_recv_wr *wr) {
  if (queue->tail - queue->head == queue->size) return ENOMEM;
  if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->maxSge) return EINVAL;
  struct recvRequest *to = &queue->slots[queue->tail % queue->size];
  to->wr_id = wr->wr_id;
  to->num_sge = wr->num_sge;
  for (int i = 0; i < wr->num_sge; i++) to->sge[i] = wr->sg_list[i];
  queue->tail++;
  return 0;
}

static int check_receive(const struct qp *qp) {
  if (qp->verbs.srq || qp->domain || qp->verbs.qp_type == IBV_QPT_XRC_SEND) return EINVAL;
  return qp->attr.qp_state == IBV_QPS_RESET ? EINVAL : 0;
}

int post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct qp *qp = qpOf(verbs);
  int error = 0;
  pthread_mutex_lock(&fakeLock);
  for (; wr; wr = wr->next) {
    error = refused(verbs->context, "ibv_post_recv");
    if (!error) error = check_receive(qp);
    if (!error) error = post_one_receive(&qp->receives, wr);
    if (error) break;
  }
  if (error) *bad = wr;
  if (qp->attr.qp_state == IBV_QPS_ERR) make_runnable(qp);
  wake_waiting();
  kick();
  pthread_mutex_unlock(&fakeLock);
  return error;
}

int post_srq_recv(struct ibv_srq *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  int error = 0;
  pthread_mutex_lock(&fakeLock);
  for (; wr; wr = wr->next) {
    error = refused(verbs->context, "ibv_post_srq_recv");
    if (!error) error = post_one_receive(&((struct srq *)verbs)->receives, wr);
    if (error) break;
  }
  if (error) *bad = wr;
  wake_waiting();
  kick();
  pthread_mutex_unlock(&fakeLock);
  return error;
}
