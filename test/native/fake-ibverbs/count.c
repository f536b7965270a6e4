/* How many objects there are: of the process, and of each context. */
#include <string.h>

#include "internal.h"

static const char *const NAMES[KINDS] = {
    [KIND_LIST] = "list", [KIND_CONTEXT] = "context", [KIND_PD] = "pd",
    [KIND_MR] = "mr",     [KIND_MW] = "mw",           [KIND_AH] = "ah",
    [KIND_CHANNEL] = "channel", [KIND_CQ] = "cq",     [KIND_SRQ] = "srq",
    [KIND_QP] = "qp",     [KIND_XRCD] = "xrcd",
};
static unsigned counts[KINDS];

void count(struct ibv_context *context, enum kind kind, int by) {
  counts[kind] += (unsigned)by;
  if (context) contextOf(context)->objects += (unsigned)by;
}

unsigned fake_verbs_objects(const char *kind) {
  unsigned sum = 0;
  pthread_mutex_lock(&fakeLock);
  for (int i = 0; i < KINDS; i++) {
    if (!kind || strcmp(NAMES[i], kind) == 0) sum += counts[i];
  }
  pthread_mutex_unlock(&fakeLock);
  return sum;
}
