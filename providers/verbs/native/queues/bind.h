// Memory windows in the send queue.
#pragma once

#include "queues/rings.h"

namespace rings {

// Returns 0, or EINVAL: no such window or region, or a key that cannot be the window's next one.
int describeBind(const Tables& tables, const uint32_t* sqe, ibv_send_wr& wr);

inline bool isType1(const ibv_send_wr& wr) { return wr.bind_mw.mw->type == IBV_MW_TYPE_1; }

// Type 1 is bound by a call of its own, which takes its place in the queue. 0 or errno; `*bad` is
// `&wr` then.
int bindType1(ibv_qp* qp, ibv_send_wr& wr, ibv_send_wr** bad);

// Type 2: the driver has taken the bind, and the next request about the window goes by the new key.
void bindPosted(Tables& tables, const Queue& queue, const uint32_t* sqe, const ibv_send_wr& wr);

// A completion of a bind: the window has its key, or the one before. Every bind is signalled to the
// driver, so that this is known; poll() keeps back what the consumer has not asked for.
void finishBind(Tables& tables, const uint32_t* sqe, bool done);

}  // namespace rings
