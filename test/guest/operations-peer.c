// The kernel's end of the operations cases, in a guest, over librdmacm and libibverbs.
//
//   operations-peer serve|drive <ip> <port>
//
// Each side offers its memory and a window in it: address u64, rkey u32, window's rkey u32, all
// big-endian. Then each does with the other's: two additions, a vain and a good swap, a write
// through the window, a write with immediate, a send with immediate, a send that invalidates the
// window, and an empty send for "done". At last "drive" writes through the window, in vain.
#include <endian.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16, MESSAGE = 64, RECEIVES = 6, MEMORY = 8192 };
enum { SUM = 0, SWAP = 8, WINDOW = 16, WINDOW_BYTES = 8, WRITTEN = 64, WRITTEN_BYTES = 5000 };

static const uint64_t SUM_BEFORE = 7, FIRST = 5, SECOND = -20;
static const uint64_t SWAP_BEFORE = 0x1122334455667788, SWAP_AFTER = 0xa1b2c3d4e5f60718;
static const uint32_t WRITE_IMMEDIATE = 0xdeadbeef, SEND_IMMEDIATE = 0x01020304;

struct offer {
  uint64_t address;
  uint32_t rkey;
  uint32_t window;
};

struct side {
  struct rdma_cm_id *id;
  uint8_t *memory, *scratch, *messages;
  struct ibv_mr *memory_mr, *scratch_mr, *messages_mr;
  uint32_t window;
  struct offer peer;
};

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void expect(const char *what, uint64_t is, uint64_t should_be) {
  if (is == should_be) return;
  printf("%s: %" PRIx64 ", not %" PRIx64 "\n", what, is, should_be);
  exit(1);
}

static uint8_t pattern(size_t at) { return (uint8_t)(at * 7 + (at >> 8)); }

static uint64_t word(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static struct ibv_mr *reg(struct rdma_cm_id *id, uint8_t **bytes, size_t length, int access) {
  *bytes = aligned_alloc(4096, length);
  struct ibv_mr *mr = ibv_reg_mr(id->pd, *bytes, length, IBV_ACCESS_LOCAL_WRITE | access);
  if (mr == NULL) die("ibv_reg_mr");
  memset(*bytes, 0, length);
  return mr;
}

static void prepare(struct side *side) {
  int remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  side->memory_mr = reg(side->id, &side->memory, MEMORY, remote | IBV_ACCESS_MW_BIND);
  side->scratch_mr = reg(side->id, &side->scratch, MEMORY, 0);
  side->messages_mr = reg(side->id, &side->messages, 4096, 0);
  memcpy(side->memory + SUM, &SUM_BEFORE, 8);
  memcpy(side->memory + SWAP, &SWAP_BEFORE, 8);
  for (int index = 0; index < RECEIVES; index++) {
    uint8_t *message = side->messages + index * MESSAGE;
    if (rdma_post_recv(side->id, NULL, message, MESSAGE, side->messages_mr)) die("rdma_post_recv");
  }
}

/** Posts a request on the scratch memory and waits for its end. */
static enum ibv_wc_status end_of(struct side *side, struct ibv_send_wr wr, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)side->scratch, length, side->scratch_mr->lkey};
  struct ibv_send_wr *bad;
  struct ibv_wc wc;
  wr.sg_list = &sge;
  wr.num_sge = wr.opcode == IBV_WR_BIND_MW ? 0 : 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(side->id->qp, &wr, &bad)) die("ibv_post_send");
  if (rdma_get_send_comp(side->id, &wc) < 0) die("rdma_get_send_comp");
  return wc.status;
}

static void run(struct side *side, const char *what, struct ibv_send_wr wr, uint32_t length) {
  enum ibv_wc_status status = end_of(side, wr, length);
  if (status == IBV_WC_SUCCESS) return;
  printf("%s: %s\n", what, ibv_wc_status_str(status));
  exit(1);
}

static void bind_window(struct side *side) {
  struct ibv_mw *mw = ibv_alloc_mw(side->id->pd, IBV_MW_TYPE_2);
  if (mw == NULL) die("ibv_alloc_mw");
  struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info.mr = side->memory_mr;
  wr.bind_mw.bind_info.addr = (uintptr_t)side->memory + WINDOW;
  wr.bind_mw.bind_info.length = WINDOW_BYTES;
  wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  run(side, "bind", wr, 0);
  side->window = wr.bind_mw.rkey;
}

static struct ibv_wc received(struct side *side, const char *what) {
  struct ibv_wc wc;
  if (rdma_get_recv_comp(side->id, &wc) < 0) die("rdma_get_recv_comp");
  wc.wc_flags &= ~IBV_WC_GRH;
  if (wc.status == IBV_WC_SUCCESS) return wc;
  printf("%s: %s\n", what, ibv_wc_status_str(wc.status));
  exit(1);
}

static void exchange_offers(struct side *side) {
  struct offer offer = {htobe64((uintptr_t)side->memory), htobe32(side->memory_mr->rkey),
                        htobe32(side->window)};
  memcpy(side->scratch, &offer, sizeof offer);
  run(side, "offer", (struct ibv_send_wr){.opcode = IBV_WR_SEND}, sizeof offer);
  received(side, "offer");
  memcpy(&offer, side->messages, sizeof offer);
  side->peer.address = be64toh(offer.address);
  side->peer.rkey = be32toh(offer.rkey);
  side->peer.window = be32toh(offer.window);
}

