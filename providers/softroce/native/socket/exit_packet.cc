#include "socket/exit_packet.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace dapl {
namespace {

/// The handler may come in the middle of any change, on any thread: `ready` is set last and
/// cleared first. What is torn all the same has a wrong ICRC, and the peer drops it.
struct ExitPacket {
  std::atomic<bool> ready{false};
  int fd = -1;
  uint32_t icrc = 0;
  uint16_t bytes = 0;
  uint16_t usedBytes = 0;
  socklen_t addressBytes = 0;
  SocketAddress address{};
  uint8_t packet[kExitPacketBytes] = {};
};

constexpr uint32_t kChunk = 64;
/// Chunks stay for as long as the process: the handler takes no lock.
struct Chunk {
  ExitPacket packets[kChunk];
  std::atomic<Chunk*> next{nullptr};
};

const uint8_t kZeros[kMaxExitPacketBytes] = {};

/// All ports of all threads have these in common.
std::mutex mutex;
std::atomic<Chunk*> chunks{nullptr};
std::vector<Chunk*> byNumber;
std::vector<uint32_t> freeNumbers;
uint32_t inUse = 0;

struct Watched {
  int signal;
  bool ours;
  struct sigaction before;
};
Watched watched[] = {{SIGTERM, false, {}}, {SIGINT, false, {}}, {SIGHUP, false, {}}};

void sendExitPacket(const ExitPacket& kept) {
  iovec parts[3];
  parts[0] = {const_cast<uint8_t*>(kept.packet), kept.usedBytes};
  parts[1] = {const_cast<uint8_t*>(kZeros), static_cast<size_t>(kept.bytes - kept.usedBytes)};
  parts[2] = {const_cast<uint32_t*>(&kept.icrc), sizeof(kept.icrc)};
  msghdr message = {};
  message.msg_name = const_cast<SocketAddress*>(&kept.address);
  message.msg_namelen = kept.addressBytes;
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  sendmsg(kept.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Async-signal-safe, as all that it calls.
void onSignal(int signal) {
  const int error = errno;
  for (Chunk* chunk = chunks.load(std::memory_order_acquire); chunk;
       chunk = chunk->next.load(std::memory_order_acquire)) {
    for (const ExitPacket& kept : chunk->packets) {
      if (kept.ready.load(std::memory_order_acquire)) sendExitPacket(kept);
    }
  }
  for (Watched& each : watched) {
    if (each.signal != signal) continue;
    each.ours = false;
    sigaction(signal, &each.before, nullptr);
  }
  // It is blocked while this runs, and delivered when this returns.
  raise(signal);
  errno = error;
}

bool isOurs(int signal) {
  struct sigaction present;
  return sigaction(signal, nullptr, &present) == 0 && present.sa_handler == onSignal;
}

/// What was there before is there again, unless something else has come in between.
void unwatchAll() {
  for (Watched& each : watched) {
    if (each.ours && isOurs(each.signal)) sigaction(each.signal, &each.before, nullptr);
    each.ours = false;
  }
}

ExitPacket& at(uint32_t number) { return byNumber[number / kChunk]->packets[number % kChunk]; }

void drop(uint32_t number) {
  if (!at(number).ready.exchange(false)) return;
  freeNumbers.push_back(number);
  if (--inUse == 0) unwatchAll();
}

uint32_t freshNumber() {
  if (freeNumbers.empty()) {
    Chunk* chunk = new Chunk;
    const uint32_t from = static_cast<uint32_t>(byNumber.size()) * kChunk;
    for (uint32_t i = kChunk; i-- > 0;) freeNumbers.push_back(from + i);
    byNumber.push_back(chunk);
    chunk->next.store(chunks.load());
    chunks.store(chunk, std::memory_order_release);
  }
  const uint32_t number = freeNumbers.back();
  freeNumbers.pop_back();
  return number;
}

}  // namespace

int64_t keepExitPacket(int fd, const SocketAddress& address, socklen_t addressBytes,
                    const uint8_t* packet, size_t bytes, uint32_t icrc) {
  size_t used = bytes;
  while (used > 0 && packet[used - 1] == 0) used--;
  if (bytes > kMaxExitPacketBytes || used > kExitPacketBytes) return -1;
  const std::lock_guard<std::mutex> lock(mutex);
  const uint32_t number = freshNumber();
  ExitPacket& kept = at(number);
  kept.fd = fd;
  kept.icrc = icrc;
  kept.bytes = static_cast<uint16_t>(bytes);
  kept.usedBytes = static_cast<uint16_t>(used);
  kept.address = address;
  kept.addressBytes = addressBytes;
  memcpy(kept.packet, packet, used);
  kept.ready.store(true, std::memory_order_release);
  inUse++;
  return number;
}

void dropExitPacket(uint32_t number) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (number / kChunk < byNumber.size()) drop(number);
}

void dropExitPacketsOf(int fd) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (uint32_t number = 0; number < byNumber.size() * kChunk; number++) {
    if (at(number).fd == fd) drop(number);
  }
}

void watchSignal(int signal) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Watched& each : watched) {
    if (each.signal != signal || isOurs(signal)) continue;
    struct sigaction before;
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = onSignal;
    sigfillset(&action.sa_mask);
    each.before = before;
    each.ours = sigaction(signal, &action, nullptr) == 0;
  }
}

}  // namespace dapl
