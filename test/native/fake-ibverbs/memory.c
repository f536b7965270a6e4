/* Regions: one table of keys a device, and the checks behind every access. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static uint64_t memlockBytes, registeredBytes;

static uint32_t next_random(struct adapter *adapter) {
  adapter->random = adapter->random * 1664525u + 1013904223u;
  return adapter->random >> 8;
}

/* Slots in no order that could be relied on; a stale key never is the next one's. */
struct key *alloc_key(struct adapter *adapter) {
  uint32_t from = next_random(adapter);
  for (uint32_t i = 0; i < MAX_KEYS; i++) {
    uint32_t slot = (from + i) % MAX_KEYS;
    struct key *key = &adapter->keys[slot];
    if (slot == 0 || key->kind != KEY_FREE) continue;
    uint32_t variant = (key->value + 1) & 0xff;
    uint32_t salt = next_random(adapter) & 0xff;
    *key = (struct key){.value = salt << 24 | slot << 8 | variant};
    return key;
  }
  return NULL;
}

struct key *find_key(struct adapter *adapter, uint32_t value) {
  struct key *key = &adapter->keys[value >> 8 & 0xffff];
  return key->kind != KEY_FREE && key->value == value ? key : NULL;
}

uint8_t *within(const struct key *key, uint64_t addr, uint64_t length) {
  if (addr < key->start || length > key->length) return NULL;
  if (addr - key->start > key->length - length) return NULL;
  return key->bytes + (addr - key->start);
}

uint8_t *local_bytes(struct adapter *adapter, struct ibv_pd *pd, const struct ibv_sge *sge,
                     int access) {
  struct key *key = find_key(adapter, sge->lkey);
  if (!key || key->kind != KEY_REGION || key->pd != pd) return NULL;
  if ((key->access & access) != access) return NULL;
  return within(key, sge->addr, sge->length);
}

uint8_t *remote_bytes(struct qp *responder, struct ibv_pd *pd, uint32_t rkey, uint64_t addr,
                      uint64_t length, int access) {
  static uint8_t nothing; /* an access of length 0 needs no key (IBTA C9-88) */
  if (!((int)responder->attr.qp_access_flags & access)) return NULL;
  if (length == 0) return &nothing;
  struct key *key = find_key(responder->adapter, rkey);
  if (!key || !key->valid || key->pd != pd) return NULL;
  if (key->owner && key->owner != responder) return NULL;
  if ((key->access & access) != access) return NULL;
  return within(key, addr, length);
}

static int check_region(const void *addr, size_t length, uint64_t iova, int access) {
  const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;
  const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & ~known) != 0) return EOPNOTSUPP;
  if ((access & remote) && !(access & IBV_ACCESS_LOCAL_WRITE)) return EINVAL;
  if ((uintptr_t)addr % PAGE != iova % PAGE || iova + length < iova) return EINVAL;
  return length == 0 ? EINVAL : 0;
}

static int fill_key(struct region *mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                    int access) {
  if (memlockBytes != 0 && registeredBytes + length > memlockBytes) return ENOMEM;
  struct key *key = alloc_key(adapterOf(pd->context));
  if (!key) return ENOMEM;
  key->kind = KEY_REGION;
  key->pd = pd;
  key->access = access;
  key->start = iova;
  key->length = length;
  key->bytes = addr;
  key->valid = true;
  key->region = mr;
  mr->verbs = (struct ibv_mr){pd->context, pd, addr, length, 0, key->value, key->value};
  ((struct pd *)pd)->users++;
  registeredBytes += length;
  count(pd->context, KIND_MR, 1);
  return 0;
}

static struct ibv_mr *register_region(const char *function, struct ibv_pd *pd, void *addr,
                                      size_t length, uint64_t iova, int access) {
  int error = refused(pd->context, function);
  if (!error) error = check_region(addr, length, iova, access);
  struct region *mr = error ? NULL : calloc(1, sizeof(*mr));
  if (!mr) return failed(error ? error : ENOMEM);
  pthread_mutex_lock(&fakeLock);
  error = fill_key(mr, pd, addr, length, iova, access);
  pthread_mutex_unlock(&fakeLock);
  if (!error) return &mr->verbs;
  free(mr);
  return failed(error);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
  uint64_t iova = access & IBV_ACCESS_ZERO_BASED ? (uintptr_t)addr % PAGE : (uintptr_t)addr;
  return register_region("ibv_reg_mr", pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access) {
  return register_region("ibv_reg_mr_iova", pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access) {
  return register_region("ibv_reg_mr_iova2", pd, addr, length, iova, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *verbs) {
  struct region *mr = (struct region *)verbs;
  int error = injected("ibv_dereg_mr");
  pthread_mutex_lock(&fakeLock);
  if (!error && mr->windows > 0) error = EBUSY;
  if (!error) {
    find_key(adapterOf(verbs->context), verbs->lkey)->kind = KEY_FREE;
    ((struct pd *)verbs->pd)->users--;
    registeredBytes -= verbs->length;
    count(verbs->context, KIND_MR, -1);
  }
  pthread_mutex_unlock(&fakeLock);
  if (!error) free(mr);
  return error;
}

void fake_verbs_set_memlock(uint64_t bytes) {
  pthread_mutex_lock(&fakeLock);
  memlockBytes = bytes;
  pthread_mutex_unlock(&fakeLock);
}