static void atomic(struct side *side, enum ibv_wr_opcode opcode, uint64_t at, uint64_t operand,
                   uint64_t swap, uint64_t before) {
  struct ibv_send_wr wr = {.opcode = opcode};
  wr.wr.atomic.remote_addr = side->peer.address + at;
  wr.wr.atomic.rkey = side->peer.rkey;
  wr.wr.atomic.compare_add = operand;
  wr.wr.atomic.swap = swap;
  run(side, "atomic", wr, 8);
  expect("atomic", word(side->scratch), before);
}

static struct ibv_send_wr write_to(struct side *side, uint64_t at, uint32_t rkey) {
  struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
  wr.wr.rdma.remote_addr = side->peer.address + at;
  wr.wr.rdma.rkey = rkey;
  return wr;
}

static void request(struct side *side) {
  const uint32_t rkey = side->peer.rkey, window = side->peer.window;
  atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, SUM, FIRST, 0, SUM_BEFORE);
  atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, SUM, SECOND, 0, SUM_BEFORE + FIRST);
  atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, SWAP, 1, 2, SWAP_BEFORE);
  atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, SWAP, SWAP_BEFORE, SWAP_AFTER, SWAP_BEFORE);
  for (size_t at = 0; at < MEMORY; at++) side->scratch[at] = pattern(at);
  run(side, "write through the window", write_to(side, WINDOW, window), WINDOW_BYTES);
  struct ibv_send_wr wr = write_to(side, WRITTEN, rkey);
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = htobe32(WRITE_IMMEDIATE);
  run(side, "write with immediate", wr, WRITTEN_BYTES);
  wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(SEND_IMMEDIATE)};
  run(side, "send with immediate", wr, MESSAGE);
  wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = window};
  run(side, "send with invalidate", wr, MESSAGE);
  run(side, "done", (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 0);
  printf("requester ok\n");
}

static void expect_pattern(const char *what, const uint8_t *bytes, size_t length) {
  for (size_t at = 0; at < length; at++) expect(what, bytes[at], pattern(at));
}

/** What the peer has done to us, by its receives and our memory. */
static void respond(struct side *side) {
  struct ibv_wc wc = received(side, "write with immediate");
  expect("opcode of the write", wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  expect("flags of the write", wc.wc_flags, IBV_WC_WITH_IMM);
  expect("immediate of the write", be32toh(wc.imm_data), WRITE_IMMEDIATE);
  expect("bytes of the write", wc.byte_len, WRITTEN_BYTES);
  wc = received(side, "send with immediate");
  expect("flags of the send", wc.wc_flags, IBV_WC_WITH_IMM);
  expect("immediate of the send", be32toh(wc.imm_data), SEND_IMMEDIATE);
  expect_pattern("send with immediate", side->messages + 2 * MESSAGE, MESSAGE);
  wc = received(side, "send with invalidate");
  // Not the flags: rxe has the kernel's bit for it in them, which is another one here.
  expect("invalidated", wc.invalidated_rkey, side->window);
  expect("bytes of done", received(side, "done").byte_len, 0);
  expect("sum", word(side->memory + SUM), SUM_BEFORE + FIRST + SECOND);
  expect("swapped", word(side->memory + SWAP), SWAP_AFTER);
  expect_pattern("window", side->memory + WINDOW, WINDOW_BYTES);
  expect_pattern("written", side->memory + WRITTEN, WRITTEN_BYTES);
  expect("behind the written", side->memory[WRITTEN + WRITTEN_BYTES], 0);
  printf("responder ok\n");
}

static void drive_shut_window(struct side *side) {
  struct ibv_send_wr wr = write_to(side, WINDOW, side->peer.window);
  printf("shut window: %s\n", ibv_wc_status_str(end_of(side, wr, WINDOW_BYTES)));
}

/** Says how the connection ended. */
static void await_end(struct side *side) {
  struct rdma_cm_event *event;
  if (rdma_get_cm_event(side->id->channel, &event)) die("rdma_get_cm_event");
  printf("%s\n", rdma_event_str(event->event));
  rdma_ack_cm_event(event);
}

static struct rdma_cm_id *create(const char *ip, const char *port, int is_server) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                .ai_flags = is_server ? RAI_PASSIVE : 0};
  struct rdma_addrinfo *info;
  struct rdma_cm_id *id;
  struct ibv_qp_init_attr attributes = {
      .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
  };
  if (rdma_getaddrinfo(ip, port, &hints, &info)) die("rdma_getaddrinfo");
  if (rdma_create_ep(&id, info, NULL, &attributes)) die("rdma_create_ep");
  return id;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: operations-peer serve|drive <ip> <port>\n");
    return 2;
  }
  const int is_server = strcmp(argv[1], "serve") == 0;
  struct rdma_conn_param parameters = {.responder_resources = DEPTH, .initiator_depth = DEPTH,
                                       .retry_count = 6, .rnr_retry_count = 6};
  struct side side = {.id = create(argv[2], argv[3], is_server)};
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (is_server) {
    struct rdma_cm_id *listener = side.id;
    if (rdma_listen(listener, 4)) die("rdma_listen");
    printf("listening\n");
    if (rdma_get_request(listener, &side.id)) die("rdma_get_request");
    prepare(&side);
    if (rdma_accept(side.id, &parameters)) die("rdma_accept");
  } else {
    prepare(&side);
    if (rdma_connect(side.id, &parameters)) die("rdma_connect");
  }
  bind_window(&side);
  exchange_offers(&side);
  request(&side);
  respond(&side);
  if (is_server) await_end(&side);
  else drive_shut_window(&side);
  rdma_disconnect(side.id);
  return 0;
}
