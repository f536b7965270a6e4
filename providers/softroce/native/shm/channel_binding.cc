// Channels of a port, as JavaScript calls them.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "napi_helpers.h"
#include "thread_descriptors.h"

namespace dapl {
namespace {

napi_value throwCode(napi_env env, const char* code, const std::string& message) {
  napi_throw_error(env, code, message.c_str());
  return nullptr;
}

void set(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

napi_value bigint(napi_env env, uint64_t value) {
  napi_value result = nullptr;
  napi_create_bigint_uint64(env, value, &result);
  return result;
}

int32_t toInt32(napi_env env, napi_value value) {
  int32_t result = -1;
  napi_get_value_int32(env, value, &result);
  return result;
}

double toDouble(napi_env env, napi_value value) {
  double result = 0;
  napi_get_value_double(env, value, &result);
  return result;
}

/// offerChannel(slots, bounceBytes, peerBytes): a ChannelOffer
napi_value offerChannel(napi_env env, napi_callback_info info) {
  const Call<3> call(env, info);
  if (!call.port) return throwRange(env, "the port is closed");
  Channel* channel = nullptr;
  const int error = call.port->channels().offer(
      toUint32(env, call.arguments[0]), static_cast<uint64_t>(toDouble(env, call.arguments[1])),
      static_cast<uint64_t>(toDouble(env, call.arguments[2])), &channel);
  if (error != 0) return throwCode(env, codeOf(error), strerror(error));
  const Channel::Offer offer = channel->offered();
  napi_value object = nullptr;
  napi_create_object(env, &object);
  set(env, object, "channel", unsignedNumber(env, channel->number()));
  set(env, object, "generation", bigint(env, offer.generation));
  set(env, object, "memoryFd", number(env, offer.memoryFd));
  set(env, object, "memoryBytes", number(env, static_cast<double>(offer.memoryBytes)));
  set(env, object, "wakeFd", number(env, offer.wakeFd));
  return object;
}

/// attachChannel(channel, generation, memoryFd, memoryBytes, wakeFd, gids, udpPort, slot)
napi_value attachChannel(napi_env env, napi_callback_info info) {
  const Call<8> call(env, info);
  const napi_value* arguments = call.arguments;
  Channel::Peer peer;
  bool lossless;
  napi_get_value_bigint_uint64(env, arguments[1], &peer.generation, &lossless);
  peer.memoryFd = toInt32(env, arguments[2]);
  peer.memoryBytes = static_cast<size_t>(toDouble(env, arguments[3]));
  peer.wakeFd = toInt32(env, arguments[4]);
  peer.slot = toInt32(env, arguments[7]);
  for (const int fd : {peer.memoryFd, peer.wakeFd}) releaseKept(env, fd);
  const Bytes gids = toBytes(env, arguments[5]);
  peer.addresses.resize(gids.length / 16);
  Channel* const channel =
      call.port ? call.port->channels().find(toUint32(env, arguments[0])) : nullptr;
  const char* wrong = channel ? nullptr : "there is no such channel";
  bool there = false;
  for (size_t i = 0; i < peer.addresses.size() && channel; i++) {
    memcpy(peer.addresses[i].gid, gids.data + 16 * i, 16);
    peer.addresses[i].port = static_cast<uint16_t>(toUint32(env, arguments[6]));
    there = there || call.port->channelTo(peer.addresses[i], peer.slot);
  }
  if (!wrong && !there) {
    wrong = call.port->attach(channel, peer);
    return wrong ? throwCode(env, "EINVAL", wrong) : nullptr;
  }
  close(peer.memoryFd);
  close(peer.wakeFd);
  return wrong ? throwCode(env, "EINVAL", wrong)
               : throwCode(env, "EEXIST", "another channel leads to one of its addresses");
}

napi_value closeChannel(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (!call.port) return nullptr;
  Channel* const channel = call.port->channels().find(toUint32(env, call.arguments[0]));
  if (channel) call.port->closeChannel(channel);
  return nullptr;
}

/// channelTo(gid, udpPort, slot): its number, or -1
napi_value channelTo(napi_env env, napi_callback_info info) {
  const Call<3> call(env, info);
  const Endpoint address = toEndpoint(env, call.arguments[0], call.arguments[1]);
  const int32_t slot = toInt32(env, call.arguments[2]);
  Channel* const channel = call.port ? call.port->channelTo(address, slot) : nullptr;
  return number(env, channel ? static_cast<double>(channel->number()) : -1);
}

/// useSegment(channel, segment)
napi_value useSegment(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  Channel* const channel =
      call.port ? call.port->channels().find(toUint32(env, call.arguments[0])) : nullptr;
  if (channel) channel->useSegment(toUint32(env, call.arguments[1]));
  return nullptr;
}

/// mapSegment(channel, segment, fd, bytes)
napi_value mapSegment(napi_env env, napi_callback_info info) {
  const Call<4> call(env, info);
  const int fd = toInt32(env, call.arguments[2]);
  releaseKept(env, fd);
  Channel* const channel =
      call.port ? call.port->channels().find(toUint32(env, call.arguments[0])) : nullptr;
  if (!channel) {
    close(fd);
    return throwCode(env, "EINVAL", "there is no such channel");
  }
  const uint64_t bytes = static_cast<uint64_t>(toDouble(env, call.arguments[3]));
  const int error = channel->segments().add(toUint32(env, call.arguments[1]), bytes, fd);
  switch (error) {
    case 0: return nullptr;
    case -EINVAL: return throwCode(env, "EINVAL", "no sealed memory of that size, or known");
    case -ENOSPC: return throwCode(env, "ENOMEM", "more memory than may be mapped of a peer");
    default: return throwCode(env, codeOf(-error), strerror(-error));
  }
}

/// unmapSegment(channel, segment)
napi_value unmapSegment(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  Channel* const channel =
      call.port ? call.port->channels().find(toUint32(env, call.arguments[0])) : nullptr;
  if (channel) call.port->channels().unmap(channel, toUint32(env, call.arguments[1]));
  return nullptr;
}

napi_value release(napi_env env, napi_callback_info info) {
  const Call<1> call(env, info);
  if (call.port) call.port->release();
  return nullptr;
}

/// withdraw(path, qpn)
napi_value withdraw(napi_env env, napi_callback_info info) {
  const Call<2> call(env, info);
  if (call.port) {
    call.port->withdraw(toUint32(env, call.arguments[0]), toUint32(env, call.arguments[1]));
  }
  return nullptr;
}

}  // namespace

extern const Method kChannelMethods[] = {
    {"offerChannel", offerChannel}, {"attachChannel", attachChannel},
    {"closeChannel", closeChannel}, {"channelTo", channelTo},
    {"useSegment", useSegment},     {"mapSegment", mapSegment},
    {"unmapSegment", unmapSegment},
    {"release", release},           {"withdraw", withdraw},
};
extern const size_t kChannelMethodCount = sizeof(kChannelMethods) / sizeof(*kChannelMethods);

}  // namespace dapl
