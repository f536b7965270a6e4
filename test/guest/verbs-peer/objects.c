// Domains, regions, windows and queue pairs.
#include "peer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void made(struct command *command, int number) {
  fprintf(command->reply, "{\"id\":%d}\n", number);
}

static int place(int *count) {
  if (*count == MAX_OBJECTS) die("too many objects");
  return (*count)++;
}

/** The connection manager's own contexts, so that its queue pairs and ours share domains. */
void open_device(struct peer *peer, const char *ip) {
  int count = 0;
  struct ibv_context **contexts = rdma_get_devices(&count);
  if (contexts == NULL || count == 0) die("rdma_get_devices");
  peer->context = contexts[0];
  peer->ip = ip;
  peer->channel = rdma_create_event_channel();
  if (peer->channel == NULL) die("rdma_create_event_channel");
  const union ibv_gid own = gid_of(ip);
  for (peer->gid_index = 0;; peer->gid_index++) {
    union ibv_gid gid;
    if (ibv_query_gid(peer->context, 1, peer->gid_index, &gid)) die("no GID of that address");
    if (memcmp(&gid, &own, sizeof own) == 0) return;
  }
}

void do_pd(struct peer *peer, struct command *command) {
  int number = place(&peer->pd_count);
  peer->pds[number] = ibv_alloc_pd(peer->context);
  if (peer->pds[number] == NULL) die("ibv_alloc_pd");
  made(command, number);
}

/** region <pd> <bytes> <access> */
void do_region(struct peer *peer, struct command *command) {
  int number = place(&peer->region_count);
  struct region *region = &peer->regions[number];
  struct ibv_pd *pd = peer->pds[next_index(command, peer->pd_count)];
  region->length = next_number(command);
  const int access = (int)next_number(command);
  region->bytes = aligned_alloc(4096, (region->length + 4095) / 4096 * 4096);
  if (region->bytes == NULL) die("aligned_alloc");
  memset(region->bytes, 0, region->length);
  region->mr = ibv_reg_mr(pd, region->bytes, region->length, access);
  if (region->mr == NULL) return refuse(command, "ibv_reg_mr");
  region->lkey = region->mr->lkey;
  fprintf(command->reply, "{\"id\":%d,\"address\":\"%" PRIuPTR "\",\"rkey\":%" PRIu32 "}\n", number,
          (uintptr_t)region->bytes, region->mr->rkey);
}

void do_deregister(struct peer *peer, struct command *command) {
  struct region *region = &peer->regions[next_index(command, peer->region_count)];
  if (ibv_dereg_mr(region->mr)) return refuse(command, "ibv_dereg_mr");
  region->mr = NULL;
  fprintf(command->reply, "{}\n");
}

/** <region> <offset> <length>: where that is. */
static uint8_t *next_range(struct peer *peer, struct command *command, uint64_t *length) {
  struct region *region = &peer->regions[next_index(command, peer->region_count)];
  const uint64_t offset = next_number(command);
  *length = next_number(command);
  if (offset > region->length || *length > region->length - offset) die("beyond the region");
  return region->bytes + offset;
}

/** fill <region> <offset> <length> <seed>: as test/guest/verbs/pattern.ts. */
void do_fill(struct peer *peer, struct command *command) {
  uint64_t length;
  uint8_t *bytes = next_range(peer, command, &length);
  const uint32_t seed = (uint32_t)next_number(command);
  for (uint32_t at = 0; at < length; at++) bytes[at] = (uint8_t)(seed * 31 + at * 7 + (at >> 8));
  fprintf(command->reply, "{}\n");
}

/** digest <region> <offset> <length>: FNV-1a of 32 bits. */
void do_digest(struct peer *peer, struct command *command) {
  uint64_t length;
  const uint8_t *bytes = next_range(peer, command, &length);
  uint32_t hash = 2166136261u;
  for (uint64_t at = 0; at < length; at++) hash = (hash ^ bytes[at]) * 16777619u;
  fprintf(command->reply, "{\"digest\":%" PRIu32 "}\n", hash);
}

/** put <region> <offset> 8 <value>: in the order of this machine. */
void do_put(struct peer *peer, struct command *command) {
  uint64_t length;
  uint8_t *bytes = next_range(peer, command, &length);
  const uint64_t value = next_number(command);
  memcpy(bytes, &value, sizeof value);
  fprintf(command->reply, "{}\n");
}

/** word <region> <offset> 8 */
void do_word(struct peer *peer, struct command *command) {
  uint64_t length, value;
  memcpy(&value, next_range(peer, command, &length), sizeof value);
  fprintf(command->reply, "{\"value\":\"%" PRIu64 "\"}\n", value);
}

/** window <pd>: of type 2. */
void do_window(struct peer *peer, struct command *command) {
  int number = place(&peer->window_count);
  struct ibv_pd *pd = peer->pds[next_index(command, peer->pd_count)];
  peer->windows[number] = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  if (peer->windows[number] == NULL) return refuse(command, "ibv_alloc_mw");
  made(command, number);
}

struct queue_pair *make_qp(struct peer *peer, struct rdma_cm_id *id, struct ibv_pd *pd,
                           struct ibv_qp_init_attr attributes) {
  struct queue_pair *qp = calloc(1, sizeof *qp);
  peer->qps[place(&peer->qp_count)] = qp;
  const int entries = (int)(attributes.cap.max_send_wr + attributes.cap.max_recv_wr);
  qp->id = id;
  qp->send_cq = ibv_create_cq(peer->context, entries, NULL, NULL, 0);
  qp->receive_cq = ibv_create_cq(peer->context, entries, NULL, NULL, 0);
  if (qp->send_cq == NULL || qp->receive_cq == NULL) die("ibv_create_cq");
  attributes.send_cq = qp->send_cq;
  attributes.recv_cq = qp->receive_cq;
  if (id == NULL) {
    qp->qp = ibv_create_qp(pd, &attributes);
  } else {
    if (rdma_create_qp(id, pd, &attributes)) die("rdma_create_qp");
    qp->qp = id->qp;
  }
  if (qp->qp == NULL) die("ibv_create_qp");
  return qp;
}

struct queue_pair *next_qp(struct peer *peer, struct command *command) {
  return peer->qps[next_index(command, peer->qp_count)];
}

/** qp <pd> <type> <depth> <segments> <inline bytes> */
void do_qp(struct peer *peer, struct command *command) {
  struct ibv_pd *pd = peer->pds[next_index(command, peer->pd_count)];
  struct ibv_qp_init_attr attributes = {.qp_type = (enum ibv_qp_type)next_number(command)};
  attributes.cap.max_send_wr = attributes.cap.max_recv_wr = (uint32_t)next_number(command);
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = (uint32_t)next_number(command);
  attributes.cap.max_inline_data = (uint32_t)next_number(command);
  struct queue_pair *qp = make_qp(peer, NULL, pd, attributes);
  fprintf(command->reply, "{\"id\":%d,\"qpn\":%" PRIu32 "}\n", peer->qp_count - 1,
          qp->qp->qp_num);
}
