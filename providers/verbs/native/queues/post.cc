// Entries to work requests. Segments stay where they are: an entry's are `struct ibv_sge`.
#include <arpa/inet.h>

#include "queues/bind.h"
#include "errno_of.h"
#include "queues/ring_words.h"

namespace rings {
namespace {

constexpr uint32_t BURST = 32;

uint64_t u64(const uint32_t* words) { return uint64_t{words[1]} << 32 | words[0]; }

uint64_t idOf(const Queue& queue, uint32_t index) { return uint64_t{queue.id} << 32 | index; }

// Returns 0, or EINVAL where the driver would follow a pointer that we do not have.
int describeOperation(const Tables& tables, const uint32_t* sqe, ibv_send_wr& wr) {
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

// `inlined` is the one segment of a request whose payload stands in the entry.
int describe(const Tables& tables, const ibv_qp& qp, uint32_t* sqe, ibv_send_wr& wr,
             ibv_sge& inlined) {
  const uint32_t control = sqe[sqe::CONTROL];
  if ((control & 0xff) > IBV_WR_SEND_WITH_INV) return EINVAL;
  wr.opcode = static_cast<ibv_wr_opcode>(control & 0xff);
  wr.send_flags = control >> 8 & 0xff;
  wr.sg_list = reinterpret_cast<ibv_sge*>(sqe + sqe::SEGMENTS);
  wr.num_sge = static_cast<int>(control >> 16 & 0xff);
  if (wr.send_flags & IBV_SEND_INLINE) {
    inlined = {reinterpret_cast<uintptr_t>(sqe + sqe::SEGMENTS), sqe[sqe::INLINE_LENGTH], 0};
    wr.sg_list = &inlined;
    wr.num_sge = 1;
  }
  if (qp.qp_type == IBV_QPT_XRC_SEND) wr.qp_type.xrc.remote_srqn = sqe[sqe::XRC_SRQN];
  if (qp.qp_type != IBV_QPT_UD) return describeOperation(tables, sqe, wr);
  if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
  wr.imm_data = htonl(sqe[sqe::IMMEDIATE_OR_INVALIDATE]);
  wr.wr.ud.ah = tables.addressHandles.at(sqe[sqe::ADDRESS_HANDLE]);
  wr.wr.ud.remote_qpn = sqe[sqe::REMOTE_QPN];
  wr.wr.ud.remote_qkey = sqe[sqe::REMOTE_QKEY];
  return wr.wr.ud.ah ? 0 : EINVAL;
}

// An empty request. On UD it needs an address, which a flushed request never goes to; without any
// there is none to borrow.
int postOne(Tables& tables, Queue& queue, uint64_t id) {
  ibv_qp* qp = queue.pair->verbs;
  if (queue.kind == Kind::Send) {
    ibv_send_wr wr = {};
    wr.wr_id = id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (qp->qp_type == IBV_QPT_UD) {
      for (ibv_ah* ah : tables.addressHandles.items) {
        if (ah) wr.wr.ud.ah = ah;
      }
      if (!wr.wr.ud.ah) return EINVAL;
    }
    ibv_send_wr* bad = nullptr;
    return errnoOf(qp->context->ops.post_send(qp, &wr, &bad));
  }
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  ibv_recv_wr* bad = nullptr;
  return errnoOf(qp->context->ops.post_recv(qp, &wr, &bad));
}

int toError(Tables& tables, Queue& queue) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  return errnoOf(tables.modifyQp(queue.pair->verbs, &attr, IBV_QP_STATE));
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
    if (int failure = toError(tables, queue)) return failure;
  }
  int failure = postOne(tables, queue, idOf(queue, queue.fetched));
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

// How many of a chain the driver took. One that names no request has lost the device.
template <typename Request>
int taken(Request* requests, uint32_t count, const Request* bad) {
  return bad >= requests && bad < requests + count ? static_cast<int>(bad - requests) : -1;
}

// Gives the driver one burst from `queue.fetched` on; returns the errno of the entry at
// `queue.fetched` that it refuses, 0, or -1 when it has lost the device (`*failure` says how).
int postBurst(Tables& tables, Queue& queue, uint32_t end, int* failure) {
  ibv_qp* qp = queue.pair->verbs;
  ibv_send_wr requests[BURST];
  ibv_sge inlined[BURST];
  int error = 0;
  uint32_t count = 0;
  bool binds = false;
  while (count < BURST && queue.fetched + count != end && !binds) {
    ibv_send_wr& wr = requests[count];
    error = describe(tables, *qp, queue.ring.entry(queue.fetched + count), wr, inlined[count]);
    if (error) break;
    binds = wr.opcode == IBV_WR_BIND_MW;
    if (binds && isType1(wr) && count > 0) break;  // a call of its own
    wr.wr_id = idOf(queue, queue.fetched + count);
    wr.next = &requests[++count];
  }
  if (count == 0) return error;
  requests[count - 1].next = nullptr;
  ibv_send_wr& last = requests[count - 1];
  binds = last.opcode == IBV_WR_BIND_MW;
  if (binds) last.send_flags |= IBV_SEND_SIGNALED;  // see finishBind
  ibv_send_wr* bad = nullptr;
  const int refusal = binds && isType1(last)
                          ? bindType1(qp, last, &bad)
                          : errnoOf(qp->context->ops.post_send(qp, requests, &bad));
  if (refusal) {
    const int accepted = taken(requests, count, bad);
    if (accepted < 0) {
      *failure = refusal;
      return -1;
    }
    queue.fetched += static_cast<uint32_t>(accepted);
    return refusal;
  }
  queue.fetched += count;
  if (binds) bindPosted(tables, queue, queue.ring.entry(queue.fetched - 1), last);
  return error;
}

}  // namespace

int postSends(Tables& tables, Queue& queue) {
  ibv_qp* qp = queue.pair->verbs;
  if (qp->state < IBV_QPS_RTS) return 0;
  resume(tables, queue);
  int failure = 0;
  for (uint32_t end = queue.ring.producer(); queue.fetched != end && !queue.stalled && !failure;) {
    const int error = postBurst(tables, queue, end, &failure);
    if (error > 0) failure = replaceRefused(tables, queue, error);
  }
  queue.ring.setConsumer(queue.fetched);
  return failure;
}

int postReceives(Tables& tables, Queue& queue) {
  ibv_qp* qp = queue.pair->verbs;
  if (qp->state == IBV_QPS_RESET) return 0;
  resume(tables, queue);
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
    const int error = errnoOf(qp->context->ops.post_recv(qp, requests, &bad));
    const int accepted = error ? taken(requests, count, bad) : static_cast<int>(count);
    if (accepted < 0) {
      failure = error;
      break;
    }
    queue.fetched += static_cast<uint32_t>(accepted);
    if (error) failure = replaceRefused(tables, queue, error);
  }
  // librxe leaves a receive where the kernel finds it when a packet comes, and in ERR none does:
  // to ERR once more has it flushed. Other drivers have flushed it, whatever they say to this.
  if (qp->state == IBV_QPS_ERR && queue.fetched != queue.ring.consumer()) toError(tables, queue);
  queue.ring.setConsumer(queue.fetched);
  return failure;
}

int postShared(Queue& queue) {
  ibv_recv_wr requests[BURST];
  int error = 0;
  for (uint32_t end = queue.submissions.producer(); queue.fetched != end && !error;) {
    uint32_t count = 0;
    for (; count < BURST && queue.fetched + count != end; count++) {
      const uint32_t slot = *queue.submissions.entry(queue.fetched + count);
      if (slot > queue.ring.mask) {
        error = EINVAL;
        break;
      }
      uint32_t* rqe = queue.ring.entry(slot);
      requests[count] = {idOf(queue, slot), &requests[count + 1],
                         reinterpret_cast<ibv_sge*>(rqe + rqe::SEGMENTS),
                         static_cast<int>(rqe[rqe::NUM_SGE])};
    }
    if (count == 0) break;
    requests[count - 1].next = nullptr;
    ibv_recv_wr* bad = nullptr;
    const auto post = queue.srq->context->ops.post_srq_recv;
    if (const int refusal = errnoOf(post(queue.srq, requests, &bad))) {
      const int accepted = taken(requests, count, bad);
      queue.fetched += accepted < 0 ? 0u : static_cast<uint32_t>(accepted);
      error = accepted < 0 ? EIO : refusal;
      break;
    }
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
