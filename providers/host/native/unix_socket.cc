#include "unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dapl {
namespace {

constexpr uid_t kUnmappedUser = 65534;  // what users of other namespaces are shown as
constexpr int kType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

/// A name of the abstract namespace begins with a zero byte, and its length is that of the address.
socklen_t abstractAddress(const char* name, size_t length, sockaddr_un* address) {
  memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path + 1, name, length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

int closing(int socket, int error) {
  close(socket);
  return -error;
}

union Control {
  cmsghdr header;
  char room[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
};

/// Every descriptor that came is in the message, or closed.
bool takeDescriptors(msghdr* header, Message* message) {
  bool fits = (header->msg_flags & MSG_CTRUNC) == 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      if (message->descriptorCount < kMaxDescriptors) {
        message->descriptors[message->descriptorCount++] = descriptor;
      } else {
        close(descriptor);
        fits = false;
      }
    }
  }
  return fits;
}

}  // namespace

int listenAbstract(const char* name, size_t length, int backlog) {
  if (length == 0 || length > kMaxSocketName) return -ENAMETOOLONG;
  const int fd = socket(AF_UNIX, kType, 0);
  if (fd < 0) return -errno;
  sockaddr_un address;
  const socklen_t bytes = abstractAddress(name, length, &address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), bytes) != 0) return closing(fd, errno);
  if (listen(fd, backlog) != 0) return closing(fd, errno);
  return fd;
}

int connectAbstract(const char* name, size_t length) {
  if (length == 0 || length > kMaxSocketName) return -ENAMETOOLONG;
  const int fd = socket(AF_UNIX, kType, 0);
  if (fd < 0) return -errno;
  sockaddr_un address;
  const socklen_t bytes = abstractAddress(name, length, &address);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), bytes) != 0) return closing(fd, errno);
  return fd;
}

int acceptFrom(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

int identityOf(int socket, PeerIdentity* identity) {
  ucred credentials;
  socklen_t length = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -errno;
  *identity = {credentials.pid, credentials.uid, credentials.gid};
  return 0;
}

bool isOwnUser(const PeerIdentity& identity) {
  return identity.uid == geteuid() && identity.uid != kUnmappedUser;
}

int sendMessage(int socket, const void* bytes, size_t length, const int* descriptors,
                size_t descriptorCount) {
  if (length == 0 || length > kMaxMessageBytes || descriptorCount > kMaxDescriptors) {
    return -EMSGSIZE;
  }
  iovec part = {const_cast<void*>(bytes), length};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Control control = {};
  if (descriptorCount > 0) {
    header.msg_control = control.room;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptorCount);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptorCount);
    memcpy(CMSG_DATA(rights), descriptors, sizeof(int) * descriptorCount);
  }
  for (;;) {
    if (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EINTR) return -errno;
  }
}

int receiveMessage(int socket, Message* message) {
  message->length = 0;
  message->descriptorCount = 0;
  iovec part = {message->bytes, sizeof(message->bytes)};
  Control control;
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.room;
  header.msg_controllen = sizeof(control.room);
  ssize_t length;
  do {
    length = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0) return errno == ECONNRESET ? -EPIPE : -errno;
  const bool fits = takeDescriptors(&header, message) && (header.msg_flags & MSG_TRUNC) == 0;
  // A message of no bytes cannot be told from the end, and is never sent.
  if (length > 0 && fits) {
    message->length = static_cast<size_t>(length);
    return 0;
  }
  closeDescriptors(message->descriptors, message->descriptorCount);
  message->descriptorCount = 0;
  return length == 0 ? -EPIPE : -EMSGSIZE;
}

void closeDescriptors(const int* descriptors, size_t count) {
  for (size_t i = 0; i < count; i++) close(descriptors[i]);
}

}  // namespace dapl
