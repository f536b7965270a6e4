// The calls on connection identifiers. Each gives 0 or a number, or a negative errno.
#include <cerrno>
#include <cstring>

#include "cm/rdmacm.h"

namespace rdmacm {

namespace {

int failed() { return errno ? -errno : -EIO; }
int outcome(int result) { return result == 0 ? 0 : failed(); }

// (channel, port space) => id
int createId(const Args& args, State& state) {
  Channel* channel = state.channelAt(args.u32(0));
  if (!channel) return -EINVAL;
  const uint32_t number = state.newNumber();
  rdma_cm_id* id = nullptr;
  if (state.library.rdma_create_id(channel->verbs, &id,
                                      reinterpret_cast<void*>(uintptr_t{number}),
                                      static_cast<rdma_port_space>(args.u32(1)))) {
    return failed();
  }
  state.ids[number] = id;
  return static_cast<int>(number);
}

// What fails is tried once more. What cannot be destroyed is forgotten all the same: nothing could
// be done with it any more.
int destroyId(const Args& args, State& state, rdma_cm_id* id) {
  state.ids.erase(args.u32(0));
  const int error = outcome(state.library.rdma_destroy_id(id));
  if (error) state.library.rdma_destroy_id(id);
  return error;
}

// (id, channel)
int migrateId(const Args& args, State& state, rdma_cm_id* id) {
  Channel* channel = state.channelAt(args.u32(1));
  if (!channel) return -EINVAL;
  return outcome(state.library.rdma_migrate_id(id, channel->verbs));
}

// An address is a struct sockaddr_in or sockaddr_in6.
sockaddr* addressAt(const Args& args, int i) {
  size_t length = 0;
  void* bytes = args.memory(i, &length);
  return length >= sizeof(sockaddr_in6) ? static_cast<sockaddr*>(bytes) : nullptr;
}

// (id, address)
int bindAddress(const Args& args, State& state, rdma_cm_id* id) {
  sockaddr* address = addressAt(args, 1);
  return address ? outcome(state.library.rdma_bind_addr(id, address)) : -EINVAL;
}

// (id, source or undefined, destination, timeoutMs)
int resolveAddress(const Args& args, State& state, rdma_cm_id* id) {
  sockaddr* destination = addressAt(args, 2);
  if (!destination) return -EINVAL;
  return outcome(state.library.rdma_resolve_addr(id, addressAt(args, 1), destination,
                                                    static_cast<int>(args.u32(3))));
}

// (id, timeoutMs)
int resolveRoute(const Args& args, State& state, rdma_cm_id* id) {
  return outcome(state.library.rdma_resolve_route(id, static_cast<int>(args.u32(1))));
}

// (id, level, name, value)
int setOption(const Args& args, State& state, rdma_cm_id* id) {
  size_t length = 0;
  void* value = args.memory(3, &length);
  return outcome(state.library.rdma_set_option(id, static_cast<int>(args.u32(1)),
                                                  static_cast<int>(args.u32(2)), value,
                                                  length));
}

// Words: qpn, responder resources, initiator depth, retry count, RNR retry count, SRQ.
bool parametersAt(const Args& args, rdma_conn_param* out) {
  size_t wordBytes = 0, dataBytes = 0;
  const auto* words = static_cast<const uint32_t*>(args.memory(1, &wordBytes));
  const void* data = args.memory(2, &dataBytes);
  if (wordBytes < 6 * sizeof(uint32_t) || dataBytes > UINT8_MAX) return false;
  memset(out, 0, sizeof(*out));
  out->private_data = dataBytes > 0 ? data : nullptr;
  out->private_data_len = static_cast<uint8_t>(dataBytes);
  out->qp_num = words[0];
  out->responder_resources = static_cast<uint8_t>(words[1]);
  out->initiator_depth = static_cast<uint8_t>(words[2]);
  out->retry_count = static_cast<uint8_t>(words[3]);
  out->rnr_retry_count = static_cast<uint8_t>(words[4]);
  out->srq = static_cast<uint8_t>(words[5]);
  return true;
}

// (id, words, private data)
int connect(const Args& args, State& state, rdma_cm_id* id) {
  rdma_conn_param parameters;
  if (!parametersAt(args, &parameters)) return -EINVAL;
  return outcome(state.library.rdma_connect(id, &parameters));
}

// (id, words, private data)
int accept(const Args& args, State& state, rdma_cm_id* id) {
  rdma_conn_param parameters;
  if (!parametersAt(args, &parameters)) return -EINVAL;
  return outcome(state.library.rdma_accept(id, &parameters));
}

// (id, private data)
int reject(const Args& args, State& state, rdma_cm_id* id) {
  size_t length = 0;
  const void* data = args.memory(1, &length);
  if (length > UINT8_MAX) return -EINVAL;
  return outcome(state.library.rdma_reject(id, data, static_cast<uint8_t>(length)));
}

int establish(const Args&, State& state, rdma_cm_id* id) {
  return outcome(state.library.rdma_establish(id));
}

// (id, backlog)
int listen(const Args& args, State& state, rdma_cm_id* id) {
  return outcome(state.library.rdma_listen(id, static_cast<int>(args.u32(1))));
}

// (id, event)
int notify(const Args& args, State& state, rdma_cm_id* id) {
  return outcome(
      state.library.rdma_notify(id, static_cast<ibv_event_type>(args.u32(1))));
}

int disconnect(const Args&, State& state, rdma_cm_id* id) {
  return outcome(state.library.rdma_disconnect(id));
}

// (id, state, out words): the attributes that the CM has for that transition. Word 0 is the mask.
int queuePairAttributes(const Args& args, State& state, rdma_cm_id* id) {
  size_t length = 0;
  auto* words = static_cast<uint32_t*>(args.memory(2, &length));
  if (length < 28 * sizeof(uint32_t)) return -EINVAL;
  ibv_qp_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.qp_state = static_cast<ibv_qp_state>(args.u32(1));
  int mask = 0;
  if (state.library.rdma_init_qp_attr(id, &attributes, &mask)) return failed();
  const ibv_ah_attr& path = attributes.ah_attr;
  const uint32_t values[] = {
      static_cast<uint32_t>(mask), attributes.path_mtu,    attributes.dest_qp_num,
      attributes.rq_psn,           attributes.sq_psn,      attributes.max_dest_rd_atomic,
      attributes.max_rd_atomic,    attributes.timeout,     attributes.retry_cnt,
      attributes.rnr_retry,        attributes.pkey_index,  attributes.port_num,
      path.grh.sgid_index,         path.grh.hop_limit,     path.grh.traffic_class,
      path.grh.flow_label,         path.dlid,              path.sl,
      path.src_path_bits,          path.is_global,
  };
  memcpy(words, values, sizeof(values));
  memcpy(words + 24, &path.grh.dgid, 16);
  return 0;
}

// The start of the public struct ibv_device.
struct DeviceStart {
  void* operations[2];
  int nodeType;
  int transportType;
  char name[64];
};

// (id, out): own address and the peer's, 28 bytes each, then words: port, transport, datagrams.
int describeId(const Args& args, State&, rdma_cm_id* id) {
  size_t length = 0;
  auto* out = static_cast<uint8_t*>(args.memory(1, &length));
  if (length < 68) return -EINVAL;
  memcpy(out, &id->route.addr.src_storage, sizeof(sockaddr_in6));
  memcpy(out + 28, &id->route.addr.dst_storage, sizeof(sockaddr_in6));
  const void* start = id->verbs ? id->verbs->device : nullptr;
  const auto* device = static_cast<const DeviceStart*>(start);
  const uint32_t words[] = {id->port_num,
                            device ? static_cast<uint32_t>(device->transportType) : 0,
                            id->qp_type == IBV_QPT_UD};
  memcpy(out + 56, words, sizeof(words));
  return 0;
}

rdma_cm_id* idAt(const Args& args) {
  const State& state = stateOf(args);
  const auto found = state.ids.find(args.u32(0));
  return found == state.ids.end() ? nullptr : found->second;
}

// (id) => name of the device that it is bound to, or undefined
napi_value deviceName(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const rdma_cm_id* id = idAt(args);
  if (!id || !id->verbs) return nullptr;
  const auto* device = reinterpret_cast<const DeviceStart*>(id->verbs->device);
  return text(env, std::string(device->name, strnlen(device->name, sizeof(device->name))));
}

using Call = int (*)(const Args&, State&, rdma_cm_id*);

// The first argument of each is the identifier.
template <Call call>
napi_value onId(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  rdma_cm_id* id = idAt(args);
  errno = 0;
  return number(env, id ? call(args, stateOf(args), id) : -EINVAL);
}

napi_value createIdCall(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  errno = 0;
  return number(env, createId(args, stateOf(args)));
}

}  // namespace

void exportCalls(napi_env env, napi_value exports, State* state) {
  const struct {
    const char* name;
    napi_callback callback;
  } calls[] = {
      {"cmCreateId", createIdCall},
      {"cmDestroyId", onId<destroyId>},
      {"cmMigrateId", onId<migrateId>},
      {"cmBindAddress", onId<bindAddress>},
      {"cmResolveAddress", onId<resolveAddress>},
      {"cmResolveRoute", onId<resolveRoute>},
      {"cmSetOption", onId<setOption>},
      {"cmConnect", onId<connect>},
      {"cmEstablish", onId<establish>},
      {"cmListen", onId<listen>},
      {"cmAccept", onId<accept>},
      {"cmReject", onId<reject>},
      {"cmNotify", onId<notify>},
      {"cmDisconnect", onId<disconnect>},
      {"cmQueuePairAttributes", onId<queuePairAttributes>},
      {"cmDescribeId", onId<describeId>},
      {"cmDeviceName", deviceName},
  };
  for (const auto& call : calls) exportFunction(env, exports, call.name, call.callback, state);
}

}  // namespace rdmacm
