/*
 * The rest of the libibverbs ABI that the fake speaks, beside verbs_abi.h and xrc_abi.h: what
 * describes a device. Same rules: public names, values and layout.
 */
#ifndef VERBS_MORE_H
#define VERBS_MORE_H

#include "abi/xrc_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { IBV_NODE_CA = 1, IBV_TRANSPORT_IB = 0 };

enum {
  IBV_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
  IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
  IBV_DEVICE_SRQ_RESIZE = 1 << 13,
};

struct ibv_device {
  void *ops[2];
  int node_type;
  int transport_type;
  char name[64];
  char dev_name[64];
  char dev_path[256];
  char ibdev_path[256];
};

VERBS_ABI_CHECK(sizeof(struct ibv_device) == 664);

#ifdef __cplusplus
}
#endif
#endif
