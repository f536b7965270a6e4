// Entries to work requests. Segments stay where they are: an entry's are `struct ibv_sge`.
#include <arpa/inet.h>

#include <cerrno>

#include "rings.h"
#include "ring_words.h"

namespace rings {
namespace {

constexpr uint32_t BURST = 32;

uint64_t u64(const uint32_t* words) { return uint64_t{words[1]} << 32 | words[0]; }

uint64_t idOf(const Queue& queue, uint32_t index) { return uint64_t{queue.number} << 32 | index; }

// Returns 0, or EINVAL where the driver would follow a pointer that we do not have.
int describeBind(const Tables& tables, const uint32_t* sqe, ibv_send_wr& wr) {
  auto window = tables.windowsByHandle.find(sqe[sqe::BIND_WINDOW]);
  auto region = tables.regionsByLkey.find(sqe[sqe::BIND_REGION_LKEY]);
  if (window == tables.windowsByHandle.end() || region == tables.regionsByLkey.end()) {
    return EINVAL;
  }
  wr.bind_mw.mw = window->second;
  wr.bind_mw.rkey = sqe[sqe::BIND_RKEY];
  wr.bind_mw.bind_info.mr = region->second;
  wr.bind_mw.bind_info.addr = u64(sqe + sqe::REMOTE_ADDRESS);
  wr.bind_mw.bind_info.length = u64(sqe + sqe::BIND_LENGTH);
  wr.bind_mw.bind_info.mw_access_flags = sqe[sqe::BIND_ACCESS];
  return 0;
}

// `inlined` is the one segment of a request whose payload stands in the entry.
int describe(const Tables& tables, uint32_t* sqe, ibv_send_wr& wr, ibv_sge& inlined) {
  const uint32_t control = sqe[sqe::CONTROL];
  wr.opcode = static_cast<ibv_wr_opcode>(control & 0xff);
  wr.send_flags = control >> 8 & 0xff;
  wr.sg_list = reinterpret_cast<ibv_sge*>(sqe + sqe::SEGMENTS);
  wr.num_sge = static_cast<int>(control >> 16 & 0xff);
  if (wr.send_flags & IBV_SEND_INLINE) {
    inlined = {reinterpret_cast<uintptr_t>(sqe + sqe::SEGMENTS), sqe[sqe::INLINE_LENGTH], 0};
    wr.sg_list = &inlined;
    wr.num_sge = 1;
  }
  switch (wr.opcode) {
    case IBV_WR_SEND:
      return 0;
    case IBV_WR_SEND_WITH_IMM:
      wr.imm_data = htonl(sqe[sqe::IMMEDIATE_OR_INVALIDATE]);
      return 0;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      wr.invalidate_rkey = sqe[sqe::IMMEDIATE_OR_INVALIDATE];
      return 0;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      wr.imm_data = htonl(sqe[sqe::IMMEDIATE_OR_INVALIDATE]);
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      wr.wr.rdma.remote_addr = u64(sqe + sqe::REMOTE_ADDRESS);
      wr.wr.rdma.rkey = sqe[sqe::RKEY];
      return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      wr.wr.atomic.remote_addr = u64(sqe + sqe::REMOTE_ADDRESS);
      wr.wr.atomic.rkey = sqe[sqe::RKEY];
      wr.wr.atomic.compare_add = u64(sqe + sqe::COMPARE_ADD);
      wr.wr.atomic.swap = u64(sqe + sqe::SWAP);
      return 0;
    case IBV_WR_BIND_MW:
      return describeBind(tables, sqe, wr);
  }
  return EINVAL;
}

int postOne(Queue& queue, uint64_t id) {
  ibv_qp* qp = queue.pair->verbs;
  if (queue.kind == Kind::Send) {
    ibv_send_wr wr = {};
    wr.wr_id = id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return qp->context->ops.post_send(qp, &wr, &bad);
  }
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  ibv_recv_wr* bad = nullptr;
  return qp->context->ops.post_recv(qp, &wr, &bad);
}

// The driver has refused the entry at `queue.fetched`. The queue pair goes to ERR and an empty
// request takes the entry's place: it is flushed behind all earlier ones, in the order of the ring,
// and poll() gives its completion the entry's own status. Returns 0, or the errno of a device that
// is gone.
int replaceRefused(Tables& tables, Queue& queue, int error) {
  if (!queue.refused) {
    queue.refused = true;
    queue.refusedIndex = queue.fetched;
    queue.refusedErrno = error;
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_ERR;
    if (int failure = tables.modifyQp(queue.pair->verbs, &attr, IBV_QP_STATE)) return failure;
  }
  int failure = postOne(queue, idOf(queue, queue.fetched));
  if (failure == 0) {
    queue.fetched++;
    return 0;
  }
  if (failure != ENOMEM) return failure;
  // No room until flushed requests have been polled: poll() comes back to it.
  queue.stalled = true;
  tables.stalled++;
  return 0;
}

void resume(Tables& tables, Queue& queue) {
  if (!queue.stalled) return;
  queue.stalled = false;
  tables.stalled--;
}

ibv_qp_state stateOf(const Queue& queue) {
  return __atomic_load_n(&queue.pair->verbs->state, __ATOMIC_RELAXED);
}

}  // namespace

int postSends(Tables& tables, Queue& queue) {
  if (stateOf(queue) < IBV_QPS_RTS) return 0;
  resume(tables, queue);
  ibv_qp* qp = queue.pair->verbs;
  ibv_send_wr requests[BURST];
  ibv_sge inlined[BURST];
  int failure = 0;
  for (uint32_t end = queue.ring.producer(); queue.fetched != end && !queue.stalled && !failure;) {
    int error = 0;
    uint32_t count = 0;
    for (; count < BURST && queue.fetched + count != end; count++) {
      ibv_send_wr& wr = requests[count];
      error = describe(tables, queue.ring.entry(queue.fetched + count), wr, inlined[count]);
      if (error) break;
      wr.wr_id = idOf(queue, queue.fetched + count);
      wr.next = &requests[count + 1];
    }
    if (count > 0) {
      requests[count - 1].next = nullptr;
      ibv_send_wr* bad = nullptr;
      if (int refusal = qp->context->ops.post_send(qp, requests, &bad)) {
        error = refusal;
        count = static_cast<uint32_t>(bad - requests);
      }
      queue.fetched += count;
    }
    if (error) failure = replaceRefused(tables, queue, error);
  }
  queue.ring.setConsumer(queue.fetched);
  return failure;
}

int postReceives(Tables& tables, Queue& queue) {
  if (stateOf(queue) == IBV_QPS_RESET) return 0;
  resume(tables, queue);
  ibv_qp* qp = queue.pair->verbs;
  ibv_recv_wr requests[BURST];
  int failure = 0;
  for (uint32_t end = queue.ring.producer(); queue.fetched != end && !queue.stalled && !failure;) {
    uint32_t count = 0;
    for (; count < BURST && queue.fetched + count != end; count++) {
      uint32_t* rqe = queue.ring.entry(queue.fetched + count);
      requests[count] = {idOf(queue, queue.fetched + count), &requests[count + 1],
                         reinterpret_cast<ibv_sge*>(rqe + rqe::SEGMENTS),
                         static_cast<int>(rqe[rqe::NUM_SGE])};
    }
    requests[count - 1].next = nullptr;
    ibv_recv_wr* bad = nullptr;
    int error = qp->context->ops.post_recv(qp, requests, &bad);
    if (error) count = static_cast<uint32_t>(bad - requests);
    queue.fetched += count;
    if (error) failure = replaceRefused(tables, queue, error);
  }
  queue.ring.setConsumer(queue.fetched);
  return failure;
}

int postShared(Tables&, Queue& queue) {
  ibv_recv_wr requests[BURST];
  int error = 0;
  for (uint32_t end = queue.submissions.producer(); queue.fetched != end && !error;) {
    uint32_t count = 0;
    for (; count < BURST && queue.fetched + count != end; count++) {
      const uint32_t slot = *queue.submissions.entry(queue.fetched + count);
      uint32_t* rqe = queue.ring.entry(slot);
      requests[count] = {idOf(queue, slot), &requests[count + 1],
                         reinterpret_cast<ibv_sge*>(rqe + rqe::SEGMENTS),
                         static_cast<int>(rqe[rqe::NUM_SGE])};
    }
    requests[count - 1].next = nullptr;
    ibv_recv_wr* bad = nullptr;
    error = queue.srq->context->ops.post_srq_recv(queue.srq, requests, &bad);
    if (error) count = static_cast<uint32_t>(bad - requests);
    queue.fetched += count;
  }
  queue.submissions.setConsumer(queue.fetched);
  return error;
}

void forget(Tables& tables, Queue& queue) {
  resume(tables, queue);
  queue.refused = false;
  queue.fetched = queue.ring.producer();
  queue.ring.setConsumer(queue.fetched);
}

}  // namespace rings
