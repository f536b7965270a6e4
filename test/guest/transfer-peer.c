// The kernel's end of the transfers over a bad link, in a guest, over librdmacm and libibverbs.
//
//   transfer-peer serve <ip> <port> <bytes>                  echoes messages, offers memory
//   transfer-peer drive <ip> <port> <bytes> <rounds> <ack>   in each round sends a message, which
//       comes back, writes to the offered memory and reads it again; ack is the exponent of the
//       local ACK timeout (IBTA 11.2.5.2)
//
// The side that listens says where its memory is, when it pleases: address u64, rkey u32,
// big-endian. The driver's last message is empty, and so is the last echo. Both sides disconnect.
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16, FOR_EVER = 7, RESOLVE_MS = 4000 };

struct offer {
  uint64_t address;
  uint32_t rkey;
};

struct side {
  struct rdma_cm_id *id;
  size_t length;
  uint8_t *outgoing, *incoming, *memory;
  struct ibv_mr *outgoing_mr, *incoming_mr, *memory_mr;
};

static void die(const char *what) {
  perror(what);
  exit(1);
}

static uint8_t pattern(size_t at, unsigned round) {
  return (uint8_t)(at * 7 + (at >> 8) + round * 13);
}

static void fill(uint8_t *bytes, size_t length, unsigned round) {
  for (size_t at = 0; at < length; at++) bytes[at] = pattern(at, round);
}

static void expect(const char *what, const uint8_t *bytes, size_t length, unsigned round) {
  for (size_t at = 0; at < length; at++) {
    if (bytes[at] == pattern(at, round)) continue;
    printf("%s of round %u: byte %zu is %02x\n", what, round, at, bytes[at]);
    exit(1);
  }
}

static struct ibv_qp_init_attr attributes(void) {
  struct ibv_qp_init_attr attributes = {
      .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
  };
  return attributes;
}

static struct rdma_conn_param parameters(void) {
  struct rdma_conn_param parameters = {
      .responder_resources = DEPTH,
      .initiator_depth = DEPTH,
      .retry_count = FOR_EVER,
      .rnr_retry_count = FOR_EVER,
  };
  return parameters;
}

static struct ibv_mr *reg(struct rdma_cm_id *id, uint8_t *bytes, size_t length) {
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  struct ibv_mr *mr = ibv_reg_mr(id->pd, bytes, length, access);
  if (mr == NULL) die("ibv_reg_mr");
  return mr;
}

static void receive(struct side *side) {
  if (rdma_post_recv(side->id, NULL, side->incoming, side->length, side->incoming_mr)) {
    die("rdma_post_recv");
  }
}

static struct side open_side(struct rdma_cm_id *id, size_t length) {
  struct side side = {.id = id, .length = length};
  side.outgoing = calloc(1, length);
  side.incoming = calloc(1, length);
  side.memory = calloc(1, length);
  side.outgoing_mr = reg(id, side.outgoing, length);
  side.incoming_mr = reg(id, side.incoming, length);
  side.memory_mr = reg(id, side.memory, length);
  receive(&side);
  return side;
}

static void sent(struct side *side, const char *what, unsigned round) {
  struct ibv_wc wc;
  if (rdma_get_send_comp(side->id, &wc) < 0) die("rdma_get_send_comp");
  if (wc.status == IBV_WC_SUCCESS) return;
  printf("%s of round %u: %s\n", what, round, ibv_wc_status_str(wc.status));
  exit(1);
}

static uint32_t received(struct side *side) {
  struct ibv_wc wc;
  if (rdma_get_recv_comp(side->id, &wc) < 0) die("rdma_get_recv_comp");
  if (wc.status == IBV_WC_SUCCESS) return wc.byte_len;
  printf("receive: %s\n", ibv_wc_status_str(wc.status));
  exit(1);
}

static void post_send(struct side *side, size_t length) {
  if (rdma_post_send(side->id, NULL, side->outgoing, length, side->outgoing_mr, 0)) {
    die("rdma_post_send");
  }
}

