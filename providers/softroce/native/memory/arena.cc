#include "memory/arena.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared_memory.h"

namespace dapl {
namespace {

/// Small ranges share a chunk. Its pages are had when they are touched.
constexpr uint64_t kChunkBytes = 32 << 20;
/// What a bit of `touched` stands for: no system has smaller ones.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kAllTouched = UINT64_MAX;
/// Each segment is a descriptor here and in every peer.
constexpr size_t kMaxSegments = 512;
/// Packets have 16 bits for them, and none is used again.
constexpr uint32_t kLastNumber = UINT16_MAX;

uint64_t wholePages(uint64_t bytes) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

/// What the finalizer of an ArrayBuffer gives back.
struct Arena::Buffer {
  Arena* arena;
  Chunk* chunk;
  uint64_t offset;
  uint64_t bytes;
};

Arena::~Arena() {
  while (!chunks_.empty()) drop(chunks_.begin()->second.get());
}

void Arena::release() {
  if (--users_ == 0) delete this;
}

napi_value Arena::allocate(napi_env env, size_t bytes) {
  if (bytes == 0 || bytes > limitBytes_) return nullptr;
  const uint64_t room = wholePages(bytes);
  uint64_t offset = 0;
  Chunk* chunk = roomFor(room, &offset);
  if (!chunk) return nullptr;
  const uint64_t end = offset + room;
  if (offset < chunk->fresh) {
    const uint64_t written = (end < chunk->fresh ? end : chunk->fresh) - offset;
    memset(chunk->segment.data + offset, 0, written);
  }
  if (end > chunk->fresh) chunk->fresh = end;
  return bufferOf(env, chunk, offset, room, bytes);
}

bool Arena::lend(const void* address, uint64_t length, SegmentRange* range) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(address);
  auto behind = chunks_.upper_bound(from);
  if (behind == chunks_.begin()) return false;
  const auto& [start, chunk] = *--behind;
  const uint64_t offset = from - start;
  if (offset > chunk->segment.bytes || length > chunk->segment.bytes - offset) return false;
  chunk->touch(offset, length);
  *range = {chunk->segment.number, offset};
  return true;
}

/// Each page once: reading one that is not there has the system make it, as ours.
void Arena::Chunk::touch(uint64_t offset, uint64_t length) {
  const uint64_t end = (offset + length + kPageBytes - 1) / kPageBytes;
  for (uint64_t page = offset / kPageBytes; page < end; page++) {
    uint64_t& word = touched[page / 64];
    if (word == kAllTouched) {
      page |= 63;
      continue;
    }
    const uint64_t bit = uint64_t{1} << page % 64;
    if (word & bit) continue;
    static_cast<void>(*static_cast<volatile const uint8_t*>(segment.data + page * kPageBytes));
    word |= bit;
  }
}

std::vector<Arena::Segment> Arena::segments() const {
  std::vector<Segment> all;
  for (const auto& [start, chunk] : chunks_) all.push_back(chunk->segment);
  return all;
}

Arena::Chunk* Arena::newChunk(uint64_t bytes) {
  if (nextNumber_ > kLastNumber || chunks_.size() >= kMaxSegments || bytes > left()) {
    return nullptr;
  }
  void* data = nullptr;
  const int descriptor = createSharedMemory("dapl", bytes, true, &data);
  if (descriptor < 0) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(data, bytes, MADV_HUGEPAGE);  // where the system has such pages for shared memory
#endif
  auto chunk = std::make_unique<Chunk>();
  chunk->segment = {nextNumber_++, descriptor, static_cast<uint8_t*>(data), bytes};
  chunk->holes[0] = bytes;
  chunk->touched.resize(bytes / kPageBytes / 64 + 1);
  bytes_ += bytes;
  Chunk* const added = chunk.get();
  chunks_[reinterpret_cast<uintptr_t>(data)] = std::move(chunk);
  if (listener_) listener_->onSegments();
  return added;
}

/// The first hole that is long enough, in a chunk that is there or a new one.
Arena::Chunk* Arena::roomFor(uint64_t bytes, uint64_t* offset) {
  for (auto& [start, chunk] : chunks_) {
    for (auto hole = chunk->holes.begin(); hole != chunk->holes.end(); ++hole) {
      if (hole->second < bytes) continue;
      *offset = hole->first;
      const uint64_t left = hole->second - bytes;
      chunk->holes.erase(hole);
      if (left > 0) chunk->holes[*offset + bytes] = left;
      chunk->used += bytes;
      return chunk.get();
    }
  }
  const uint64_t shared = kChunkBytes < left() ? kChunkBytes : bytes;
  Chunk* const chunk = newChunk(bytes > shared ? bytes : shared);
  return chunk ? roomFor(bytes, offset) : nullptr;
}

napi_value Arena::bufferOf(napi_env env, Chunk* chunk, uint64_t offset, uint64_t room,
                           size_t bytes) {
  Buffer* const buffer = new Buffer{this, chunk, offset, room};
  retain();
  const auto giveBack = [](napi_env, void*, void* hint) {
    Buffer* const buffer = static_cast<Buffer*>(hint);
    buffer->arena->give(buffer->chunk, buffer->offset, buffer->bytes);
    buffer->arena->release();
    delete buffer;
  };
  napi_value value = nullptr;
  if (napi_create_external_arraybuffer(env, chunk->segment.data + offset, bytes, giveBack, buffer,
                                       &value) == napi_ok) {
    return value;
  }
  giveBack(env, nullptr, buffer);  // a runtime that keeps all memory inside of its heap
  return nullptr;
}

void Arena::give(Chunk* chunk, uint64_t offset, uint64_t bytes) {
  chunk->used -= bytes;
  if (chunk->used == 0) {
    drop(chunk);
    return;
  }
  auto next = chunk->holes.upper_bound(offset);
  if (next != chunk->holes.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = chunk->holes.erase(next);
  }
  if (next != chunk->holes.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  chunk->holes[offset] = bytes;
}

void Arena::drop(Chunk* chunk) {
  const Segment segment = chunk->segment;
  if (listener_) listener_->onSegments();
  bytes_ -= segment.bytes;
  chunks_.erase(reinterpret_cast<uintptr_t>(segment.data));
  munmap(segment.data, segment.bytes);
  close(segment.descriptor);
}

}  // namespace dapl
