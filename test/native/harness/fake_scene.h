/* Two sides of the fake libibverbs, and what a test does with them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fake-ibverbs/fake_verbs.h"

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                \
    }                                                         \
  } while (0)

enum { DEPTH = 32, BYTES = 8192, RIGHTS = 31, GRH = 40, ROCE_V2_IPV4 = 3, SPIN_MS = 10000 };

struct side {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_cq *cq;
  struct ibv_qp *qp;
  struct ibv_srq *srq;
  struct ibv_mr *mr;
  uint8_t *memory;
};

static struct side a, b;

static void open_side(struct side *side, int device) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  EXPECT(list && list[0] && list[1] && !list[2]);
  side->context = ibv_open_device(list[device]);
  ibv_free_device_list(list);
  side->pd = ibv_alloc_pd(side->context);
  side->cq = ibv_create_cq(side->context, 4 * DEPTH, side, NULL, 0);
  side->memory = aligned_alloc(4096, BYTES);
  memset(side->memory, 0xee, BYTES);
  side->mr = ibv_reg_mr(side->pd, side->memory, BYTES, RIGHTS);
  EXPECT(side->pd && side->cq && side->mr);
}

static void make_qp(struct side *side, enum ibv_qp_type type, struct ibv_srq *srq) {
  struct ibv_qp_init_attr attr = {.qp_context = side, .send_cq = side->cq, .recv_cq = side->cq,
                                  .srq = srq, .cap = {DEPTH, DEPTH, 4, 4, 64}, .qp_type = type};
  side->qp = ibv_create_qp(side->pd, &attr);
  EXPECT(side->qp);
}

static void close_side(struct side *side) {
  if (side->qp) EXPECT(ibv_destroy_qp(side->qp) == 0);
  if (side->srq) EXPECT(ibv_destroy_srq(side->srq) == 0);
  EXPECT(ibv_dereg_mr(side->mr) == 0 && ibv_destroy_cq(side->cq) == 0);
  EXPECT(ibv_dealloc_pd(side->pd) == 0 && ibv_close_device(side->context) == 0);
  free(side->memory);
  memset(side, 0, sizeof(*side));
}

static void begin(enum ibv_qp_type type) {
  open_side(&a, 0);
  open_side(&b, 1);
  make_qp(&a, type, NULL);
  make_qp(&b, type, NULL);
  EXPECT(fake_verbs_connect(a.qp, b.qp) == 0);
}

static void end(void) {
  close_side(&a);
  close_side(&b);
  fake_verbs_restore();
  EXPECT(fake_verbs_objects(NULL) == 0);
}

static struct ibv_sge at(const struct side *side, unsigned offset, unsigned length) {
  return (struct ibv_sge){(uintptr_t)(side->memory + offset), length, side->mr->lkey};
}

static int post_recv_at(struct side *side, unsigned offset, unsigned length, uint64_t id) {
  struct ibv_sge sge = at(side, offset, length);
  struct ibv_recv_wr wr = {id, NULL, &sge, 1}, *bad;
  if (side->srq) return side->context->ops.post_srq_recv(side->srq, &wr, &bad);
  return side->context->ops.post_recv(side->qp, &wr, &bad);
}

static int post(struct side *side, struct ibv_send_wr wr, unsigned length) {
  struct ibv_sge sge = at(side, 0, length);
  struct ibv_send_wr *bad;
  wr.send_flags |= IBV_SEND_SIGNALED;
  if (wr.num_sge == 0 && wr.opcode != IBV_WR_BIND_MW && wr.opcode != IBV_WR_LOCAL_INV) {
    wr.sg_list = &sge;
    wr.num_sge = 1;
  }
  return side->context->ops.post_send(side->qp, &wr, &bad);
}

static int post_op(struct side *side, enum ibv_wr_opcode opcode, unsigned length) {
  struct ibv_send_wr wr = {.opcode = opcode};
  return post(side, wr, length);
}

static int post_rdma(struct side *side, enum ibv_wr_opcode opcode, uint64_t address,
                     uint32_t rkey, unsigned length) {
  struct ibv_send_wr wr = {.opcode = opcode};
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  return post(side, wr, length);
}

/* The next completion, which may come by a timer. */
static struct ibv_wc next(struct side *side) {
  struct ibv_wc wc;
  for (int ms = 0; ms < SPIN_MS; ms++) {
    int got = side->context->ops.poll_cq(side->cq, 1, &wc);
    EXPECT(got >= 0);
    if (got == 1) return wc;
    usleep(1000);
  }
  printf("no completion came\n");
  exit(1);
}

static void expect_status(struct side *side, enum ibv_wc_status status) {
  struct ibv_wc wc = next(side);
  if (wc.status != status) printf("%s, not %s\n", ibv_wc_status_str(wc.status),
                                  ibv_wc_status_str(status));
  EXPECT(wc.status == status);
}

static void expect_none(struct side *side) {
  struct ibv_wc wc;
  EXPECT(side->context->ops.poll_cq(side->cq, 1, &wc) == 0);
}

static void expect_event(struct side *side, int type) {
  struct pollfd wait = {side->context->async_fd, POLLIN, 0};
  EXPECT(poll(&wait, 1, SPIN_MS) == 1);
  struct ibv_async_event event;
  EXPECT(ibv_get_async_event(side->context, &event) == 0);
  if ((int)event.event_type != type) printf("%s\n", ibv_event_type_str(event.event_type));
  EXPECT((int)event.event_type == type);
  ibv_ack_async_event(&event);
}

static int move(struct side *side, enum ibv_qp_state state) {
  struct ibv_qp_attr attr = {.qp_state = state};
  return ibv_modify_qp(side->qp, &attr, IBV_QP_STATE);
}
