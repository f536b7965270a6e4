#include "tables/page_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

namespace dapl {
namespace {

constexpr size_t kPageBytes = 4096;
/// Room for a datagram in pages, however it lies.
constexpr int kPipeBytes = 128 << 10;

}  // namespace

PageRing::~PageRing() {
  if (base_) munmap(base_, kBytes);
}

bool PageRing::open() {
  void* memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<uint8_t*>(memory);
  return true;
}

uint8_t* PageRing::take(size_t bytes) {
  const size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (used_ + whole > kBytes) used_ = 0;
  uint8_t* place = base_ + used_;
  used_ += whole;
  return place;
}

bool PagePipe::open() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return false;
  read_ = ends[0];
  write_ = ends[1];
  nowhere_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere_ >= 0 && fcntl(write_, F_SETPIPE_SZ, kPipeBytes) >= kPipeBytes) return true;
  close();
  return false;
}

void PagePipe::close() {
  for (int* fd : {&read_, &write_, &nowhere_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

bool PagePipe::load(const iovec* ranges, size_t count, size_t bytes) {
  const ssize_t loaded = vmsplice(write_, ranges, count, SPLICE_F_NONBLOCK);
  if (loaded == static_cast<ssize_t>(bytes)) return true;
  if (loaded > 0) drain(static_cast<size_t>(loaded));
  return false;
}

bool PagePipe::finish(int socket, size_t bytes) {
  const ssize_t sent = splice(read_, nullptr, socket, nullptr, bytes, SPLICE_F_NONBLOCK);
  if (sent == static_cast<ssize_t>(bytes)) return true;
  drain(bytes - static_cast<size_t>(sent > 0 ? sent : 0));
  // Should the beginning still wait: a stump that every receiver drops.
  send(socket, nullptr, 0, MSG_DONTWAIT);
  return false;
}

void PagePipe::drain(size_t bytes) {
  while (bytes > 0) {
    const ssize_t gone = splice(read_, nullptr, nowhere_, nullptr, bytes, SPLICE_F_NONBLOCK);
    if (gone <= 0) return;
    bytes -= static_cast<size_t>(gone);
  }
}

}  // namespace dapl
