// The memory of one side of a channel: what it says and what it sends. Its maker alone writes it,
// the other side has it mapped for reading. A channel is two of them.
//
//      0 head: constant once the other side sees it
//     64 producer: packets ever published, modulo 2^32
//    128 taken, consumed: of the other side's packets, those looked at and those done with
//    192 armed: odd while the maker sleeps and wants to be woken; each sleep has its own number
//    256 wanted: not 0 while the maker waits for room in its own ring
//   4096 slots of 64 bytes
//      … bounce area, from the next page on
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dapl {

struct HalfHead {
  static constexpr uint64_t kMagic = 0x316d68736c706164;  // "daplshm1" in memory
  static constexpr uint32_t kVersion = 1;
  uint64_t magic;
  uint32_t version;
  uint32_t slots;
  uint64_t bounceBytes;
  /// Random: tells this half from every other one.
  uint64_t generation;
};

/// A packet: where its payload lies, and its headers.
struct Slot {
  /// What a slot is. Whatever else stands there ends the channel.
  enum Kind : uint8_t { kPacket = 1, kWithdrawn = 2 };
  static constexpr size_t kHeaderBytes = 48;
  /// Of the maker's bounce area; other numbers are those of memory that both have mapped.
  static constexpr uint16_t kBounce = 0;

  uint8_t kind;
  uint8_t headerBytes;
  /// Addresses, by index among those that each side has stated.
  uint8_t source;
  uint8_t destination;
  uint32_t payloadBytes;
  /// Segment in the upper 16 bits, offset in it in the others.
  uint64_t place;
  uint8_t header[kHeaderBytes];

  static uint64_t placeOf(uint16_t segment, uint64_t offset) {
    return static_cast<uint64_t>(segment) << 48 | offset;
  }
  uint16_t segment() const { return static_cast<uint16_t>(place >> 48); }
  uint64_t offset() const { return place & 0xFFFFFFFFFFFF; }
};
static_assert(sizeof(Slot) == 64 && alignof(Slot) == 8, "one cache line");

class Half {
 public:
  static constexpr size_t kSlotsAt = 4096;
  static constexpr size_t kPage = 4096;
  static constexpr uint32_t kLeastSlots = 64;
  static constexpr uint32_t kMostSlots = 1 << 16;
  /// Twice the longest packet: a payload does not wrap around.
  static constexpr uint64_t kLeastBounce = 2 << 20;
  static constexpr uint64_t kMostBounce = 1 << 30;

  Half() = default;
  Half(uint8_t* base, uint32_t slots, uint64_t bounceBytes)
      : base_(base), slots_(slots), bounceBytes_(bounceBytes) {}

  /// Whether sizes are such as a half may have: a power of two of slots, whole pages.
  static bool mayBe(uint32_t slots, uint64_t bounceBytes) {
    return slots >= kLeastSlots && slots <= kMostSlots && (slots & (slots - 1)) == 0 &&
           bounceBytes >= kLeastBounce && bounceBytes <= kMostBounce && bounceBytes % kPage == 0;
  }
  static size_t bytesOf(uint32_t slots, uint64_t bounceBytes) {
    return kSlotsAt + sizeof(Slot) * slots + static_cast<size_t>(bounceBytes);
  }

  uint8_t* base() const { return base_; }
  uint32_t slots() const { return slots_; }
  uint64_t bounceBytes() const { return bounceBytes_; }
  uint32_t* producer() const { return word(64); }
  uint32_t* taken() const { return word(128); }
  uint32_t* consumed() const { return word(132); }
  uint32_t* armed() const { return word(192); }
  uint32_t* wanted() const { return word(256); }
  /// The slot of packet `index`, as words.
  uint64_t* slot(uint32_t index) const {
    return reinterpret_cast<uint64_t*>(base_ + kSlotsAt + sizeof(Slot) * (index & (slots_ - 1)));
  }
  uint8_t* bounce() const { return base_ + kSlotsAt + sizeof(Slot) * slots_; }

 private:
  uint32_t* word(size_t at) const { return reinterpret_cast<uint32_t*>(base_ + at); }

  uint8_t* base_ = nullptr;
  uint32_t slots_ = 0;
  uint64_t bounceBytes_ = 0;
};

}  // namespace dapl
