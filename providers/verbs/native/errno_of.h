// What a call of libibverbs has failed with. The manual pages say errno or null; drivers also give
// -1 with errno, -errno, or nothing that tells. The caller sets errno to 0 before.
#pragma once

#include <cerrno>

// After a null, or -1.
inline int failure() { return errno > 0 ? errno : EIO; }

// 0 if it has not failed.
inline int errnoOf(int result) {
  if (result >= 0) return result;
  return result == -1 ? failure() : -result;
}

// What makes one thing by several calls has failed in one of them: which (errno.ts has the names).
inline int failureOf(int call, int error) { return error | call << 16; }
