// Word offsets of ring entries of core/spi/layout/ring.ts.
#pragma once

#include <cstdint>

namespace sqe {
enum : uint32_t {
  CONTROL = 0,
  INLINE_LENGTH = 1,
  REMOTE_ADDRESS = 4,
  RKEY = 6,
  IMMEDIATE_OR_INVALIDATE = 7,
  COMPARE_ADD = 8,
  SWAP = 10,
  BIND_LENGTH = 6,
  BIND_WINDOW = 8,
  BIND_REGION_LKEY = 9,
  BIND_ACCESS = 10,
  BIND_RKEY = 11,
  ADDRESS_HANDLE = 12,
  REMOTE_QPN = 13,
  REMOTE_QKEY = 14,
  XRC_SRQN = 15,
  SEGMENTS = 16,
};
}

namespace rqe {
enum : uint32_t { NUM_SGE = 0, SEGMENTS = 4 };
}

// The cookie is at the same place in every entry.
enum : uint32_t { COOKIE_LO = 2, COOKIE_HI = 3 };

namespace cqe {
enum : uint32_t {
  CONTROL = 0,
  QPN = 1,
  BYTE_LENGTH = 4,
  IMMEDIATE_OR_INVALIDATE = 5,
  SOURCE_QPN = 6,
  VENDOR_ERROR = 7,
  WQE_INDEX = 8,
  SRQN = 9,
  QP_CONTEXT = 10,
};
}
