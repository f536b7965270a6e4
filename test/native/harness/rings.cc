// The rings over the fake libibverbs without Node, for sanitizers and valgrind: see ../sanitize.sh.
// A thread completes requests while this one posts, polls, sleeps on the completion channel, fails
// a queue pair on purpose and takes everything down again.
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../fake-ibverbs/fake_verbs.h"
#include "queues/ring_words.h"
#include "queues/rings.h"

#define EXPECT(condition)                                                   \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);           \
      std::exit(1);                                                         \
    }                                                                       \
  } while (0)

namespace {

using rings::Ring;

constexpr uint32_t DEPTH = 64;
constexpr uint32_t STRIDE = 128;
constexpr uint32_t TOTAL = 20000;

struct RingMemory {
  std::vector<uint64_t> words = std::vector<uint64_t>((128 + DEPTH * STRIDE) / 8);
  Ring ring() { return {reinterpret_cast<uint32_t*>(words.data()), DEPTH - 1, STRIDE}; }
};

struct Side {
  RingMemory sends, receives;
  rings::Queue send{}, receive{};
  rings::QueuePair pair;
};

struct Rig {
  ibv_context* context;
  ibv_comp_channel* channel;
  ibv_pd* pd;
  rings::Tables tables;
  RingMemory cqMemory;
  rings::CompletionQueue cq;
  std::vector<uint32_t> memory = std::vector<uint32_t>(2 * DEPTH);
  ibv_mr* mr;
  Side a, b;
};

void addQueue(Rig& rig, Side& side, rings::Queue& queue, rings::Kind kind, RingMemory& memory) {
  queue.kind = kind;
  queue.ring = memory.ring();
  queue.pair = &side.pair;
  rig.tables.queues.add(&queue);
}

void makeSide(Rig& rig, Side& side) {
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = rig.cq.verbs;
  attr.cap = {DEPTH, DEPTH, 4, 4, 64};
  attr.qp_type = IBV_QPT_RC;
  side.pair.verbs = ibv_create_qp(rig.pd, &attr);
  EXPECT(side.pair.verbs);
  addQueue(rig, side, side.send, rings::Kind::Send, side.sends);
  addQueue(rig, side, side.receive, rings::Kind::Receive, side.receives);
  rig.tables.pairsByQpn[side.pair.verbs->qp_num] = &side.pair;
}

void connect(Side& side, const Side& peer) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  attr.port_num = 1;
  attr.path_mtu = IBV_MTU_4096;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  EXPECT(ibv_modify_qp(side.pair.verbs, &attr, mask) == 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.dest_qp_num = peer.pair.verbs->qp_num;
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  EXPECT(ibv_modify_qp(side.pair.verbs, &attr, mask) == 0);
  attr.qp_state = IBV_QPS_RTS;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC;
  EXPECT(ibv_modify_qp(side.pair.verbs, &attr, mask) == 0);
}

void writeEntry(Rig& rig, uint32_t index) {
  const uint32_t word = index % DEPTH;
  rig.memory[word] = index;
  uint32_t* sqe = rig.a.send.ring.entry(index);
  const auto from = reinterpret_cast<uintptr_t>(&rig.memory[word]);
  const auto to = reinterpret_cast<uintptr_t>(&rig.memory[DEPTH + word]);
  sqe[sqe::CONTROL] = IBV_WR_RDMA_WRITE | IBV_SEND_SIGNALED << 8 | 1 << 16;
  sqe[COOKIE_LO] = index;
  sqe[sqe::REMOTE_ADDRESS] = static_cast<uint32_t>(to);
  sqe[sqe::REMOTE_ADDRESS + 1] = static_cast<uint32_t>(to >> 32);
  sqe[sqe::RKEY] = rig.mr->rkey;
  auto* segment = reinterpret_cast<ibv_sge*>(sqe + sqe::SEGMENTS);
  *segment = {from, 4, rig.mr->lkey};
}

// Reads what the ring has; each completion must be the next one and find its bytes in place.
uint32_t take(Rig& rig, uint32_t done, uint32_t status) {
  int readable;
  while ((readable = rings::poll(rig.tables, rig.cq)) > 0) {
    for (; readable > 0; readable--, done++) {
      const uint32_t* cqe = rig.cq.ring.entry(rig.cq.ring.consumer());
      EXPECT((cqe[cqe::CONTROL] & 0xff) == status && cqe[cqe::WQE_INDEX] == done);
      if (status == IBV_WC_SUCCESS) EXPECT(rig.memory[DEPTH + done % DEPTH] == done);
      rig.cq.ring.setConsumer(rig.cq.ring.consumer() + 1);
    }
  }
  EXPECT(readable == 0);
  return done;
}

void sleepOnChannel(Rig& rig) {
  pollfd wait = {rig.channel->fd, POLLIN, 0};
  EXPECT(::poll(&wait, 1, 10000) == 1);
  ibv_cq* cq;
  void* context;
  EXPECT(ibv_get_cq_event(rig.channel, &cq, &context) == 0 && cq == rig.cq.verbs);
  ibv_ack_cq_events(cq, 1);
}

void transfer(Rig& rig) {
  uint32_t posted = 0, done = 0;
  while (done < TOTAL) {
    for (; posted < TOTAL && posted - done < DEPTH; posted++) writeEntry(rig, posted);
    rig.a.send.ring.setProducer(posted);
    EXPECT(rings::postSends(rig.tables, rig.a.send) == 0);
    const uint32_t before = done;
    done = take(rig, done, IBV_WC_SUCCESS);
    if (done != before) continue;
    EXPECT(rig.context->ops.req_notify_cq(rig.cq.verbs, 0) == 0);
    done = take(rig, done, IBV_WC_SUCCESS);
    if (done == before) sleepOnChannel(rig);
  }
}

// The third of five is refused: it alone has its own status, and all come in order.
void refuse(Rig& rig) {
  EXPECT(fake_verbs_set_mode(rig.context, FAKE_VERBS_MANUAL) == 0);
  EXPECT(fake_verbs_inject("ibv_post_send", 3, EINVAL) == 0);
  for (uint32_t i = TOTAL; i < TOTAL + 5; i++) writeEntry(rig, i);
  rig.a.send.ring.setProducer(TOTAL + 5);
  EXPECT(rings::postSends(rig.tables, rig.a.send) == 0);
  EXPECT(fake_verbs_progress(rig.context, 2) == 2);
  EXPECT(take(rig, TOTAL, IBV_WC_WR_FLUSH_ERR) == TOTAL + 2);
  EXPECT(fake_verbs_progress(rig.context, 1) == 1);
  EXPECT(take(rig, TOTAL + 2, IBV_WC_LOC_QP_OP_ERR) == TOTAL + 3);
  EXPECT(fake_verbs_progress(rig.context, 0) == 2);
  EXPECT(take(rig, TOTAL + 3, IBV_WC_WR_FLUSH_ERR) == TOTAL + 5);
}

}  // namespace

