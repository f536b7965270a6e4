// Sends ICMP that a test has made up: a raw socket, which needs CAP_NET_RAW.
#include <errno.h>
#include <netinet/in.h>
#include <node_api.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

bool bytesOf(napi_env env, napi_value value, void** data, size_t* length) {
  napi_typedarray_type type;
  napi_value buffer;
  size_t offset;
  return napi_get_typedarray_info(env, value, &type, length, data, &buffer, &offset) == napi_ok;
}

int sendIcmp(const void* to, size_t addressBytes, const void* message, size_t bytes) {
  const bool ipv4 = addressBytes == 4;
  const int protocol = ipv4 ? static_cast<int>(IPPROTO_ICMP) : static_cast<int>(IPPROTO_ICMPV6);
  const int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (fd < 0) return errno;
  sockaddr_storage address{};
  if (ipv4) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    v4->sin_family = AF_INET;
    memcpy(&v4->sin_addr, to, 4);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    v6->sin6_family = AF_INET6;
    memcpy(&v6->sin6_addr, to, 16);
  }
  const socklen_t length = ipv4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const int error = sendto(fd, message, bytes, 0, name, length) < 0 ? errno : 0;
  close(fd);
  return error;
}

/// send(address, message): errno, 0 if it was sent; 4 bytes of address are IPv4, 16 IPv6
napi_value send(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2];
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  void* address = nullptr;
  void* message = nullptr;
  size_t addressBytes = 0;
  size_t bytes = 0;
  int error = EINVAL;
  if (count == 2 && bytesOf(env, arguments[0], &address, &addressBytes) &&
      bytesOf(env, arguments[1], &message, &bytes) &&
      (addressBytes == 4 || addressBytes == 16)) {
    error = sendIcmp(address, addressBytes, message, bytes);
  }
  napi_value result;
  napi_create_int32(env, error, &result);
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "send", NAPI_AUTO_LENGTH, send, nullptr, &function);
  napi_set_named_property(env, exports, "send", function);
  return exports;
}
