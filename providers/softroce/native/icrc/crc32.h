// CRC-32 (reflected 0xEDB88320, as zlib and Ethernet) over a register: no initial or final
// complement, so that a packet can be taken piece by piece. The quickest variant that the processor
// has is chosen once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapl {

/// Advances the register over `length` bytes. `mask` is OR-ed into the first eight bytes on the way
/// (little-endian), for header fields that the ICRC takes as ones; it needs length >= 8 unless 0.
using Crc32Update = uint32_t (*)(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask);

struct Crc32Variant {
  const char* name;
  Crc32Update update;
  bool available;
};

uint32_t crc32Tables(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask);

/// All variants of this build, slowest first; the last available one is the one in use.
const Crc32Variant* crc32Variants(size_t* count);

/// The variant in use.
extern const Crc32Update crc32Update;

/// Copies on the way, in one pass. Not by memcpy where it can be helped: `rep movsb` of some
/// processors (Zen 4) takes a cycle a byte when the target's place in its page is 1 to 15 bytes
/// after the source's.
using Crc32Copy = uint32_t (*)(uint32_t reg, uint8_t* to, const uint8_t* from, size_t length);
extern const Crc32Copy crc32Copy;

#if defined(__x86_64__)
uint32_t crc32CopyAvx2(uint32_t reg, uint8_t* to, const uint8_t* from, size_t length);
uint32_t crc32Pclmul(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask);
uint32_t crc32VpclmulAvx2(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask);
uint32_t crc32VpclmulAvx512(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask);
#endif

}  // namespace dapl
