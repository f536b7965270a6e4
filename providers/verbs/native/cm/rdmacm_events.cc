// Event channels on the event loop. An event is copied out and acknowledged before a handler hears
// of it: rdma_destroy_id waits for the acknowledgement, and a handler may destroy.
#include <cerrno>
#include <cstring>

#include "device_events.h"
#include "cm/rdmacm.h"

namespace rdmacm {

namespace {

// So many events in one turn of the event loop; the descriptor stays readable if there are more.
constexpr int EVENTS_PER_TURN = 64;

uint32_t numberOf(const rdma_cm_id* id) {
  return id ? static_cast<uint32_t>(reinterpret_cast<uintptr_t>(id->context)) : 0;
}

void copyPrivateData(uint8_t* record, const void* data, uint8_t length) {
  reinterpret_cast<uint32_t*>(record)[EVENT_PRIVATE_DATA_LENGTH] = data ? length : 0;
  if (data) memcpy(record + EVENT_PRIVATE_DATA, data, length);
}

// Private data and parameters mean something only in these.
bool hasParameters(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_UNREACHABLE:
      return true;
    default:
      return false;
  }
}

void describe(Channel& channel, const rdma_cm_event& event) {
  State& state = *channel.state;
  memset(channel.record, 0, EVENT_PRIVATE_DATA);
  auto* words = reinterpret_cast<uint32_t*>(channel.record);
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    // It has come with its listener's context; from now on it is one of its own.
    const uint32_t number = state.newNumber();
    event.id->context = reinterpret_cast<void*>(uintptr_t{number});
    state.ids[number] = event.id;
    words[EVENT_LISTEN_ID] = numberOf(event.listen_id);
  }
  words[EVENT_TYPE] = event.event;
  words[EVENT_ID] = numberOf(event.id);
  words[EVENT_STATUS] = static_cast<uint32_t>(event.status);
  words[EVENT_IS_DATAGRAM] = event.id && event.id->qp_type == IBV_QPT_UD;
  if (!hasParameters(event.event)) return;
  if (words[EVENT_IS_DATAGRAM]) {
    const rdma_ud_param& ud = event.param.ud;
    words[EVENT_QPN] = ud.qp_num;
    words[EVENT_QKEY] = ud.qkey;
    copyPrivateData(channel.record, ud.private_data, ud.private_data_len);
    return;
  }
  const rdma_conn_param& conn = event.param.conn;
  words[EVENT_RESPONDER_RESOURCES] = conn.responder_resources;
  words[EVENT_INITIATOR_DEPTH] = conn.initiator_depth;
  words[EVENT_RETRY_COUNT] = conn.retry_count;
  words[EVENT_RNR_RETRY_COUNT] = conn.rnr_retry_count;
  words[EVENT_QPN] = conn.qp_num;
  copyPrivateData(channel.record, conn.private_data, conn.private_data_len);
}

void tell(Channel& channel) { callHandler(*channel.state->instance, channel.onEvent, nullptr, 0); }

// False when there is nothing more to read now.
bool readOne(Channel& channel) {
  const Library& library = channel.state->library;
  rdma_cm_event* event = nullptr;
  if (library.rdma_get_cm_event(channel.verbs, &event) == 0) {
    describe(channel, *event);
    library.rdma_ack_cm_event(event);
    // A peer that disconnects may do so for what our queue pair has done: that comes first.
    drainAsyncEvents(*channel.state->instance);
    if (!channel.closed) tell(channel);
    return true;
  }
  const int error = errno;
  if (error == EAGAIN || error == EINTR) return false;
  memset(channel.record, 0, EVENT_PRIVATE_DATA);
  auto* words = reinterpret_cast<uint32_t*>(channel.record);
  words[EVENT_TYPE] = EVENT_CHANNEL_FAILED;
  words[EVENT_STATUS] = static_cast<uint32_t>(-error);
  tell(channel);
  return false;
}

// A handler may pause the channel, or close it.
void onReadable(void* data) {
  auto* channel = static_cast<Channel*>(data);
  channel->reading = true;
  for (int count = 0; count < EVENTS_PER_TURN && channel->watch; count++) {
    if (!readOne(*channel)) break;
  }
  channel->reading = false;
  if (channel->closed) delete channel;
}

int watchChannel(Channel& channel, bool on) {
  if (!on) closeWatch(channel.watch);
  if (!on || channel.watch) return 0;
  channel.watch = openWatch(*channel.state->instance, channel.verbs->fd, onReadable, &channel);
  return channel.watch ? 0 : -(errno ? errno : EIO);
}

// Its identifiers have gone before.
void closeChannel(Channel* channel) {
  State& state = *channel->state;
  state.channels.erase(channel->number);
  closeWatch(channel->watch);
  state.library.rdma_destroy_event_channel(channel->verbs);
  release(*state.instance, channel->onEvent);
  release(*state.instance, channel->recordMemory);
  channel->closed = true;
  if (!channel->reading) delete channel;
}

// (record, onEvent) => channel
int openChannel(const Args& args, State& state) {
  size_t length = 0;
  auto* record = static_cast<uint8_t*>(args.memory(0, &length));
  if (!record || length < EVENT_RECORD_BYTES) return -EINVAL;
  if (!state.library.rdma_create_event_channel) return -ENOSYS;
  errno = 0;
  rdma_event_channel* verbs = state.library.rdma_create_event_channel();
  if (!verbs) return errno ? -errno : -EIO;
  auto* channel = new Channel();
  channel->state = &state;
  channel->verbs = verbs;
  channel->number = state.newNumber();
  channel->record = record;
  channel->recordMemory = args.keep(0);
  channel->onEvent = args.keep(1);
  state.channels[channel->number] = channel;
  const int number = static_cast<int>(channel->number);
  const int failure = watchChannel(*channel, true);
  if (failure) closeChannel(channel);
  return failure ? failure : number;
}

// (channel, on)
int watchCall(const Args& args, State& state) {
  Channel* channel = state.channelAt(args.u32(0));
  return channel ? watchChannel(*channel, args.u32(1) != 0) : -EINVAL;
}

// (channel)
int closeCall(const Args& args, State& state) {
  Channel* channel = state.channelAt(args.u32(0));
  if (!channel) return -EINVAL;
  for (const auto& [number, id] : state.ids) {
    if (id->channel == channel->verbs) return -EBUSY;
  }
  closeChannel(channel);
  return 0;
}

template <int (*call)(const Args&, State&)>
napi_value callOf(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  return number(env, call(args, stateOf(args)));
}

}  // namespace

void closeAll(State& state) {
  for (const auto& [number, id] : state.ids) state.library.rdma_destroy_id(id);
  state.ids.clear();
  while (!state.channels.empty()) closeChannel(state.channels.begin()->second);
}

void exportChannels(napi_env env, napi_value exports, State* state) {
  exportFunction(env, exports, "cmOpenChannel", callOf<openChannel>, state);
  exportFunction(env, exports, "cmWatchChannel", callOf<watchCall>, state);
  exportFunction(env, exports, "cmCloseChannel", callOf<closeCall>, state);
}

}  // namespace rdmacm
