/* Gathering and scattering. */
#include <string.h>

#include "internal.h"

bool open_segments(struct adapter *adapter, struct ibv_pd *pd, const struct ibv_sge *sge,
                   int count, int access, bool isInline, struct cursor *out) {
  out->count = count;
  out->at = 0;
  out->used = 0;
  out->total = 0;
  for (int i = 0; i < count; i++) {
    out->lengths[i] = sge[i].length;
    out->total += sge[i].length;
    out->bytes[i] = NULL;
    if (sge[i].length == 0) continue;
    out->bytes[i] = isInline ? (uint8_t *)(uintptr_t)sge[i].addr
                             : local_bytes(adapter, pd, &sge[i], access);
    if (!out->bytes[i]) return false;
  }
  return true;
}

/* One contiguous piece of memory as a cursor; a message has at most 2^32 - 1 bytes. */
struct cursor contiguous(uint8_t *bytes, uint64_t length) {
  struct cursor one = {.count = 1, .total = length};
  one.bytes[0] = bytes;
  one.lengths[0] = (uint32_t)length;
  return one;
}

void copy(struct cursor *to, struct cursor *from) {
  while (from->at < from->count && to->at < to->count) {
    uint32_t source = from->lengths[from->at] - from->used;
    uint32_t target = to->lengths[to->at] - to->used;
    uint32_t n = source < target ? source : target;
    if (n > 0) {
      memmove(to->bytes[to->at] + to->used, from->bytes[from->at] + from->used, n);
      from->used += n;
      to->used += n;
    }
    if (n == source) from->at++, from->used = 0;
    if (n == target) to->at++, to->used = 0;
  }
}
