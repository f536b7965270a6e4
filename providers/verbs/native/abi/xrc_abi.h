/*
 * XRC and creation flags in the libibverbs ABI: the verbs that a device's context has behind it, in
 * struct verbs_context, and what they take. Same rules as verbs_abi.h: public names, values and
 * layout.
 */
#ifndef XRC_ABI_H
#define XRC_ABI_H

#include "abi/verbs_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_xrcd {
  struct ibv_context *context;
};

enum { IBV_XRCD_INIT_ATTR_FD = 1 << 0, IBV_XRCD_INIT_ATTR_OFLAGS = 1 << 1 };
struct ibv_xrcd_init_attr {
  uint32_t comp_mask;
  int fd;
  int oflags;
};

enum { IBV_SRQT_BASIC, IBV_SRQT_XRC };
enum {
  IBV_SRQ_INIT_ATTR_TYPE = 1 << 0,
  IBV_SRQ_INIT_ATTR_PD = 1 << 1,
  IBV_SRQ_INIT_ATTR_XRCD = 1 << 2,
  IBV_SRQ_INIT_ATTR_CQ = 1 << 3,
};
struct ibv_srq_init_attr_ex {
  void *srq_context;
  struct ibv_srq_attr attr;
  uint32_t comp_mask;
  int srq_type;
  struct ibv_pd *pd;
  struct ibv_xrcd *xrcd;
  struct ibv_cq *cq;
  uint32_t tag_matching[2];
};

enum {
  IBV_QP_INIT_ATTR_PD = 1 << 0,
  IBV_QP_INIT_ATTR_XRCD = 1 << 1,
  IBV_QP_INIT_ATTR_CREATE_FLAGS = 1 << 2,
};
enum { IBV_QP_CREATE_BLOCK_SELF_MCAST_LB = 1 << 1 };
struct ibv_qp_init_attr_ex {
  void *qp_context;
  struct ibv_cq *send_cq;
  struct ibv_cq *recv_cq;
  struct ibv_srq *srq;
  struct ibv_qp_cap cap;
  enum ibv_qp_type qp_type;
  int sq_sig_all;
  uint32_t comp_mask;
  struct ibv_pd *pd;
  struct ibv_xrcd *xrcd;
  uint32_t create_flags;
  uint64_t others[6]; /* by further bits of comp_mask */
};

enum {
  IBV_QP_OPEN_ATTR_NUM = 1 << 0,
  IBV_QP_OPEN_ATTR_XRCD = 1 << 1,
  IBV_QP_OPEN_ATTR_CONTEXT = 1 << 2,
  IBV_QP_OPEN_ATTR_TYPE = 1 << 3,
};
struct ibv_qp_open_attr {
  uint32_t comp_mask;
  uint32_t qp_num;
  struct ibv_xrcd *xrcd;
  void *qp_context;
  enum ibv_qp_type qp_type;
};

/* In front of a struct ibv_context whose abi_compat is all ones; `sz` tells how much is there. */
struct verbs_context {
  int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
                    size_t attr_bytes);
  void *between_port_and_qp[31];
  struct ibv_qp *(*open_qp)(struct ibv_context *context, struct ibv_qp_open_attr *attr);
  struct ibv_qp *(*create_qp_ex)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
  int (*get_srq_num)(struct ibv_srq *srq, uint32_t *number);
  struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
                                   struct ibv_srq_init_attr_ex *attr);
  struct ibv_xrcd *(*open_xrcd)(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
  int (*close_xrcd)(struct ibv_xrcd *xrcd);
  uint64_t placeholder;
  size_t sz;
  struct ibv_context context;
};

VERBS_ABI_CHECK(sizeof(struct ibv_port_attr) == 52);
VERBS_ABI_CHECK(sizeof(struct ibv_srq_init_attr_ex) == 64);
VERBS_ABI_CHECK(sizeof(struct ibv_qp_init_attr_ex) == 136);
VERBS_ABI_CHECK(offsetof(struct verbs_context, open_qp) == 256);
VERBS_ABI_CHECK(offsetof(struct verbs_context, context) == 320);

#ifdef __cplusplus
}

// The verbs behind a context that has room for `member`, or null.
template <typename Member>
verbs_context* extended(ibv_context* context, Member verbs_context::*member) {
  if (context->abi_compat != reinterpret_cast<void*>(UINTPTR_MAX)) return nullptr;
  auto* behind = reinterpret_cast<verbs_context*>(reinterpret_cast<uint8_t*>(context) -
                                                  offsetof(verbs_context, context));
  const auto* at = reinterpret_cast<uint8_t*>(&(behind->*member));
  const auto* end = reinterpret_cast<uint8_t*>(behind) + sizeof(verbs_context);
  const bool there = behind->sz >= static_cast<size_t>(end - at);
  return there && behind->*member ? behind : nullptr;
}
#endif
#endif
