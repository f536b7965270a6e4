// Trains to a process of the same host, handed over as pages instead of being copied into the
// kernel. A copy there goes to pages that the receiver's core has read just before, and fetching
// them back is what it costs; a ring of our own stays warm, and the ICRC is made on the way into
// it.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace dapl {

/// Pages of packets on their way to one destination. A place is used again after 4 MiB, as much
/// as a queue pair may have outstanding: what is still unread by then arrives with another
/// content, and is lost as in a full receive buffer, for the ICRC or the PSN does not fit.
class PageRing {
 public:
  static constexpr size_t kBytes = 4 << 20;

  PageRing() = default;
  ~PageRing();
  PageRing(const PageRing&) = delete;
  PageRing& operator=(const PageRing&) = delete;

  bool open();
  /// The next `bytes` (at most 64 KiB), from the start of a page.
  uint8_t* take(size_t bytes);

 private:
  uint8_t* base_ = nullptr;
  size_t used_ = 0;
};

/// The pipe through which pages reach a socket.
class PagePipe {
 public:
  PagePipe() = default;
  ~PagePipe() { close(); }
  PagePipe(const PagePipe&) = delete;
  PagePipe& operator=(const PagePipe&) = delete;

  bool open();
  void close();
  /// Puts the pages of some ranges in, `bytes` together.
  /// @returns false when the system would not; the pipe is empty then
  bool load(const iovec* ranges, size_t count, size_t bytes);
  /// Ends the datagram that the socket has begun (MSG_MORE) with what was loaded.
  /// @returns false when it has not been sent; nothing is left of it
  bool finish(int socket, size_t bytes);
  /// Forgets what was loaded.
  void drain(size_t bytes);

 private:
  int read_ = -1;
  int write_ = -1;
  int nowhere_ = -1;
};

}  // namespace dapl