int main() {
  Rig rig;
  ibv_device** list = ibv_get_device_list(nullptr);
  rig.context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  EXPECT(rig.context && fake_verbs_set_mode(rig.context, FAKE_VERBS_THREAD) == 0);
  rig.tables.modifyQp = ibv_modify_qp;
  rig.channel = ibv_create_comp_channel(rig.context);
  rig.pd = ibv_alloc_pd(rig.context);
  rig.cq.ring = rig.cqMemory.ring();
  rig.cq.verbs = ibv_create_cq(rig.context, 2 * DEPTH, nullptr, rig.channel, 0);
  rig.mr = ibv_reg_mr_iova(rig.pd, rig.memory.data(), rig.memory.size() * 4,
                           reinterpret_cast<uintptr_t>(rig.memory.data()),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  EXPECT(rig.channel && rig.pd && rig.cq.verbs && rig.mr);
  makeSide(rig, rig.a);
  makeSide(rig, rig.b);
  connect(rig.a, rig.b);
  connect(rig.b, rig.a);
  transfer(rig);
  refuse(rig);
  EXPECT(ibv_destroy_qp(rig.a.pair.verbs) == 0 && ibv_destroy_qp(rig.b.pair.verbs) == 0);
  EXPECT(ibv_destroy_cq(rig.cq.verbs) == 0 && ibv_dereg_mr(rig.mr) == 0);
  EXPECT(ibv_dealloc_pd(rig.pd) == 0 && ibv_destroy_comp_channel(rig.channel) == 0);
  EXPECT(ibv_close_device(rig.context) == 0);
  return 0;
}
