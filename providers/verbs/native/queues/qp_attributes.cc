#include "queues/qp_attributes.h"

#include <cstring>

using namespace qp_words;

namespace {

uint8_t u8(uint32_t word) { return static_cast<uint8_t>(word); }

}  // namespace

ibv_qp_attr attributesOf(const uint32_t* words) {
  ibv_qp_attr attr = {};
  attr.qp_state = static_cast<ibv_qp_state>(words[STATE]);
  attr.cur_qp_state = static_cast<ibv_qp_state>(words[CURRENT_STATE]);
  attr.en_sqd_async_notify = u8(words[SQD_NOTIFY]);
  attr.qp_access_flags = words[ACCESS_FLAGS];
  attr.pkey_index = static_cast<uint16_t>(words[PKEY_INDEX]);
  attr.port_num = u8(words[PORT]);
  attr.qkey = words[QKEY];
  attr.path_mtu = static_cast<ibv_mtu>(words[PATH_MTU]);
  attr.dest_qp_num = words[DESTINATION_QPN];
  attr.rq_psn = words[RECEIVE_PSN];
  attr.sq_psn = words[SEND_PSN];
  attr.max_dest_rd_atomic = u8(words[MAX_DEST_RD_ATOMIC]);
  attr.max_rd_atomic = u8(words[MAX_RD_ATOMIC]);
  attr.min_rnr_timer = u8(words[MIN_RNR_TIMER]);
  attr.timeout = u8(words[TIMEOUT]);
  attr.retry_cnt = u8(words[RETRY_COUNT]);
  attr.rnr_retry = u8(words[RNR_RETRY]);
  memcpy(attr.ah_attr.grh.dgid.raw, words + GID, 16);
  attr.ah_attr.grh.sgid_index = u8(words[GID_INDEX]);
  attr.ah_attr.grh.hop_limit = u8(words[HOP_LIMIT]);
  attr.ah_attr.grh.traffic_class = u8(words[TRAFFIC_CLASS]);
  attr.ah_attr.grh.flow_label = words[FLOW_LABEL];
  attr.ah_attr.port_num = u8(words[AV_PORT]);
  attr.ah_attr.is_global = 1;
  attr.ah_attr.dlid = static_cast<uint16_t>(words[DESTINATION_LID]);
  attr.ah_attr.sl = u8(words[SERVICE_LEVEL]);
  attr.ah_attr.src_path_bits = u8(words[SOURCE_PATH_BITS]);
  attr.path_mig_state = words[PATH_MIGRATION];
  return attr;
}

void writeAttributes(const ibv_qp_attr& attr, uint32_t* words) {
  words[STATE] = attr.qp_state;
  words[CURRENT_STATE] = attr.cur_qp_state;
  words[SQD_NOTIFY] = attr.en_sqd_async_notify;
  words[ACCESS_FLAGS] = attr.qp_access_flags;
  words[PKEY_INDEX] = attr.pkey_index;
  words[PORT] = attr.port_num;
  words[QKEY] = attr.qkey;
  words[PATH_MTU] = attr.path_mtu;
  words[DESTINATION_QPN] = attr.dest_qp_num;
  words[RECEIVE_PSN] = attr.rq_psn;
  words[SEND_PSN] = attr.sq_psn;
  words[MAX_DEST_RD_ATOMIC] = attr.max_dest_rd_atomic;
  words[MAX_RD_ATOMIC] = attr.max_rd_atomic;
  words[MIN_RNR_TIMER] = attr.min_rnr_timer;
  words[TIMEOUT] = attr.timeout;
  words[RETRY_COUNT] = attr.retry_cnt;
  words[RNR_RETRY] = attr.rnr_retry;
  memcpy(words + GID, attr.ah_attr.grh.dgid.raw, 16);
  words[GID_INDEX] = attr.ah_attr.grh.sgid_index;
  words[HOP_LIMIT] = attr.ah_attr.grh.hop_limit;
  words[TRAFFIC_CLASS] = attr.ah_attr.grh.traffic_class;
  words[FLOW_LABEL] = attr.ah_attr.grh.flow_label;
  words[AV_PORT] = attr.ah_attr.port_num;
  words[PATH_MIGRATION] = attr.path_mig_state;
}
