/* Unreliable datagrams: address handles, multicast groups, the 40 bytes in front of each. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { IPV4_AT = 20, UDP_BYTES = 8, BTH_BYTES = 12, DETH_BYTES = 8, IMM_BYTES = 4, CRC_BYTES = 4 };
enum { UNDEFINED_BYTE = 0x7a, UNDEFINED = 0x7a7a7a7a };

static struct member members[MAX_MEMBERS];

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
  struct adapter *adapter = adapterOf(pd->context);
  int error = refused(pd->context, "ibv_create_ah");
  /* RoCE has no addresses but those of the GRH. */
  if (!error && !attr->is_global) error = EINVAL;
  if (!error && !gid_at(adapter, attr->port_num, attr->grh.sgid_index)) error = EINVAL;
  struct ah *ah = error ? NULL : calloc(1, sizeof(*ah));
  if (!ah) return failed(error ? error : ENOMEM);
  ah->verbs.context = pd->context;
  ah->verbs.pd = pd;
  ah->attr = *attr;
  pthread_mutex_lock(&fakeLock);
  ((struct pd *)pd)->users++;
  count(pd->context, KIND_AH, 1);
  pthread_mutex_unlock(&fakeLock);
  return &ah->verbs;
}

int ibv_destroy_ah(struct ibv_ah *verbs) {
  int error = injected("ibv_destroy_ah");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  ((struct pd *)verbs->pd)->users--;
  count(verbs->context, KIND_AH, -1);
  pthread_mutex_unlock(&fakeLock);
  free(verbs);
  return 0;
}

static struct member *find_member(const struct qp *qp, const union ibv_gid *group) {
  for (int i = 0; i < MAX_MEMBERS; i++) {
    if (members[i].qp != qp) continue;
    if (!group || memcmp(&members[i].group, group, sizeof(*group)) == 0) return &members[i];
  }
  return NULL;
}

int ibv_attach_mcast(struct ibv_qp *verbs, const union ibv_gid *group, uint16_t lid) {
  (void)lid;
  int error = refused(verbs->context, "ibv_attach_mcast");
  if (!error && (verbs->qp_type != IBV_QPT_UD || !is_multicast(group))) error = EINVAL;
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  if (!find_member(qpOf(verbs), group)) {
    struct member *free = find_member(NULL, NULL);
    if (free) *free = (struct member){qpOf(verbs), *group};
    else error = ENOMEM;
  }
  pthread_mutex_unlock(&fakeLock);
  return error;
}

int ibv_detach_mcast(struct ibv_qp *verbs, const union ibv_gid *group, uint16_t lid) {
  (void)lid;
  int error = refused(verbs->context, "ibv_detach_mcast");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  struct member *member = find_member(qpOf(verbs), group);
  if (member) member->qp = NULL;
  pthread_mutex_unlock(&fakeLock);
  return member ? 0 : EINVAL;
}

void leave_groups(struct qp *qp) {
  struct member *member;
  while ((member = find_member(qp, NULL)) != NULL) member->qp = NULL;
}

