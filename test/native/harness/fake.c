/*
 * The fake libibverbs itself: what its two devices do to each other, as callers of the public API
 * see it. Under sanitizers and valgrind: see ../sanitize.sh. Ends with no object left.
 */
#include "fake_scene.h"

static void describes(void) {
  open_side(&a, 0);
  struct ibv_device_attr device;
  struct ibv_port_attr port;
  struct ibv_gid_entry entry, table[32];
  EXPECT(ibv_query_device(a.context, &device) == 0 && device.phys_port_cnt == 1);
  EXPECT(ibv_query_port(a.context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE);
  EXPECT(ibv_query_port(a.context, 2, &port) == EINVAL);
  EXPECT(_ibv_query_gid_ex(a.context, 1, ROCE_V2_IPV4, &entry, 0, sizeof(entry)) == 0);
  EXPECT(entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid.raw[12] == 198);
  EXPECT(_ibv_query_gid_ex(a.context, 1, 9, &entry, 0, sizeof(entry)) == ENODATA);
  EXPECT(_ibv_query_gid_table(a.context, table, 32, 0, sizeof(entry)) == 6);
  EXPECT(!ibv_reg_mr_iova(a.pd, a.memory, 4096, 1, RIGHTS) && errno == EINVAL);
  EXPECT(!ibv_reg_mr(a.pd, a.memory, 4096, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
  fake_verbs_set_memlock(BYTES + 4096);
  struct ibv_mr *mr = ibv_reg_mr(a.pd, a.memory, 4096, 0);
  EXPECT(mr && !ibv_reg_mr(a.pd, a.memory, 1, 0) && errno == ENOMEM);
  fake_verbs_set_memlock(0);
  EXPECT(ibv_close_device(a.context) == EBUSY && ibv_dealloc_pd(a.pd) == EBUSY);
  EXPECT(ibv_dereg_mr(mr) == 0);
  close_side(&a);
}

static void reliable(void) {
  begin(IBV_QPT_RC);
  EXPECT(post_recv_at(&b, 100, 50, 7) == 0);
  a.memory[0] = 1;
  EXPECT(post_op(&a, IBV_WR_SEND, 10) == 0);
  struct ibv_wc wc = next(&b);
  EXPECT(wc.wr_id == 7 && wc.byte_len == 10 && b.memory[100] == 1 && b.memory[110] == 0xee);
  expect_status(&a, IBV_WC_SUCCESS);
  /* A receive that comes late: the send waits for it. */
  EXPECT(post_op(&a, IBV_WR_SEND, 10) == 0);
  expect_none(&a);
  EXPECT(post_recv_at(&b, 0, 10, 8) == 0);
  expect_status(&a, IBV_WC_SUCCESS);
  expect_status(&b, IBV_WC_SUCCESS);
  /* A wrong key: both sides are told, both in ERR. */
  EXPECT(post_rdma(&a, IBV_WR_RDMA_READ, b.mr->rkey, 1, 8) == 0);
  expect_status(&a, IBV_WC_REM_ACCESS_ERR);
  expect_event(&b, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT(post_op(&a, IBV_WR_SEND, 1) == 0);
  expect_status(&a, IBV_WC_WR_FLUSH_ERR);
  end();
}

static void retries(void) {
  begin(IBV_QPT_RC);
  fake_verbs_set_mode(a.context, FAKE_VERBS_MANUAL);
  EXPECT(move(&a, IBV_QPS_RESET) == 0 && move(&b, IBV_QPS_RESET) == 0);
  EXPECT(fake_verbs_connect(a.qp, b.qp) == 0);
  EXPECT(fake_verbs_set_link("fake1", 1, 0) == 0);
  expect_event(&b, IBV_EVENT_PORT_ERR);
  EXPECT(post_op(&a, IBV_WR_RDMA_WRITE, 0) == 0);
  EXPECT(fake_verbs_progress(a.context, 0) == 0);
  fake_verbs_elapse(a.context, 8 * 67108); /* 8 tries of 4.096 us << 14 */
  EXPECT(fake_verbs_progress(a.context, 0) == 0);
  fake_verbs_elapse(a.context, 10);
  EXPECT(fake_verbs_progress(a.context, 0) == 1);
  expect_status(&a, IBV_WC_RETRY_EXC_ERR);
  end();
}

static void drains(void) {
  begin(IBV_QPT_RC);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
  EXPECT(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
  expect_event(&a, IBV_EVENT_SQ_DRAINED);
  EXPECT(post_op(&a, IBV_WR_RDMA_WRITE, 0) == 0);
  expect_none(&a);
  EXPECT(move(&a, IBV_QPS_RTS) == 0);
  expect_status(&a, IBV_WC_SUCCESS);
  end();
}

static void unreliable(void) {
  begin(IBV_QPT_UC);
  EXPECT(post_op(&a, IBV_WR_RDMA_READ, 1) == EINVAL);
  EXPECT(post_op(&a, IBV_WR_SEND, 10) == 0); /* nobody receives: it is lost */
  expect_status(&a, IBV_WC_SUCCESS);
  EXPECT(post_recv_at(&b, 0, 4, 1) == 0);
  EXPECT(post_op(&a, IBV_WR_SEND, 5) == 0 && post_op(&a, IBV_WR_SEND, 4) == 0);
  EXPECT(next(&b).byte_len == 4);
  EXPECT(post_rdma(&a, IBV_WR_RDMA_WRITE, 0, 1, 8) == 0);
  for (int i = 0; i < 3; i++) expect_status(&a, IBV_WC_SUCCESS);
  /* Its own mistake stops sending only. */
  struct ibv_sge wrong = {0, 8, 1};
  struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &wrong, .num_sge = 1};
  EXPECT(post(&a, wr, 0) == 0 && post_op(&a, IBV_WR_SEND, 1) == 0);
  expect_status(&a, IBV_WC_LOC_PROT_ERR);
  expect_status(&a, IBV_WC_WR_FLUSH_ERR);
  EXPECT(post_recv_at(&a, 0, 4, 2) == 0 && post_op(&b, IBV_WR_SEND, 4) == 0);
  EXPECT(next(&a).wr_id == 2);
  EXPECT(move(&a, IBV_QPS_RTS) == 0 && post_op(&a, IBV_WR_SEND, 1) == 0);
  expect_status(&a, IBV_WC_SUCCESS);
  end();
}

static struct ibv_ah *handle_to(struct side *from, const uint8_t *gid) {
  struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
  attr.grh.sgid_index = ROCE_V2_IPV4;
  memcpy(attr.grh.dgid.raw, gid, 16);
  struct ibv_ah *ah = ibv_create_ah(from->pd, &attr);
  EXPECT(ah);
  return ah;
}

static void send_to(struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, unsigned length) {
  struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = qkey;
  EXPECT(post(&a, wr, length) == 0);
  expect_status(&a, IBV_WC_SUCCESS);
}

static void datagrams(void) {
  begin(IBV_QPT_UD);
  const uint32_t key = 0x11111111;
  const uint8_t there[16] = {[10] = 0xff, 0xff, 198, 51, 100, 2};
  const uint8_t group[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
  struct ibv_ah *ah = handle_to(&a, there), *all = handle_to(&a, group);
  EXPECT(post_recv_at(&b, 0, 100, 1) == 0);
  send_to(ah, b.qp->qp_num, key + 1, 8); /* another Q_Key */
  send_to(ah, b.qp->qp_num, key, 61);    /* too long */
  send_to(ah, b.qp->qp_num, key, 60);
  struct ibv_wc wc = next(&b);
  EXPECT(wc.byte_len == 100 && wc.wc_flags == IBV_WC_GRH && wc.src_qp == a.qp->qp_num);
  EXPECT(b.memory[20] == 0x45 && b.memory[32] == 198 && b.memory[35] == 1 && b.memory[39] == 2);
  union ibv_gid gid;
  memcpy(gid.raw, group, 16);
  EXPECT(ibv_attach_mcast(b.qp, &gid, 0) == 0 && ibv_attach_mcast(b.qp, &gid, 0) == 0);
  EXPECT(post_recv_at(&b, 0, 100, 2) == 0);
  send_to(all, 0xffffff, key, 8);
  EXPECT(next(&b).wr_id == 2);
  EXPECT(ibv_detach_mcast(b.qp, &gid, 0) == 0 && ibv_detach_mcast(b.qp, &gid, 0) == EINVAL);
  EXPECT(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(all) == 0);
  end();
}

static void shares(void) {
  open_side(&a, 0);
  open_side(&b, 1);
  struct ibv_srq_init_attr attr = {&b, {4, 1, 0}};
  b.srq = ibv_create_srq(b.pd, &attr);
  make_qp(&a, IBV_QPT_RC, NULL);
  make_qp(&b, IBV_QPT_RC, b.srq);
  EXPECT(b.srq && fake_verbs_connect(a.qp, b.qp) == 0);
  for (uint64_t id = 0; id < 4; id++) EXPECT(post_recv_at(&b, 0, 8, id) == 0);
  EXPECT(post_recv_at(&b, 0, 8, 4) == ENOMEM);
  struct ibv_srq_attr limit = {.max_wr = 8, .srq_limit = 4};
  EXPECT(ibv_modify_srq(b.srq, &limit, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == 0);
  EXPECT(post_op(&a, IBV_WR_SEND, 1) == 0);
  EXPECT(next(&b).wr_id == 0);
  expect_event(&b, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT(move(&b, IBV_QPS_ERR) == 0);
  expect_event(&b, IBV_EVENT_QP_LAST_WQE_REACHED);
  expect_none(&b); /* the queue is not the queue pair's: nothing is flushed */
  end();
}

static void windows(void) {
  begin(IBV_QPT_RC);
  struct ibv_mw *one = b.context->ops.alloc_mw(b.pd, IBV_MW_TYPE_1);
  struct ibv_mw *two = b.context->ops.alloc_mw(b.pd, IBV_MW_TYPE_2);
  const struct ibv_mw_bind_info info = {b.mr, (uintptr_t)b.memory + 64, 8, IBV_ACCESS_REMOTE_WRITE};
  struct ibv_mw_bind bind = {1, IBV_SEND_SIGNALED, info};
  const uint32_t before = one->rkey;
  EXPECT(b.context->ops.bind_mw(b.qp, one, &bind) == 0 && one->rkey != before);
  expect_status(&b, IBV_WC_SUCCESS);
  EXPECT(post_rdma(&a, IBV_WR_RDMA_WRITE, info.addr, one->rkey, 8) == 0);
  expect_status(&a, IBV_WC_SUCCESS);
  EXPECT(ibv_dereg_mr(b.mr) == EBUSY);
  struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
  wr.bind_mw.mw = two;
  wr.bind_mw.rkey = two->rkey ^ 1;
  wr.bind_mw.bind_info = info;
  EXPECT(post(&b, wr, 0) == 0);
  expect_status(&b, IBV_WC_SUCCESS);
  /* Invalidated by the peer's send; once more, and the receiver alone fails. */
  struct ibv_send_wr send = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = two->rkey};
  EXPECT(post_recv_at(&b, 0, 8, 1) == 0 && post_recv_at(&b, 0, 8, 2) == 0);
  EXPECT(post(&a, send, 4) == 0 && post(&a, send, 4) == 0);
  EXPECT(next(&b).invalidated_rkey == two->rkey);
  expect_status(&b, IBV_WC_REM_INV_REQ_ERR);
  expect_status(&a, IBV_WC_SUCCESS);
  expect_status(&a, IBV_WC_SUCCESS);
  EXPECT(b.context->ops.dealloc_mw(one) == 0 && b.context->ops.dealloc_mw(two) == 0);
  end();
}

static struct verbs_context *extended(struct ibv_context *context) {
  EXPECT(context->abi_compat == (void *)UINTPTR_MAX);
  return (struct verbs_context *)((char *)context - offsetof(struct verbs_context, context));
}

static void to_target(struct ibv_qp *target, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = peer, .qp_access_flags = 15};
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = ROCE_V2_IPV4;
  EXPECT(ibv_query_gid(a.context, 1, ROCE_V2_IPV4, &attr.ah_attr.grh.dgid) == 0);
  int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  EXPECT(ibv_modify_qp(target, &attr, init) == 0);
  attr.qp_state = IBV_QPS_RTR;
  int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  EXPECT(ibv_modify_qp(target, &attr, rtr) == 0);
}

static void to_initiator(uint32_t target) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = target, .timeout = 14, .rnr_retry = 7};
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = ROCE_V2_IPV4;
  EXPECT(ibv_query_gid(b.context, 1, ROCE_V2_IPV4, &attr.ah_attr.grh.dgid) == 0);
  int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  EXPECT(ibv_modify_qp(a.qp, &attr, init) == 0);
  attr.qp_state = IBV_QPS_RTR;
  int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  EXPECT(ibv_modify_qp(a.qp, &attr, rtr) == 0);
  attr.qp_state = IBV_QPS_RTS;
  int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
            IBV_QP_MAX_QP_RD_ATOMIC;
  EXPECT(ibv_modify_qp(a.qp, &attr, rts) == 0);
}

static void post_xrc(uint32_t srqn) {
  struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
  wr.qp_type.xrc.remote_srqn = srqn;
  EXPECT(post(&a, wr, 4) == 0);
}

static void extended_connections(void) {
  open_side(&a, 0);
  open_side(&b, 1);
  const int both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  char path[] = "/tmp/fake-xrcd-XXXXXX";
  int fd = mkstemp(path);
  struct verbs_context *there = extended(b.context), *here = extended(a.context);
  struct ibv_xrcd_init_attr absent = {both, fd, 0}, made = {both, fd, O_CREAT};
  EXPECT(!there->open_xrcd(b.context, &absent) && errno == EAGAIN);
  struct ibv_xrcd *domain = there->open_xrcd(b.context, &made);
  struct ibv_xrcd *again = there->open_xrcd(b.context, &absent);
  EXPECT(domain && again);
  struct ibv_srq_init_attr_ex shared = {.attr = {DEPTH, 1, 0}, .comp_mask = 15,
                                        .srq_type = IBV_SRQT_XRC, .pd = b.pd, .xrcd = domain,
                                        .cq = b.cq};
  b.srq = there->create_srq_ex(b.context, &shared);
  uint32_t srqn = 0;
  EXPECT(b.srq && there->get_srq_num(b.srq, &srqn) == 0 && srqn != 0);
  struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV, .xrcd = domain,
                                       .comp_mask = IBV_QP_INIT_ATTR_XRCD};
  struct ibv_qp *first = there->create_qp_ex(b.context, &target);
  EXPECT(first);
  struct ibv_qp_open_attr open = {.comp_mask = 15, .qp_num = first->qp_num, .xrcd = again,
                                  .qp_context = &b, .qp_type = IBV_QPT_XRC_RECV};
  struct ibv_qp *second = there->open_qp(b.context, &open);
  EXPECT(second && second->qp_num == first->qp_num && second->qp_context == &b);
  struct ibv_qp_init_attr_ex initiator = {.send_cq = a.cq, .cap = {DEPTH, 0, 1, 0, 0},
                                          .qp_type = IBV_QPT_XRC_SEND, .pd = a.pd,
                                          .comp_mask = IBV_QP_INIT_ATTR_PD};
  a.qp = here->create_qp_ex(a.context, &initiator);
  EXPECT(a.qp);
  to_target(first, a.qp->qp_num);
  to_initiator(first->qp_num);
  EXPECT(post_recv_at(&b, 0, 8, 5) == 0);
  post_xrc(srqn);
  struct ibv_wc wc = next(&b);
  EXPECT(wc.wr_id == 5 && wc.qp_num == first->qp_num && wc.byte_len == 4);
  expect_status(&a, IBV_WC_SUCCESS);
  expect_event(&b, IBV_EVENT_COMM_EST); /* to each that has it open */
  expect_event(&b, IBV_EVENT_COMM_EST);
  EXPECT(ibv_destroy_qp(first) == 0); /* lives on: the other has it open */
  EXPECT(post_recv_at(&b, 0, 8, 6) == 0);
  post_xrc(srqn);
  EXPECT(next(&b).wr_id == 6);
  expect_status(&a, IBV_WC_SUCCESS);
  post_xrc(srqn + 1);
  expect_status(&a, IBV_WC_REM_INV_REQ_ERR);
  expect_event(&b, IBV_EVENT_QP_REQ_ERR);
  EXPECT(there->close_xrcd(again) == EBUSY && ibv_destroy_qp(second) == 0);
  EXPECT(there->close_xrcd(again) == 0 && there->close_xrcd(domain) == EBUSY);
  EXPECT(ibv_destroy_srq(b.srq) == 0 && there->close_xrcd(domain) == 0);
  b.srq = NULL;
  close(fd);
  unlink(path);
  end();
}

static void removal(void) {
  begin(IBV_QPT_RC);
  EXPECT(post_recv_at(&a, 0, 8, 1) == 0);
  EXPECT(fake_verbs_remove_device("fake0", 1) == 0);
  expect_event(&a, IBV_EVENT_DEVICE_FATAL);
  expect_status(&a, IBV_WC_WR_FLUSH_ERR);
  EXPECT(post_op(&a, IBV_WR_SEND, 1) == EIO && !ibv_alloc_pd(a.context) && errno == EIO);
  int devices = 0;
  struct ibv_device **list = ibv_get_device_list(&devices);
  EXPECT(devices == 1);
  ibv_free_device_list(list);
  EXPECT(post_op(&b, IBV_WR_RDMA_WRITE, 0) == 0); /* nobody is there any more */
  expect_status(&b, IBV_WC_RETRY_EXC_ERR);
  end();
}

static void fails_on_demand(void) {
  begin(IBV_QPT_RC);
  EXPECT(fake_verbs_inject("ibv_alloc_pd", 2, EPERM) == 0);
  struct ibv_pd *pd = ibv_alloc_pd(a.context);
  EXPECT(pd && !ibv_alloc_pd(a.context) && errno == EPERM && ibv_dealloc_pd(pd) == 0);
  fake_verbs_fail_request(2, IBV_WC_GENERAL_ERR);
  EXPECT(post_op(&a, IBV_WR_RDMA_WRITE, 0) == 0 && post_op(&a, IBV_WR_RDMA_WRITE, 0) == 0);
  expect_status(&a, IBV_WC_SUCCESS);
  expect_status(&a, IBV_WC_GENERAL_ERR);
  fake_verbs_clear_injections();
  end();
}

int main(void) {
  const char *mode = getenv("FAKE_VERBS_MODE");
  describes();
  reliable();
  retries();
  drains();
  unreliable();
  datagrams();
  shares();
  windows();
  extended_connections();
  if (!mode || strcmp(mode, "thread") != 0) removal();
  fails_on_demand();
  return 0;
}
