// Arithmetic modulo the CRC-32 polynomial at compile time: every table and folding constant of this
// directory is derived here and nowhere written down.
//
// A register is a polynomial over GF(2) in reflected order: bit 31 is x^0, bit 0 is x^31.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapl::crc32_math {

constexpr uint32_t kPolynomial = 0xEDB88320;  // 0x04C11DB7 reflected; x^32 is implied
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t timesX(uint32_t a) { return (a & 1) ? (a >> 1) ^ kPolynomial : a >> 1; }

/// The inverse of timesX: x has one, since the polynomial has a constant term.
constexpr uint32_t divideByX(uint32_t a) {
  return (a & kOne) ? ((a ^ kPolynomial) << 1) | 1 : a << 1;
}

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; bit--) {
    if ((a >> bit) & 1) product ^= b;
    b = timesX(b);
  }
  return product;
}

constexpr uint32_t powerOfX(unsigned exponent) {
  uint32_t power = kOne;
  while (exponent-- > 0) power = timesX(power);
  return power;
}

/// A folding factor for carry-less multiplication. The product of two reflected factors comes out
/// one bit short of its place; the shift makes up for it.
constexpr uint64_t foldFactor(unsigned exponent) {
  return static_cast<uint64_t>(powerOfX(exponent)) << 1;
}

/// Barrett: floor(x^64 / P), 33 bits, reflected.
constexpr uint64_t quotientOfX64() {
  constexpr uint64_t divisor = 0x104C11DB7;
  uint64_t quotient = uint64_t{1} << 32;
  uint64_t remainder = (divisor ^ (uint64_t{1} << 32)) << 32;
  for (int bit = 31; bit >= 0; bit--) {
    if (!((remainder >> (bit + 32)) & 1)) continue;
    quotient |= uint64_t{1} << bit;
    remainder ^= divisor << bit;
  }
  uint64_t reflected = 0;
  for (int bit = 0; bit <= 32; bit++) {
    if ((quotient >> bit) & 1) reflected |= uint64_t{1} << (32 - bit);
  }
  return reflected;
}

/// P itself with its x^32, 33 bits, reflected.
constexpr uint64_t wholePolynomial() { return (static_cast<uint64_t>(kPolynomial) << 1) | 1; }

}  // namespace dapl::crc32_math
