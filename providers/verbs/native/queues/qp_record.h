// What a queue pair is made of, as 32-bit words: the numbers of its parents, its sizes, and its
// QPN, which is written. objects/create-queue-pair.ts has the same words.
#pragma once

#include "napi_util.h"

namespace qp_record {

enum Word {
  PD,
  SEND_CQ,
  RECEIVE_CQ,
  SRQ,
  TYPE,
  MAX_SEND_WR,
  MAX_RECEIVE_WR,
  MAX_SEND_SGE,
  MAX_RECEIVE_SGE,
  MAX_INLINE,
  CONTEXT,
  CREATE_FLAGS,
  QPN,
  COUNT,
};

}  // namespace qp_record

// The first argument, if it is one.
inline uint32_t* qpRecord(const Args& args) {
  size_t length = 0;
  auto* words = static_cast<uint32_t*>(args.memory(0, &length));
  return words && length >= qp_record::COUNT * sizeof(uint32_t) ? words : nullptr;
}
