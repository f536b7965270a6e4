// Attributes of a queue pair as words: index by index what
// providers/verbs/objects/attribute-words.ts has.
#pragma once

#include <cstdint>

#include "abi/verbs_abi.h"

namespace qp_words {
enum : uint32_t {
  STATE,
  CURRENT_STATE,
  SQD_NOTIFY,
  ACCESS_FLAGS,
  PKEY_INDEX,
  PORT,
  QKEY,
  PATH_MTU,
  DESTINATION_QPN,
  RECEIVE_PSN,
  SEND_PSN,
  MAX_DEST_RD_ATOMIC,
  MAX_RD_ATOMIC,
  MIN_RNR_TIMER,
  TIMEOUT,
  RETRY_COUNT,
  RNR_RETRY,
  GID,  // four words: the bytes as they are
  GID_INDEX = GID + 4,
  HOP_LIMIT,
  TRAFFIC_CLASS,
  FLOW_LABEL,
  AV_PORT,
  PATH_MIGRATION,
  DESTINATION_LID,  // InfiniBand
  SERVICE_LEVEL,
  SOURCE_PATH_BITS,
  COUNT,
};
}

ibv_qp_attr attributesOf(const uint32_t* words);
void writeAttributes(const ibv_qp_attr& attr, uint32_t* words);
