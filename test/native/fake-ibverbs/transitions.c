/* What a modification of a queue pair must give, and may (IBTA 11.2.5.2), and in which limits. */
#include <errno.h>

#include "internal.h"

enum { RC = 1, UC = 2, UD = 4, INI = 8, TGT = 16, ALL = RC | UC | UD | INI | TGT };

enum {
  CONNECTED_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
  UD_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
  PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
  RESPONDER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
  REQUESTER =
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
  ACCESS = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS,
  RNR_TOO = ACCESS | IBV_QP_MIN_RNR_TIMER,
  KEY_TOO = IBV_QP_CUR_STATE | IBV_QP_QKEY,
  EARLY = IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
  MOVABLE = IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
};

static const struct {
  int types;
  enum ibv_qp_state from, to;
  int required, optional;
} TABLE[] = {
    {RC | UC | INI | TGT, IBV_QPS_RESET, IBV_QPS_INIT, CONNECTED_INIT, 0},
    {RC | UC | INI | TGT, IBV_QPS_INIT, IBV_QPS_INIT, 0, CONNECTED_INIT},
    {RC | TGT, IBV_QPS_INIT, IBV_QPS_RTR, PATH | RESPONDER, EARLY},
    {UC | INI, IBV_QPS_INIT, IBV_QPS_RTR, PATH, EARLY},
    {RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | REQUESTER, RNR_TOO},
    {INI, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | REQUESTER, ACCESS},
    {TGT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, RNR_TOO},
    {UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, ACCESS},
    {RC | TGT, IBV_QPS_RTS, IBV_QPS_RTS, 0, RNR_TOO},
    {UC | INI, IBV_QPS_RTS, IBV_QPS_RTS, 0, ACCESS},
    {RC | TGT, IBV_QPS_SQD, IBV_QPS_RTS, 0, RNR_TOO},
    {UC | INI, IBV_QPS_SQD, IBV_QPS_RTS, 0, ACCESS},
    {RC, IBV_QPS_SQD, IBV_QPS_SQD, 0, MOVABLE | REQUESTER | RESPONDER | IBV_QP_PORT},
    {UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, MOVABLE},
    {INI, IBV_QPS_SQD, IBV_QPS_SQD, 0, MOVABLE | REQUESTER | IBV_QP_PORT},
    {TGT, IBV_QPS_SQD, IBV_QPS_SQD, 0, MOVABLE | RESPONDER | IBV_QP_TIMEOUT | IBV_QP_PORT},
    {RC | UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, ACCESS},
    {UD, IBV_QPS_RESET, IBV_QPS_INIT, UD_INIT, 0},
    {UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, UD_INIT},
    {UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, KEY_TOO},
    {UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, KEY_TOO},
    {UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, KEY_TOO},
    {UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, KEY_TOO},
    {ALL, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
};

static int bit_of(enum ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return RC;
    case IBV_QPT_UC:
      return UC;
    case IBV_QPT_UD:
      return UD;
    case IBV_QPT_XRC_SEND:
      return INI;
    default:
      return TGT;
  }
}

static bool allowed(int type, enum ibv_qp_state from, enum ibv_qp_state to, int mask) {
  mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return mask == 0;
  for (size_t i = 0; i < sizeof(TABLE) / sizeof(TABLE[0]); i++) {
    if (!(TABLE[i].types & type) || TABLE[i].from != from || TABLE[i].to != to) continue;
    int required = TABLE[i].required;
    return (mask & required) == required && (mask & ~(required | TABLE[i].optional)) == 0;
  }
  return false;
}

static bool path_is_good(struct adapter *adapter, const struct ibv_ah_attr *av) {
  if (!av->is_global) return true; /* to itself: see route() */
  return av->port_num >= 1 && av->port_num <= adapter->portCount &&
         gid_at(adapter, av->port_num, av->grh.sgid_index);
}

/* Each value that is given is one that a device would take. */
static bool in_limits(const struct qp *qp, const struct ibv_qp_attr *attr, int mask) {
  bool port = attr->port_num >= 1 && attr->port_num <= qp->adapter->portCount;
  if ((mask & IBV_QP_PORT) && !port) return false;
  if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0) return false;
  if ((mask & IBV_QP_AV) && !path_is_good(qp->adapter, &attr->ah_attr)) return false;
  bool mtu = attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= IBV_MTU_4096;
  if ((mask & IBV_QP_PATH_MTU) && !mtu) return false;
  if ((mask & IBV_QP_DEST_QPN) && attr->dest_qp_num > 0xffffff) return false;
  if ((mask & IBV_QP_RQ_PSN) && attr->rq_psn > 0xffffff) return false;
  if ((mask & IBV_QP_SQ_PSN) && attr->sq_psn > 0xffffff) return false;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > MAX_READS) return false;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > MAX_READS) return false;
  if ((mask & IBV_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31) return false;
  if ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31) return false;
  if ((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7) return false;
  return !(mask & IBV_QP_RNR_RETRY) || attr->rnr_retry <= 7;
}

int check_transition(const struct qp *qp, const struct ibv_qp_attr *attr, int mask) {
  enum ibv_qp_state from = qp->attr.qp_state;
  if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from) return EINVAL;
  enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
  if (!allowed(bit_of(qp->verbs.qp_type), from, to, mask)) return EINVAL;
  return in_limits(qp, attr, mask) ? 0 : EINVAL;
}
