// The functions of libibverbs that we call by name.
#pragma once

#include "library.h"
#include "abi/verbs_abi.h"

#define VERBS_REQUIRED(X)                                                                   \
  X(ibv_get_device_list) X(ibv_free_device_list) X(ibv_get_device_name) X(ibv_open_device)  \
  X(ibv_close_device) X(ibv_query_device) X(ibv_query_port) X(ibv_query_gid)                \
  X(ibv_get_async_event) X(ibv_ack_async_event) X(ibv_alloc_pd) X(ibv_dealloc_pd)           \
  X(ibv_reg_mr) X(ibv_dereg_mr) X(ibv_create_ah) X(ibv_destroy_ah)                          \
  X(ibv_create_comp_channel) X(ibv_destroy_comp_channel) X(ibv_create_cq) X(ibv_resize_cq)  \
  X(ibv_destroy_cq) X(ibv_get_cq_event) X(ibv_ack_cq_events) X(ibv_create_srq)              \
  X(ibv_modify_srq) X(ibv_destroy_srq) X(ibv_create_qp) X(ibv_modify_qp)                    \
  X(ibv_query_qp) X(ibv_destroy_qp) X(ibv_attach_mcast) X(ibv_detach_mcast)

// Younger than the oldest rdma-core that we want to run with.
#define VERBS_OPTIONAL(X) X(ibv_reg_mr_iova) X(_ibv_query_gid_ex)

struct Verbs {
  VERBS_REQUIRED(SYMBOL_MEMBER)
  VERBS_OPTIONAL(SYMBOL_MEMBER)

  SharedLibrary library() {
#define REQUIRED(name) REQUIRED_SYMBOL(*this, name)
#define OPTIONAL(name) OPTIONAL_SYMBOL(*this, name)
    return {"verbs", "libibverbs.so.1", {VERBS_REQUIRED(REQUIRED) VERBS_OPTIONAL(OPTIONAL)}};
#undef REQUIRED
#undef OPTIONAL
  }
};