static bool is_ipv4(const union ibv_gid *gid) {
  static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
  return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static void put16(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
}

static void put_ipv4(uint8_t *at, const struct ibv_global_route *to, const union ibv_gid *source,
                     uint32_t bytes) {
  memset(at, UNDEFINED_BYTE, IPV4_AT);
  uint8_t *header = at + IPV4_AT;
  memset(header, 0, 20);
  header[0] = 0x45;
  header[1] = to->traffic_class;
  put16(header + 2, 20 + bytes);
  put16(header + 6, 0x4000); /* do not fragment */
  header[8] = to->hop_limit ? to->hop_limit : 64;
  header[9] = 17;
  memcpy(header + 12, source->raw + 12, 4);
  memcpy(header + 16, to->dgid.raw + 12, 4);
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += (uint32_t)header[i] << 8 | header[i + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  put16(header + 10, ~sum & 0xffff);
}

static void put_ipv6(uint8_t *at, const struct ibv_global_route *to, const union ibv_gid *source,
                     uint32_t bytes) {
  uint32_t first = htonl(6u << 28 | (uint32_t)to->traffic_class << 20 | (to->flow_label & 0xfffff));
  memcpy(at, &first, 4);
  put16(at + 4, bytes);
  at[6] = 17;
  at[7] = to->hop_limit ? to->hop_limit : 64;
  memcpy(at + 8, source->raw, 16);
  memcpy(at + 24, to->dgid.raw, 16);
}

static void put_grh(uint8_t *at, struct adapter *from, const struct ibv_ah_attr *to,
                    const struct ibv_send_wr *wr, uint64_t payload) {
  const union ibv_gid *source = &from->ports[to->port_num - 1].gids[to->grh.sgid_index].gid;
  uint32_t bytes = UDP_BYTES + BTH_BYTES + DETH_BYTES + CRC_BYTES + (uint32_t)(payload + 3) / 4 * 4;
  if (wr->opcode == IBV_WR_SEND_WITH_IMM) bytes += IMM_BYTES;
  if (is_ipv4(&to->grh.dgid)) put_ipv4(at, &to->grh, source, bytes);
  else put_ipv6(at, &to->grh, source, bytes);
}

/* The GRH and the payload as one message. */
static struct cursor with_grh(uint8_t *grh, const struct cursor *payload) {
  struct cursor all = {.count = payload->count + 1, .total = payload->total + GRH_BYTES};
  all.bytes[0] = grh;
  all.lengths[0] = GRH_BYTES;
  for (int i = 0; i < payload->count; i++) {
    all.bytes[i + 1] = payload->bytes[i];
    all.lengths[i + 1] = payload->lengths[i];
  }
  return all;
}

static bool listens(const struct qp *qp, uint32_t qkey) {
  enum ibv_qp_state state = qp->attr.qp_state;
  return qp->verbs.qp_type == IBV_QPT_UD && state >= IBV_QPS_RTR && state <= IBV_QPS_SQE &&
         qp->attr.qkey == qkey;
}

/* No receive, or one that is too small: the datagram is lost and the receive stays. */
static void deliver(struct qp *to, const struct qp *from, const struct ibv_send_wr *wr,
                    struct cursor message) {
  struct srq *srq = (struct srq *)to->verbs.srq;
  const struct receives *queue = receives_of(to, srq);
  if (queue->head == queue->tail) return;
  const struct recvRequest *receive = &queue->slots[queue->head % queue->size];
  struct cursor target;
  struct ibv_wc wc = {.wr_id = receive->wr_id, .opcode = IBV_WC_RECV};
  struct ibv_pd *pd = srq ? srq->verbs.pd : to->verbs.pd;
  if (!open_segments(to->adapter, pd, receive->sge, receive->num_sge, IBV_ACCESS_LOCAL_WRITE,
                     false, &target)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    take_receive(to, srq);
    complete_receive(to, srq, wc, false);
    return;
  }
  if (target.total < message.total) return;
  take_receive(to, srq);
  wc.byte_len = (uint32_t)message.total;
  wc.src_qp = from->verbs.qp_num;
  wc.wc_flags = IBV_WC_GRH;
  if (wr->opcode == IBV_WR_SEND_WITH_IMM) wc.wc_flags |= IBV_WC_WITH_IMM;
  wc.imm_data = wr->opcode == IBV_WR_SEND_WITH_IMM ? wr->imm_data : (uint32_t)UNDEFINED;
  copy(&target, &message);
  complete_receive(to, srq, wc, wr->send_flags & IBV_SEND_SOLICITED);
}

void send_datagram(struct qp *qp, const struct sendRequest *request, const struct cursor *from) {
  const struct ibv_send_wr *wr = &request->wr;
  const struct ibv_ah_attr *to = &request->to;
  /* A Q_Key with its highest bit set stands for the sender's own (IBTA 10.2.5). */
  uint32_t qkey = wr->wr.ud.remote_qkey >> 31 ? qp->attr.qkey : wr->wr.ud.remote_qkey;
  uint8_t grh[GRH_BYTES];
  put_grh(grh, qp->adapter, to, wr, from->total);
  const struct cursor message = with_grh(grh, from);
  bool out = qp->adapter->present && qp->adapter->ports[to->port_num - 1].up;
  if (!out) return;
  if (is_multicast(&to->grh.dgid)) {
    for (int i = 0; i < MAX_MEMBERS && wr->wr.ud.remote_qpn == MULTICAST_QPN; i++) {
      struct qp *member = members[i].qp;
      bool same = member && memcmp(&members[i].group, &to->grh.dgid, 16) == 0;
      bool hears = same && member->adapter->present && member->adapter->ports[0].up;
      if (member == qp && qp->blocksOwnMulticast) continue;
      if (hears && listens(member, qkey)) deliver(member, qp, wr, message);
    }
    return;
  }
  struct adapter *there = route(qp->adapter, to);
  uint32_t slot = wr->wr.ud.remote_qpn - FIRST_QPN;
  struct qp *peer = there && slot < MAX_QPS ? there->qps[slot] : NULL;
  if (peer && listens(peer, qkey)) deliver(peer, qp, wr, message);
}
