// CRC-32 by carry-less multiplication, after "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction" (Gopal et al., Intel, 2009): the message is folded, d bits at a time, onto
// what follows it, until 128 bits are left, which are reduced to 32.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "icrc/crc32.h"
#include "icrc/crc32_math.h"

#define DAPL_SSE __attribute__((target("pclmul,sse4.1")))
#define DAPL_AVX2 __attribute__((target("pclmul,sse4.1,avx2,vpclmulqdq")))
#define DAPL_AVX512 __attribute__((target("pclmul,sse4.1,avx2,avx512f,avx512vl,vpclmulqdq")))

namespace dapl {
namespace {

using crc32_math::foldFactor;

/// Factors that move 128 bits `distance` bits on: the first 64 bits have 64 further to go.
#define DAPL_FACTORS(distance)                              \
  static_cast<long long>(foldFactor((distance)-32)),        \
      static_cast<long long>(foldFactor((distance) + 32))

DAPL_SSE inline __m128i load128(const uint8_t* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

DAPL_SSE inline __m128i fold128(__m128i value, __m128i factors, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/// The first block with the register and the mask in it.
DAPL_SSE inline __m128i firstBlock(uint32_t reg, const uint8_t* data, uint64_t mask) {
  const __m128i masked =
      _mm_or_si128(load128(data), _mm_cvtsi64_si128(static_cast<long long>(mask)));
  return _mm_xor_si128(masked, _mm_cvtsi32_si128(static_cast<int>(reg)));
}

/// 128 bits to the register after them.
DAPL_SSE inline uint32_t reduce(__m128i value) {
  constexpr long long k96 = static_cast<long long>(foldFactor(96));
  constexpr long long k64 = static_cast<long long>(foldFactor(64));
  constexpr long long quotient = static_cast<long long>(crc32_math::quotientOfX64());
  constexpr long long divisor = static_cast<long long>(crc32_math::wholePolynomial());
  const __m128i low32 = _mm_set_epi64x(0, 0xFFFFFFFF);

  // 128 bits to 96, then to 64.
  value = _mm_xor_si128(_mm_srli_si128(value, 8),
                        _mm_clmulepi64_si128(value, _mm_set_epi64x(0, k96), 0x00));
  value = _mm_xor_si128(
      _mm_srli_si128(value, 4),
      _mm_clmulepi64_si128(_mm_and_si128(value, low32), _mm_set_epi64x(0, k64), 0x00));
  // Barrett: subtract the multiple of P that the quotient names.
  const __m128i multiple =
      _mm_clmulepi64_si128(_mm_and_si128(value, low32), _mm_set_epi64x(0, quotient), 0x00);
  const __m128i product =
      _mm_clmulepi64_si128(_mm_and_si128(multiple, low32), _mm_set_epi64x(0, divisor), 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(value, product), 1));
}

/// What is left after the wide loops: whole 16-byte blocks, then bytes.
DAPL_SSE inline uint32_t finish(__m128i value, const uint8_t* data, size_t length) {
  const __m128i factors = _mm_set_epi64x(DAPL_FACTORS(128));
  while (length >= 16) {
    value = fold128(value, factors, load128(data));
    data += 16;
    length -= 16;
  }
  const uint32_t reg = reduce(value);
  return length == 0 ? reg : crc32Tables(reg, data, length, 0);
}

DAPL_AVX2 inline __m256i load256(const uint8_t* data) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
}

DAPL_AVX2 inline __m256i fold256(__m256i value, __m256i factors, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(value, factors, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(value, factors, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

DAPL_AVX2 inline void store256(uint8_t* to, __m256i a, __m256i b, __m256i c, __m256i d) {
  __m256i* blocks = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(blocks, a);
  _mm256_storeu_si256(blocks + 1, b);
  _mm256_storeu_si256(blocks + 2, c);
  _mm256_storeu_si256(blocks + 3, d);
}

/// The four accumulators as one, at the place of the last.
DAPL_AVX2 inline __m256i join(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i next = _mm256_broadcastsi128_si256(_mm_set_epi64x(DAPL_FACTORS(256)));
  return fold256(fold256(fold256(a, next, b), next, c), next, d);
}

/// Over whole blocks of 128 bytes, at least one; `kCopy` leaves a copy of them at `to`.
template <bool kCopy>
DAPL_AVX2 inline __m256i foldBlocks(__m256i first, const uint8_t* data, size_t blocks,
                                    uint8_t* to) {
  __m256i a = first, b = load256(data + 32), c = load256(data + 64), d = load256(data + 96);
  if (kCopy) store256(to, load256(data), b, c, d);
  const __m256i factors = _mm256_broadcastsi128_si256(_mm_set_epi64x(DAPL_FACTORS(1024)));
  for (size_t i = 1; i < blocks; i++) {
    data += 128;
    const __m256i e = load256(data), f = load256(data + 32);
    const __m256i g = load256(data + 64), h = load256(data + 96);
    if (kCopy) store256(to += 128, e, f, g, h);
    a = fold256(a, factors, e);
    b = fold256(b, factors, f);
    c = fold256(c, factors, g);
    d = fold256(d, factors, h);
  }
  return join(a, b, c, d);
}

DAPL_AVX2 inline __m128i fold256To128(__m256i value) {
  const __m128i factors = _mm_set_epi64x(DAPL_FACTORS(128));
  return fold128(_mm256_castsi256_si128(value), factors, _mm256_extracti128_si256(value, 1));
}

DAPL_AVX2 inline __m256i firstBlock256(uint32_t reg, const uint8_t* data, uint64_t mask) {
  return _mm256_inserti128_si256(load256(data), firstBlock(reg, data, mask), 0);
}

// A multiplication takes two cycles on Zen 3, and 32 bytes two of them: that, not memory, is the
// pace of folding. So of long data one half is folded while the other is spread, which takes no
// multiplication: this sum is a multiple of P, so 64 bits may as well be XOR-ed onto those 145,
// 183, 211 and 300 times 64 bits behind them (in GF(2), what holds for x holds for x^64).
static_assert((crc32_math::powerOfX(300) ^ crc32_math::powerOfX(155) ^
               crc32_math::powerOfX(117) ^ crc32_math::powerOfX(89) ^ crc32_math::kOne) == 0,
              "x^300 + x^155 + x^117 + x^89 + 1 is a multiple of P");
constexpr size_t kReach = 300 * 8;
/// What is spread lands in front of this end, where it is folded: whole blocks of 128 bytes.
constexpr size_t kLandingBytes = (kReach + 127) / 128 * 128;
constexpr size_t kHalfBytes = 4096;
constexpr size_t kSpreadBytes = 2 * kHalfBytes + kLandingBytes;

/// The spread bytes, with zeros for what lies before and behind them.
struct SpreadBytes {
  alignas(32) uint8_t before[kLandingBytes];
  uint8_t bytes[kHalfBytes];
  uint8_t behind[kLandingBytes];
};
thread_local SpreadBytes spreadBytes;

/// 32 bytes with all that has been spread onto them; `at` is their place among the spread ones.
DAPL_AVX2 inline __m256i gather256(const uint8_t* data, const uint8_t* at) {
  const __m256i far = _mm256_xor_si256(load256(at - kReach), load256(at - 211 * 8));
  const __m256i near = _mm256_xor_si256(load256(at - 183 * 8), load256(at - 145 * 8));
  return _mm256_xor_si256(load256(data), _mm256_xor_si256(far, near));
}

/// Over kSpreadBytes: the first half is folded, the second one spread.
DAPL_AVX2 __m128i foldAndSpread(__m256i first, const uint8_t* data) {
  const __m256i factors = _mm256_broadcastsi128_si256(_mm_set_epi64x(DAPL_FACTORS(1024)));
  uint8_t* at = spreadBytes.bytes;
  const uint8_t* spread = data + kHalfBytes;
  __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                     _mm256_setzero_si256()};
  for (size_t i = 0; i < kHalfBytes; i += 128) {
    for (size_t k = 0; k < 4; k++) {
      const size_t offset = i + 32 * k;
      const __m256i next = offset == 0 ? first : load256(data + offset);
      sums[k] = fold256(sums[k], factors, next);
      _mm256_store_si256(reinterpret_cast<__m256i*>(at + offset),
                         gather256(spread + offset, at + offset));
    }
  }
  const __m128i folded = fold256To128(join(sums[0], sums[1], sums[2], sums[3]));
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (size_t i = kHalfBytes; i < kHalfBytes + kLandingBytes; i += 128) {
    for (size_t k = 0; k < 4; k++) {
      const size_t offset = i + 32 * k;
      sums[k] = fold256(sums[k], factors, gather256(spread + offset, at + offset));
    }
  }
  constexpr unsigned kBehindBits = 8 * (kHalfBytes + kLandingBytes);
  return fold128(folded, _mm_set_epi64x(DAPL_FACTORS(kBehindBits)),
                 fold256To128(join(sums[0], sums[1], sums[2], sums[3])));
}

DAPL_AVX512 inline __m512i load512(const uint8_t* data) { return _mm512_loadu_si512(data); }

DAPL_AVX512 inline __m512i fold512(__m512i value, __m512i factors, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(value, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

// The zero-masked forms: the plain ones trip gcc's own "may be used uninitialized" (bug 105593).
DAPL_AVX512 inline __m512i factors512(__m128i factors) {
  return _mm512_maskz_broadcast_i32x4(0xFFFF, factors);
}

template <int kIndex>
DAPL_AVX512 inline __m128i quarter(__m512i value) {
  return _mm512_maskz_extracti32x4_epi32(0xF, value, kIndex);
}

}  // namespace

DAPL_SSE uint32_t crc32Pclmul(uint32_t reg, const uint8_t* data, size_t length, uint64_t mask) {
  if (length < 16) return crc32Tables(reg, data, length, mask);
  __m128i a = firstBlock(reg, data, mask);
  if (length < 64) return finish(a, data + 16, length - 16);
  __m128i b = load128(data + 16), c = load128(data + 32), d = load128(data + 48);
  data += 64;
  length -= 64;
  const __m128i factors = _mm_set_epi64x(DAPL_FACTORS(512));
  while (length >= 64) {
    a = fold128(a, factors, load128(data));
    b = fold128(b, factors, load128(data + 16));
    c = fold128(c, factors, load128(data + 32));
    d = fold128(d, factors, load128(data + 48));
    data += 64;
    length -= 64;
  }
  const __m128i next = _mm_set_epi64x(DAPL_FACTORS(128));
  return finish(fold128(fold128(fold128(a, next, b), next, c), next, d), data, length);
}

DAPL_AVX2 uint32_t crc32VpclmulAvx2(uint32_t reg, const uint8_t* data, size_t length,
                                    uint64_t mask) {
  if (length < 128) return crc32Pclmul(reg, data, length, mask);
  __m256i first = firstBlock256(reg, data, mask);
  const __m128i factors = _mm_set_epi64x(DAPL_FACTORS(128));
  for (; length >= kSpreadBytes + 128; length -= kSpreadBytes) {
    const __m128i sum = foldAndSpread(first, data);
    data += kSpreadBytes;
    first = _mm256_inserti128_si256(load256(data), fold128(sum, factors, load128(data)), 0);
  }
  const size_t wide = length / 128 * 128;
  const __m256i rest = foldBlocks<false>(first, data, length / 128, nullptr);
  return finish(fold256To128(rest), data + wide, length - wide);
}

DAPL_AVX2 uint32_t crc32CopyAvx2(uint32_t reg, uint8_t* to, const uint8_t* from, size_t length) {
  const size_t wide = length / 128 * 128;
  memcpy(to + wide, from + wide, length - wide);
  if (wide == 0) return crc32Pclmul(reg, from, length, 0);
  const __m256i rest = foldBlocks<true>(firstBlock256(reg, from, 0), from, length / 128, to);
  return finish(fold256To128(rest), from + wide, length - wide);
}

DAPL_AVX512 uint32_t crc32VpclmulAvx512(uint32_t reg, const uint8_t* data, size_t length,
                                        uint64_t mask) {
  if (length < 64) return crc32Pclmul(reg, data, length, mask);
  __m512i a = _mm512_inserti32x4(load512(data), firstBlock(reg, data, mask), 0);
  data += 64;
  length -= 64;
  const __m512i next = factors512(_mm_set_epi64x(DAPL_FACTORS(512)));
  if (length >= 192) {
    __m512i b = load512(data), c = load512(data + 64), d = load512(data + 128);
    data += 192;
    length -= 192;
    const __m512i factors = factors512(_mm_set_epi64x(DAPL_FACTORS(2048)));
    while (length >= 256) {
      a = fold512(a, factors, load512(data));
      b = fold512(b, factors, load512(data + 64));
      c = fold512(c, factors, load512(data + 128));
      d = fold512(d, factors, load512(data + 192));
      data += 256;
      length -= 256;
    }
    a = fold512(fold512(fold512(a, next, b), next, c), next, d);
  }
  while (length >= 64) {
    a = fold512(a, next, load512(data));
    data += 64;
    length -= 64;
  }
  __m128i value = quarter<3>(a);
  value = fold128(quarter<2>(a), _mm_set_epi64x(DAPL_FACTORS(128)), value);
  value = fold128(quarter<1>(a), _mm_set_epi64x(DAPL_FACTORS(256)), value);
  value = fold128(quarter<0>(a), _mm_set_epi64x(DAPL_FACTORS(384)), value);
  return finish(value, data, length);
}

}  // namespace dapl

#endif  // __x86_64__
