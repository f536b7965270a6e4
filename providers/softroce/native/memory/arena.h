// Memory to be registered that peers of this host can read where it lies: ranges of memfds that
// their processes map too, for reading only.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace dapl {

/// A range of a segment that peers may be told of.
struct SegmentRange {
  uint32_t segment = 0;
  uint64_t offset = 0;
};

/// The memory of one device. It outlives the device for as long as a buffer of it is in use.
class Arena {
 public:
  struct Segment {
    uint32_t number;
    int descriptor;
    uint8_t* data;
    uint64_t bytes;
  };

  /// @param limitBytes of all segments together
  static Arena* create(uint64_t limitBytes) { return new Arena(limitBytes); }
  void retain() { users_++; }
  void release();

  /// An ArrayBuffer of zeros, or nullptr where the limit or the system has no more: then other
  /// memory will do.
  napi_value allocate(napi_env env, size_t bytes);
  /// Where the range lies, for a peer to read it there; false for memory of elsewhere. Its pages
  /// are had by then: one that nobody has touched would count as its reader's (memory cgroups).
  bool lend(const void* address, uint64_t length, SegmentRange* range);
  /// Bytes of all segments.
  uint64_t bytes() const { return bytes_; }

  /// Segments that there are.
  std::vector<Segment> segments() const;

  class Listener {
   public:
    /// One has come or gone. It may be called while memory is collected.
    virtual void onSegments() = 0;

   protected:
    ~Listener() = default;
  };
  void setListener(Listener* listener) { listener_ = listener; }

 private:
  /// A memfd, and which ranges of it are free. Behind `fresh` nothing has ever been written.
  struct Chunk {
    Segment segment;
    uint64_t fresh = 0;
    uint64_t used = 0;
    std::map<uint64_t, uint64_t> holes;  // offset to length, none beside another
    std::vector<uint64_t> touched;       // a bit for each page
    void touch(uint64_t offset, uint64_t length);
  };
  struct Buffer;

  explicit Arena(uint64_t limitBytes) : limitBytes_(limitBytes) {}
  ~Arena();

  uint64_t left() const { return limitBytes_ - bytes_; }
  Chunk* newChunk(uint64_t bytes);
  Chunk* roomFor(uint64_t bytes, uint64_t* offset);
  napi_value bufferOf(napi_env env, Chunk* chunk, uint64_t offset, uint64_t room, size_t bytes);
  void give(Chunk* chunk, uint64_t offset, uint64_t bytes);
  void drop(Chunk* chunk);

  const uint64_t limitBytes_;
  uint64_t bytes_ = 0;
  uint32_t nextNumber_ = 1;
  uint32_t users_ = 1;
  Listener* listener_ = nullptr;
  std::map<uintptr_t, std::unique_ptr<Chunk>> chunks_;  // by address
};

}  // namespace dapl
