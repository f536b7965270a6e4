// Completions to ring entries. What verbs leave undefined on failure comes from the queue's entry,
// which core may not touch before it has read the completion.
#include <arpa/inet.h>

#include <algorithm>

#include "queues/bind.h"
#include "queues/ring_words.h"

namespace rings {
namespace {

constexpr int BURST = 32;

constexpr uint8_t COMPLETION_OPCODES[] = {
    IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND,      IBV_WC_SEND,    IBV_WC_RDMA_READ,
    IBV_WC_COMP_SWAP,  IBV_WC_FETCH_ADD,  IBV_WC_LOCAL_INV, IBV_WC_BIND_MW, IBV_WC_SEND,
};

uint32_t opcodeOf(const Queue& queue, const uint32_t* entry, const ibv_wc& wc) {
  if (wc.status == IBV_WC_SUCCESS) return wc.opcode;
  if (queue.kind != Kind::Send) return IBV_WC_RECV;
  const uint32_t opcode = entry[sqe::CONTROL] & 0xff;
  if (opcode >= sizeof(COMPLETION_OPCODES)) return IBV_WC_SEND;
  return COMPLETION_OPCODES[opcode];
}

// Verbs define the length for receives only; a send's is in its entry.
uint32_t lengthOf(const Queue& queue, const uint32_t* entry, const ibv_wc& wc) {
  if (queue.kind != Kind::Send) return wc.byte_len;
  const uint32_t control = entry[sqe::CONTROL];
  if (control >> 8 & IBV_SEND_INLINE) return entry[sqe::INLINE_LENGTH];
  const auto* segments = reinterpret_cast<const ibv_sge*>(entry + sqe::SEGMENTS);
  uint32_t length = 0;
  for (uint32_t i = 0; i < (control >> 16 & 0xff); i++) length += segments[i].length;
  return length;
}

const QueuePair* pairOf(const Tables& tables, const Queue& queue, uint32_t qpn) {
  if (queue.pair) return queue.pair;
  auto pair = tables.pairsByQpn.find(qpn);
  return pair == tables.pairsByQpn.end() ? nullptr : pair->second;
}

// A datagram has its GRH in the buffer; that connected packets had one too (RoCE) is of no use.
// rxe hands out the kernel's numbers, whose "with invalidate" is the bit that verbs give to "IP
// checksum is right": nothing that a connected queue pair has.
uint32_t flagsOf(const ibv_wc& wc, bool datagram) {
  if (datagram) return wc.wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM);
  uint32_t flags = wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV);
  if (wc.wc_flags & IBV_WC_IP_CSUM_OK) flags |= IBV_WC_WITH_INV;
  return flags;
}

void write(const Tables& tables, const Queue& queue, const ibv_wc& wc, uint32_t* cqe) {
  const auto index = static_cast<uint32_t>(wc.wr_id);
  const uint32_t* entry = queue.ring.entry(index);
  const QueuePair* pair = pairOf(tables, queue, wc.qp_num);
  const bool datagram = pair && pair->verbs->qp_type == IBV_QPT_UD;
  uint32_t status = wc.status;
  uint32_t flags = 0, length = 0, extra = 0, source = 0, vendorError = 0;
  if (status == IBV_WC_SUCCESS) {
    length = lengthOf(queue, entry, wc);
    if (queue.kind != Kind::Send) {
      flags = flagsOf(wc, datagram);
      if (datagram) source = wc.src_qp;
    }
    if (flags & IBV_WC_WITH_IMM) extra = ntohl(wc.imm_data);
    if (flags & IBV_WC_WITH_INV) extra = wc.invalidated_rkey;
  } else if (queue.refused && queue.refusedIndex == index) {
    status = IBV_WC_LOC_QP_OP_ERR;
    vendorError = static_cast<uint32_t>(queue.refusedErrno);
  } else {
    vendorError = wc.vendor_err;
  }
  cqe[cqe::CONTROL] = status | opcodeOf(queue, entry, wc) << 8 | flags << 16;
  cqe[cqe::QPN] = wc.qp_num;
  cqe[COOKIE_LO] = entry[COOKIE_LO];
  cqe[COOKIE_HI] = entry[COOKIE_HI];
  cqe[cqe::BYTE_LENGTH] = length;
  cqe[cqe::IMMEDIATE_OR_INVALIDATE] = extra;
  cqe[cqe::SOURCE_QPN] = source;
  cqe[cqe::VENDOR_ERROR] = vendorError;
  cqe[cqe::WQE_INDEX] = index;
  cqe[cqe::SRQN] = queue.srqn;
  cqe[cqe::QP_CONTEXT] = pair ? pair->context : 0;
}

// What the completion of a bind brings about; true when the consumer has not asked for it.
bool settleBind(Tables& tables, const Queue& queue, const ibv_wc& wc) {
  if (queue.kind != Kind::Send) return false;
  const uint32_t* entry = queue.ring.entry(static_cast<uint32_t>(wc.wr_id));
  const uint32_t control = entry[sqe::CONTROL];
  if ((control & 0xff) != IBV_WR_BIND_MW) return false;
  const bool done = wc.status == IBV_WC_SUCCESS;
  finishBind(tables, entry, done);
  return done && !(control >> 8 & IBV_SEND_SIGNALED);
}

int fill(Tables& tables, CompletionQueue& cq) {
  ibv_wc completions[BURST];
  uint32_t producer = cq.ring.producer();
  uint32_t room = cq.ring.mask + 1 - (producer - cq.ring.consumer());
  int got = BURST;
  int wanted = got;
  while (room > 0 && got == wanted) {
    wanted = static_cast<int>(std::min<uint32_t>(room, BURST));
    got = cq.verbs->context->ops.poll_cq(cq.verbs, wanted, completions);
    if (got < 0) return -1;
    for (int i = 0; i < got; i++) {
      const Queue* queue = tables.queues.find(static_cast<uint32_t>(completions[i].wr_id >> 32));
      if (!queue || settleBind(tables, *queue, completions[i])) continue;
      write(tables, *queue, completions[i], cq.ring.entry(producer++));
      room--;
    }
  }
  cq.ring.setProducer(producer);
  return static_cast<int>(producer - cq.ring.consumer());
}

}  // namespace

int poll(Tables& tables, CompletionQueue& cq) {
  int readable = fill(tables, cq);
  if (tables.stalled == 0 || readable < 0) return readable;
  for (Queue* queue : tables.queues.items()) {
    if (!queue || !queue->stalled) continue;
    const int error =
        queue->kind == Kind::Send ? postSends(tables, *queue) : postReceives(tables, *queue);
    if (error) return -1;
  }
  return fill(tables, cq);
}

}  // namespace rings