static int serve(const char *ip, const char *port, size_t length) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE};
  struct rdma_addrinfo *info;
  struct rdma_cm_id *listener, *id;
  struct ibv_qp_init_attr qp = attributes();
  struct rdma_conn_param answer = parameters();
  if (rdma_getaddrinfo(ip, port, &hints, &info)) die("rdma_getaddrinfo");
  if (rdma_create_ep(&listener, info, NULL, &qp)) die("rdma_create_ep");
  if (rdma_listen(listener, 4)) die("rdma_listen");
  printf("listening\n");
  fflush(stdout);
  if (rdma_get_request(listener, &id)) die("rdma_get_request");
  struct side side = open_side(id, length);
  if (rdma_accept(id, &answer)) die("rdma_accept");
  struct offer offer = {htobe64((uintptr_t)side.memory), htobe32(side.memory_mr->rkey)};
  memcpy(side.outgoing, &offer, sizeof offer);
  post_send(&side, sizeof offer);
  sent(&side, "offer", 0);
  unsigned round = 0;
  for (uint32_t got; (got = received(&side)) != 0; round++) {
    expect("message", side.incoming, got, round);
    memcpy(side.outgoing, side.incoming, got);
    receive(&side);
    post_send(&side, got);
    sent(&side, "echo", round);
  }
  expect("memory", side.memory, length, round);
  printf("served %u\n", round);
  post_send(&side, 0);
  sent(&side, "end", round);
  rdma_disconnect(id);
  return 0;
}

static struct rdma_cm_id *connect_to(const char *ip, const char *port, uint8_t ack) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
  struct rdma_addrinfo *info;
  struct rdma_cm_id *id;
  struct ibv_qp_init_attr qp = attributes();
  if (rdma_getaddrinfo(ip, port, &hints, &info)) die("rdma_getaddrinfo");
  if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) die("rdma_create_id");
  if (rdma_resolve_addr(id, NULL, info->ai_dst_addr, RESOLVE_MS)) die("rdma_resolve_addr");
  // Before the route, which carries it into the REQ.
  if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack, sizeof ack)) {
    die("rdma_set_option");
  }
  if (rdma_resolve_route(id, RESOLVE_MS)) die("rdma_resolve_route");
  if (rdma_create_qp(id, NULL, &qp)) die("rdma_create_qp");
  return id;
}

static int drive(const char *ip, const char *port, size_t length, unsigned rounds, uint8_t ack) {
  struct rdma_conn_param request = parameters();
  struct side side = open_side(connect_to(ip, port, ack), length);
  if (rdma_connect(side.id, &request)) die("rdma_connect");
  struct offer offer;
  received(&side);
  memcpy(&offer, side.incoming, sizeof offer);
  const uint64_t address = be64toh(offer.address);
  const uint32_t rkey = be32toh(offer.rkey);
  uint8_t *written = malloc(length);
  struct ibv_mr *written_mr = reg(side.id, written, length);
  for (unsigned round = 0; round < rounds; round++) {
    receive(&side);
    fill(side.outgoing, length, round);
    fill(written, length, round + 1);
    memset(side.memory, 0xee, length);
    post_send(&side, length);
    if (rdma_post_write(side.id, NULL, written, length, written_mr, 0, address, rkey)) die("write");
    if (rdma_post_read(side.id, NULL, side.memory, length, side.memory_mr, 0, address, rkey)) {
      die("read");
    }
    sent(&side, "send", round);
    sent(&side, "write", round);
    sent(&side, "read", round);
    expect("read", side.memory, length, round + 1);
    if (received(&side) != length) die("length of the echo");
    expect("echo", side.incoming, length, round);
    printf("done %u\n", round);
    fflush(stdout);
  }
  receive(&side);
  post_send(&side, 0);
  sent(&side, "end", rounds);
  received(&side);
  rdma_disconnect(side.id);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "serve") == 0) {
    return serve(argv[2], argv[3], strtoul(argv[4], NULL, 10));
  }
  if (argc == 7 && strcmp(argv[1], "drive") == 0) {
    return drive(argv[2], argv[3], strtoul(argv[4], NULL, 10), (unsigned)atoi(argv[5]),
                 (uint8_t)atoi(argv[6]));
  }
  fprintf(stderr, "usage: transfer-peer serve|drive <ip> <port> <bytes> [<rounds> <ack>]\n");
  return 2;
}
