#include "queues/bind.h"

#include "errno_of.h"
#include "queues/ring_words.h"

namespace rings {
namespace {

constexpr uint32_t VARIANT_MASK = 0xff;

uint64_t u64(const uint32_t* words) { return uint64_t{words[1]} << 32 | words[0]; }

// The key that a driver gives a type 1 window when it binds it.
uint32_t nextRkey(uint32_t rkey) {
  return (rkey & ~VARIANT_MASK) | ((rkey + 1) & VARIANT_MASK);
}

// Unbinding needs no region, but librxe reads the key of one all the same: the one that the window
// is bound to, or else any of its domain. Null when there is none.
ibv_mr* regionToUnbind(const Tables& tables, const Window& window) {
  const auto bound = tables.regionsByLkey.find(window.regionLkey);
  if (window.regionLkey != 0 && bound != tables.regionsByLkey.end()) return bound->second;
  for (const auto& [lkey, region] : tables.regionsByLkey) {
    if (region->pd == window.verbs->pd) return region;
  }
  return nullptr;
}

}  // namespace

int describeBind(const Tables& tables, const uint32_t* sqe, ibv_send_wr& wr) {
  const Window* window = tables.windows.at(sqe[sqe::BIND_WINDOW]);
  if (!window) return EINVAL;
  const uint64_t length = u64(sqe + sqe::BIND_LENGTH);
  auto region = tables.regionsByLkey.find(sqe[sqe::BIND_REGION_LKEY]);
  const bool hasRegion = region != tables.regionsByLkey.end();
  if (!hasRegion && length > 0) return EINVAL;
  const uint32_t rkey = sqe[sqe::BIND_RKEY];
  const bool type1 = window->verbs->type == IBV_MW_TYPE_1;
  if (type1 && rkey != nextRkey(window->verbs->rkey)) return EINVAL;
  wr.imm_data = 0;  // librxe refuses a bind that has one
  wr.bind_mw.mw = window->verbs;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info.mr = hasRegion ? region->second : regionToUnbind(tables, *window);
  if (!wr.bind_mw.bind_info.mr) return EINVAL;
  wr.bind_mw.bind_info.addr = u64(sqe + sqe::REMOTE_ADDRESS);
  wr.bind_mw.bind_info.length = length;
  wr.bind_mw.bind_info.mw_access_flags = sqe[sqe::BIND_ACCESS];
  return 0;
}

int bindType1(ibv_qp* qp, ibv_send_wr& wr, ibv_send_wr** bad) {
  ibv_mw_bind bind = {wr.wr_id, wr.send_flags, wr.bind_mw.bind_info};
  const int error = errnoOf(qp->context->ops.bind_mw(qp, wr.bind_mw.mw, &bind));
  if (error) *bad = &wr;
  return error;
}

void bindPosted(Tables& tables, const Queue& queue, const uint32_t* sqe, const ibv_send_wr& wr) {
  if (isType1(wr)) return;
  wr.bind_mw.mw->rkey = wr.bind_mw.rkey;
  if (Window* window = tables.windows.at(sqe[sqe::BIND_WINDOW])) window->holder = queue.pair;
}

void finishBind(Tables& tables, const uint32_t* sqe, bool done) {
  Window* window = tables.windows.at(sqe[sqe::BIND_WINDOW]);
  const uint32_t rkey = sqe[sqe::BIND_RKEY];
  if (!window || (window->rkey ^ rkey) & ~VARIANT_MASK) return;
  if (done) {
    window->rkey = rkey;
    window->regionLkey = u64(sqe + sqe::BIND_LENGTH) > 0 ? sqe[sqe::BIND_REGION_LKEY] : 0;
  } else {
    window->verbs->rkey = window->rkey;
  }
}

}  // namespace rings
