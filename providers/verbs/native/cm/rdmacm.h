// Connection identifiers of librdmacm and their event channels, by number, for one Node
// environment. What happens when is decided in TypeScript (providers/verbs/cm*.ts): here are the
// calls, and the events as words in memory.
#pragma once

#include <unordered_map>

#include "abi/rdmacm_abi.h"
#include "watch.h"

namespace rdmacm {

// Every function of librdmacm that is looked up by name.
#define RDMACM_FUNCTIONS(X)                                                                \
  X(rdma_create_event_channel) X(rdma_destroy_event_channel) X(rdma_create_id)             \
  X(rdma_destroy_id) X(rdma_migrate_id) X(rdma_bind_addr) X(rdma_resolve_addr)             \
  X(rdma_resolve_route) X(rdma_set_option) X(rdma_connect) X(rdma_establish)               \
  X(rdma_listen) X(rdma_accept) X(rdma_reject) X(rdma_notify) X(rdma_disconnect)           \
  X(rdma_init_qp_attr) X(rdma_get_cm_event) X(rdma_ack_cm_event)

struct Library {
  RDMACM_FUNCTIONS(SYMBOL_MEMBER)
};

struct State;

// An event channel and what hears of its events.
struct Channel {
  State* state;
  uint32_t number;
  rdma_event_channel* verbs;
  Watch* watch = nullptr;      // null: events stay in the kernel
  bool reading = false;        // on the stack: not to be freed
  bool closed = false;
  napi_ref onEvent = nullptr;  // () => void: the event is in `record`
  napi_ref recordMemory = nullptr;
  uint8_t* record = nullptr;
};

// What one environment has of librdmacm.
struct State {
  Instance* instance;
  Library library;
  uint32_t nextNumber = 1;
  std::unordered_map<uint32_t, Channel*> channels;
  std::unordered_map<uint32_t, rdma_cm_id*> ids;

  uint32_t newNumber();
  Channel* channelAt(uint32_t number) const;
};

inline State& stateOf(const Args& args) { return *static_cast<State*>(args.data); }

// Words of an event record, then at byte 64 the private data (at most 256 bytes).
enum EventWord {
  EVENT_TYPE,
  EVENT_ID,         // for a connection request: the new one
  EVENT_LISTEN_ID,  // 0: none
  EVENT_STATUS,     // signed
  EVENT_IS_DATAGRAM,
  EVENT_RESPONDER_RESOURCES,
  EVENT_INITIATOR_DEPTH,
  EVENT_RETRY_COUNT,
  EVENT_RNR_RETRY_COUNT,
  EVENT_QPN,
  EVENT_QKEY,
  EVENT_PRIVATE_DATA_LENGTH,
};
constexpr size_t EVENT_PRIVATE_DATA = 64;
constexpr size_t EVENT_RECORD_BYTES = EVENT_PRIVATE_DATA + 256;
// Type of a record that says with which errno (negative) the channel itself has failed.
constexpr uint32_t EVENT_CHANNEL_FAILED = 0xff;

void exportChannels(napi_env env, napi_value exports, State* state);
void exportCalls(napi_env env, napi_value exports, State* state);
// Destroys everything that is left.
void closeAll(State& state);

}  // namespace rdmacm
