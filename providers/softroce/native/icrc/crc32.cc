#include "icrc/crc32.h"

#include <cstring>

#include "icrc/crc32_math.h"

namespace dapl {
namespace {

/// entries[k][b]: the register after byte b and k zero bytes ("slicing by 8").
struct SlicingTables {
  uint32_t entries[8][256];

  constexpr SlicingTables() : entries() {
    for (uint32_t byte = 0; byte < 256; byte++) {
      uint32_t reg = byte;
      for (int bit = 0; bit < 8; bit++) reg = crc32_math::timesX(reg);
      entries[0][byte] = reg;
    }
    for (int k = 1; k < 8; k++) {
      for (uint32_t byte = 0; byte < 256; byte++) {
        const uint32_t before = entries[k - 1][byte];
        entries[k][byte] = (before >> 8) ^ entries[0][before & 0xFF];
      }
    }
  }
};

constexpr SlicingTables kTables;

uint32_t step8(uint32_t reg, uint64_t word) {
  const auto& t = kTables.entries;
  word ^= reg;
  return t[7][word & 0xFF] ^ t[6][(word >> 8) & 0xFF] ^ t[5][(word >> 16) & 0xFF] ^
         t[4][(word >> 24) & 0xFF] ^ t[3][(word >> 32) & 0xFF] ^ t[2][(word >> 40) & 0xFF] ^
         t[1][(word >> 48) & 0xFF] ^ t[0][word >> 56];
}

uint32_t step4(uint32_t reg, uint32_t word) {
  const auto& t = kTables.entries;
  word ^= reg;
  return t[3][word & 0xFF] ^ t[2][(word >> 8) & 0xFF] ^ t[1][(word >> 16) & 0xFF] ^
         t[0][word >> 24];
}

}  // namespace

uint32_t crc32Tables(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask) {
  while (length >= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    reg = step8(reg, word | mask);
    mask = 0;
    data += 8;
    length -= 8;
  }
  if (length >= 4) {
    uint32_t word;
    memcpy(&word, data, 4);
    reg = step4(reg, word);
    data += 4;
    length -= 4;
  }
  while (length-- > 0) reg = (reg >> 8) ^ kTables.entries[0][(reg ^ *data++) & 0xFF];
  return reg;
}

const Crc32Variant* crc32Variants(size_t* count) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const Crc32Variant variants[] = {
      {"tables", crc32Tables, true},
      {"pclmul", crc32Pclmul,
       __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")},
      {"vpclmul-avx2", crc32VpclmulAvx2,
       __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2")},
      {"vpclmul-avx512", crc32VpclmulAvx512,
       __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512vl")},
  };
#else
  static const Crc32Variant variants[] = {{"tables", crc32Tables, true}};
#endif
  *count = sizeof(variants) / sizeof(variants[0]);
  return variants;
}

namespace {

/// A variant counts only if it agrees with the tables on this very machine (some 40 us at load).
bool agrees(Crc32Update update) {
  static uint8_t sample[12000];
  uint32_t state = 1;
  for (uint8_t& byte : sample) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  // All that a short one is made of, and a long one once.
  for (size_t length = 8; length + 3 <= sizeof(sample); length += length < 1100 ? 17 : 10850) {
    const uint8_t* data = sample + (length & 3);
    const uint64_t mask = (length & 4) ? 0xFF00000000 : 0;
    if (update(state, data, length, mask) != crc32Tables(state, data, length, mask)) return false;
  }
  return true;
}

Crc32Update choose() {
  size_t count;
  const Crc32Variant* variants = crc32Variants(&count);
  for (size_t i = count; i-- > 0;) {
    if (variants[i].available && agrees(variants[i].update)) return variants[i].update;
  }
  return crc32Tables;
}

uint32_t copyThenUpdate(uint32_t reg, uint8_t* to, const uint8_t* from, size_t length) {
  memcpy(to, from, length);
  return crc32Update(reg, to, length, 0);
}

Crc32Copy chooseCopy() {
#if defined(__x86_64__)
  if (crc32Update == crc32VpclmulAvx2 || crc32Update == crc32VpclmulAvx512) return crc32CopyAvx2;
#endif
  return copyThenUpdate;
}

}  // namespace

const Crc32Update crc32Update = choose();
const Crc32Copy crc32Copy = chooseCopy();

}  // namespace dapl
