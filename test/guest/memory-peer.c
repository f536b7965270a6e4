// The kernel's end of the memory cases, in a guest, over librdmacm and libibverbs.
//
//   memory-peer serve <ip> <port> <bytes>   offers patterned memory to whoever connects, until he
//                                           disconnects; prints a hash of it then
//   memory-peer drive <ip> <port> <size>... connects, and for each size reads from the offered
//                                           memory, compares, and writes it back further up
//
// The side that listens says where its memory is: address u64, rkey u32, bytes u32, big-endian.
#include <endian.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16, READ_OFFSET = 1, LOCAL_OFFSET = 3 };

struct offer {
  uint64_t address;
  uint32_t rkey;
  uint32_t length;
};

static void die(const char *what) {
  perror(what);
  exit(1);
}

static uint8_t pattern(size_t at) { return (uint8_t)(at * 7 + (at >> 8)); }

static uint32_t hash_of(const uint8_t *bytes, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t at = 0; at < length; at++) hash = (hash ^ bytes[at]) * 16777619u;
  return hash;
}

static struct rdma_cm_id *create(const char *ip, const char *port, int is_server) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                .ai_flags = is_server ? RAI_PASSIVE : 0};
  struct rdma_addrinfo *info;
  struct rdma_cm_id *id;
  struct ibv_qp_init_attr attributes = {
      .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
      .sq_sig_all = 1,
  };
  if (rdma_getaddrinfo(ip, port, &hints, &info)) die("rdma_getaddrinfo");
  if (rdma_create_ep(&id, info, NULL, &attributes)) die("rdma_create_ep");
  return id;
}

static struct ibv_mr *reg(struct rdma_cm_id *id, void *bytes, size_t length) {
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  struct ibv_mr *mr = ibv_reg_mr(id->pd, bytes, length, access);
  if (mr == NULL) die("ibv_reg_mr");
  return mr;
}

static void finish(struct rdma_cm_id *id, const char *what, uint32_t size) {
  struct ibv_wc wc;
  if (rdma_get_send_comp(id, &wc) < 0) die("rdma_get_send_comp");
  if (wc.status == IBV_WC_SUCCESS) return;
  printf("%s of %u bytes: %s\n", what, size, ibv_wc_status_str(wc.status));
  exit(1);
}

static struct rdma_conn_param parameters(void) {
  struct rdma_conn_param parameters = {
      .responder_resources = DEPTH,
      .initiator_depth = DEPTH,
      .retry_count = 6,
      .rnr_retry_count = 6,
  };
  return parameters;
}

static int serve(const char *ip, const char *port, size_t length) {
  struct rdma_cm_id *listener = create(ip, port, 1);
  struct rdma_cm_id *id;
  struct rdma_conn_param answer = parameters();
  struct offer offer;
  struct ibv_wc wc;
  uint8_t *bytes = malloc(length);
  if (rdma_listen(listener, 4)) die("rdma_listen");
  printf("listening\n");
  fflush(stdout);
  if (rdma_get_request(listener, &id)) die("rdma_get_request");
  for (size_t at = 0; at < length; at++) bytes[at] = pattern(at);
  struct ibv_mr *mr = reg(id, bytes, length);
  struct ibv_mr *offer_mr = reg(id, &offer, sizeof offer);
  offer.address = htobe64((uintptr_t)bytes);
  offer.rkey = htobe32(mr->rkey);
  offer.length = htobe32((uint32_t)length);
  struct offer end;
  struct ibv_mr *end_mr = reg(id, &end, sizeof end);
  if (rdma_post_recv(id, NULL, &end, sizeof end, end_mr)) die("rdma_post_recv");
  if (rdma_accept(id, &answer)) die("rdma_accept");
  if (rdma_post_send(id, NULL, &offer, sizeof offer, offer_mr, 0)) die("rdma_post_send");
  finish(id, "send", sizeof offer);
  // The peer's only message says that he is done; a broken connection flushes the receive.
  if (rdma_get_recv_comp(id, &wc) < 0) die("rdma_get_recv_comp");
  printf("hash %08" PRIx32 "\n", hash_of(bytes, length));
  rdma_disconnect(id);
  return wc.status == IBV_WC_SUCCESS ? 0 : 1;
}

static void expect(const uint8_t *bytes, size_t offset, uint32_t size) {
  for (uint32_t at = 0; at < size; at++) {
    if (bytes[at] == pattern(offset + at)) continue;
    printf("read of %u bytes: byte %u is %02x\n", size, at, bytes[at]);
    exit(1);
  }
}

static int drive(const char *ip, const char *port, int count, char **sizes) {
  struct rdma_cm_id *id = create(ip, port, 0);
  struct rdma_conn_param request = parameters();
  struct offer offer;
  struct ibv_wc wc;
  struct ibv_mr *offer_mr = reg(id, &offer, sizeof offer);
  if (rdma_post_recv(id, NULL, &offer, sizeof offer, offer_mr)) die("rdma_post_recv");
  if (rdma_connect(id, &request)) die("rdma_connect");
  if (rdma_get_recv_comp(id, &wc) < 0 || wc.status != IBV_WC_SUCCESS) die("offer");
  const uint64_t address = be64toh(offer.address);
  const uint32_t rkey = be32toh(offer.rkey);
  const uint32_t length = be32toh(offer.length);
  uint8_t *bytes = malloc(length);
  struct ibv_mr *mr = reg(id, bytes, length);
  for (int index = 0; index < count; index++) {
    const uint32_t size = (uint32_t)strtoul(sizes[index], NULL, 10);
    uint8_t *local = bytes + LOCAL_OFFSET;
    memset(bytes, 0xee, length);
    if (rdma_post_read(id, NULL, local, size, mr, 0, address + READ_OFFSET, rkey)) die("read");
    finish(id, "read", size);
    expect(local, READ_OFFSET, size);
    if (rdma_post_write(id, NULL, local, size, mr, 0, address + length / 2, rkey)) die("write");
    finish(id, "write", size);
    memset(bytes, 0xee, length);
    if (rdma_post_read(id, NULL, local, size, mr, 0, address + length / 2, rkey)) die("read");
    finish(id, "read back", size);
    expect(local, READ_OFFSET, size);
    printf("done %u\n", size);
    fflush(stdout);
  }
  rdma_disconnect(id);
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 5 && strcmp(argv[1], "serve") == 0) {
    return serve(argv[2], argv[3], strtoul(argv[4], NULL, 10));
  }
  if (argc >= 5 && strcmp(argv[1], "drive") == 0) {
    return drive(argv[2], argv[3], argc - 4, argv + 4);
  }
  fprintf(stderr, "usage: memory-peer serve|drive <ip> <port> <bytes>...\n");
  return 2;
}
