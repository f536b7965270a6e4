// Unix sockets of whole messages (SOCK_SEQPACKET) with abstract names, which leave nothing in the
// file system: how processes of one host find each other and hand over descriptors. unix(7).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace dapl {

/// Longest abstract name, in bytes.
constexpr size_t kMaxSocketName = 107;
/// Longest message, in bytes, and most descriptors that come with one: more is an error of the
/// sender's.
constexpr size_t kMaxMessageBytes = 65600;
constexpr size_t kMaxDescriptors = 16;

struct PeerIdentity {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

/// A message as it came; the descriptors are the taker's.
struct Message {
  uint8_t bytes[kMaxMessageBytes];
  size_t length = 0;
  int descriptors[kMaxDescriptors];
  size_t descriptorCount = 0;
};

/// All of them never block, and give a descriptor (close-on-exec) or 0, or -errno.
int listenAbstract(const char* name, size_t length, int backlog);
/// -ECONNREFUSED where nothing listens, -EAGAIN where too many wait to be accepted.
int connectAbstract(const char* name, size_t length);
int acceptFrom(int listener);
/// Of the process that connected or listened, as it was then.
int identityOf(int socket, PeerIdentity* identity);
/// Whether it is of our effective user. User ids that are not mapped into our namespace all look
/// alike, so none of them is.
bool isOwnUser(const PeerIdentity& identity);
/// -EAGAIN while the peer's queue is full: nothing was sent.
int sendMessage(int socket, const void* bytes, size_t length, const int* descriptors,
                size_t descriptorCount);
/// -EAGAIN while nothing waits; -EPIPE at the end; -EMSGSIZE for a message longer, or with more
/// descriptors, than any that is sent: it is lost, and its descriptors closed.
int receiveMessage(int socket, Message* message);
void closeDescriptors(const int* descriptors, size_t count);

}  // namespace dapl
