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

static int copyPayload(struct qp *qp, struct sendRequest *to, const struct ibv_send_wr *wr) {
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

static bool mayInline(enum ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      return true;
    default:
      return false;
  }
}

static int postOneSend(struct qp *qp, const struct ibv_send_wr *wr) {
  int error = injected("ibv_post_send");
  if (error) return error;
  if (qp->verbs.state < IBV_QPS_RTS) return EINVAL;
  if (qp->posted - qp->freed == qp->sendSize) return ENOMEM;
  if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge) return EINVAL;
  if ((unsigned)wr->opcode > IBV_WR_SEND_WITH_INV) return EINVAL;
  bool isInline = wr->send_flags & IBV_SEND_INLINE;
  if (isInline && !mayInline(wr->opcode)) return EINVAL;
  struct sendRequest *to = &qp->sends[qp->posted % qp->sendSize];
  to->wr = *wr;
  if (isInline) {
    error = copyPayload(qp, to, wr);
    if (error) return error;
  } else {
    for (int i = 0; i < wr->num_sge; i++) to->sge[i] = wr->sg_list[i];
  }
  qp->posted++;
  return 0;
}

int post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct device *device = deviceOf(verbs->context);
  int error = 0;
  pthread_mutex_lock(&device->lock);
  while (wr && (error = postOneSend((struct qp *)verbs, wr)) == 0) wr = wr->next;
  if (error) *bad = wr;
  kick(device);
  pthread_mutex_unlock(&device->lock);
  return error;
}

static int postOneReceive(struct receives *queue, const struct ibv_recv_wr *wr) {
  if (queue->tail - queue->head == queue->size) return ENOMEM;
  if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->maxSge) return EINVAL;
  struct recvRequest *to = &queue->slots[queue->tail % queue->size];
  to->wr_id = wr->wr_id;
  to->num_sge = wr->num_sge;
  for (int i = 0; i < wr->num_sge; i++) to->sge[i] = wr->sg_list[i];
  queue->tail++;
  return 0;
}

int post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct device *device = deviceOf(verbs->context);
  struct qp *qp = (struct qp *)verbs;
  int error = 0;
  pthread_mutex_lock(&device->lock);
  for (; wr; wr = wr->next) {
    error = injected("ibv_post_recv");
    if (!error && (verbs->srq || verbs->state == IBV_QPS_RESET)) error = EINVAL;
    if (!error) error = postOneReceive(&qp->receives, wr);
    if (error) break;
  }
  if (error) *bad = wr;
  kick(device);
  pthread_mutex_unlock(&device->lock);
  return error;
}

int post_srq_recv(struct ibv_srq *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct device *device = deviceOf(verbs->context);
  int error = 0;
  pthread_mutex_lock(&device->lock);
  for (; wr; wr = wr->next) {
    error = injected("ibv_post_srq_recv");
    if (!error) error = postOneReceive(&((struct srq *)verbs)->receives, wr);
    if (error) break;
  }
  if (error) *bad = wr;
  kick(device);
  pthread_mutex_unlock(&device->lock);
  return error;
}
