/* Regions and windows: one table of keys, and the checks behind every access. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

enum { PAGE = 4096 };

int alloc_key(struct device *device, struct key **out) {
  for (uint32_t i = 1; i < MAX_KEYS; i++) {
    struct key *key = &device->keys[i];
    if (key->kind != KEY_FREE) continue;
    /* The variant of the last user is not used again at once: stale keys do not match. */
    uint32_t variant = (key->value + 1) & 0xff;
    *key = (struct key){.value = (i << 8) | variant};
    *out = key;
    return 0;
  }
  return ENOMEM;
}

struct key *find_key(struct device *device, uint32_t value) {
  uint32_t index = value >> 8;
  if (index == 0 || index >= MAX_KEYS) return NULL;
  struct key *key = &device->keys[index];
  return key->kind != KEY_FREE && key->value == value ? key : NULL;
}

static uint8_t *within(const struct key *key, uint64_t addr, uint64_t length) {
  if (addr < key->start || length > key->length) return NULL;
  if (addr - key->start > key->length - length) return NULL;
  return key->bytes + (addr - key->start);
}

uint8_t *local_bytes(struct device *device, struct ibv_pd *pd, const struct ibv_sge *sge,
                     int access) {
  struct key *key = find_key(device, sge->lkey);
  if (!key || key->kind != KEY_REGION || key->pd != pd) return NULL;
  if ((key->access & access) != access) return NULL;
  return within(key, sge->addr, sge->length);
}

uint8_t *remote_bytes(struct qp *responder, uint32_t rkey, uint64_t addr, uint64_t length,
                      int access) {
  static uint8_t nothing; /* an access of length 0 needs no key (IBTA C9-88) */
  if (length == 0) return &nothing;
  struct key *key = find_key(deviceOf(responder->verbs.context), rkey);
  if (!key || !key->valid || key->pd != responder->verbs.pd) return NULL;
  if (key->owner && key->owner != responder) return NULL;
  if ((key->access & access) != access) return NULL;
  if (((int)responder->attr.qp_access_flags & access) != access) return NULL;
  return within(key, addr, length);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access) {
  struct device *device = deviceOf(pd->context);
  int error = injected("ibv_reg_mr_iova");
  const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  bool rights = !(access & remote) || (access & IBV_ACCESS_LOCAL_WRITE);
  bool congruent = (uintptr_t)addr % PAGE == iova % PAGE && iova + length >= iova;
  if (!error && (!rights || !congruent || length == 0)) error = EINVAL;
  struct region *mr = error ? NULL : calloc(1, sizeof(*mr));
  if (!error && !mr) error = ENOMEM;
  struct key *key = NULL;
  pthread_mutex_lock(&device->lock);
  if (!error) error = alloc_key(device, &key);
  if (!error) {
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
  }
  pthread_mutex_unlock(&device->lock);
  if (!error) return &mr->verbs;
  free(mr);
  errno = error;
  return NULL;
}

int ibv_dereg_mr(struct ibv_mr *verbs) {
  struct device *device = deviceOf(verbs->context);
  struct region *mr = (struct region *)verbs;
  int error = injected("ibv_dereg_mr");
  pthread_mutex_lock(&device->lock);
  if (!error && mr->windows > 0) error = EBUSY;
  if (!error) {
    find_key(device, verbs->lkey)->kind = KEY_FREE;
    ((struct pd *)verbs->pd)->users--;
  }
  pthread_mutex_unlock(&device->lock);
  if (!error) free(mr);
  return error;
}

struct ibv_mw *window_alloc(struct ibv_pd *pd, enum ibv_mw_type type) {
  struct device *device = deviceOf(pd->context);
  int error = injected("ibv_alloc_mw");
  if (!error && type != IBV_MW_TYPE_2) error = EOPNOTSUPP;
  struct window *mw = error ? NULL : calloc(1, sizeof(*mw));
  if (!error && !mw) error = ENOMEM;
  struct key *key = NULL;
  pthread_mutex_lock(&device->lock);
  if (!error) error = alloc_key(device, &key);
  if (!error) {
    key->kind = KEY_WINDOW;
    key->pd = pd;
    mw->verbs = (struct ibv_mw){pd->context, pd, key->value, 0, type};
    ((struct pd *)pd)->users++;
  }
  pthread_mutex_unlock(&device->lock);
  if (!error) return &mw->verbs;
  free(mw);
  errno = error;
  return NULL;
}

static void unbind(struct key *key) {
  if (key->valid) key->region->windows--;
  key->valid = false;
  key->owner = NULL;
}

int window_dealloc(struct ibv_mw *verbs) {
  struct device *device = deviceOf(verbs->context);
  int error = injected("ibv_dealloc_mw");
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  struct key *key = &device->keys[verbs->rkey >> 8];
  unbind(key);
  key->kind = KEY_FREE;
  ((struct pd *)verbs->pd)->users--;
  pthread_mutex_unlock(&device->lock);
  free(verbs);
  return 0;
}

/* A type 2B bind (IBTA 10.6.7.2): an invalid window gets the new variant of its key. */
bool window_bind(struct qp *qp, const struct ibv_send_wr *wr) {
  struct device *device = deviceOf(qp->verbs.context);
  const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
  struct key *window = &device->keys[wr->bind_mw.mw->rkey >> 8];
  struct key *region = info->mr ? find_key(device, info->mr->lkey) : NULL;
  if (!region || region->pd != qp->verbs.pd || window->pd != qp->verbs.pd) return false;
  if (window->valid || wr->bind_mw.rkey >> 8 != window->value >> 8) return false;
  if (!(region->access & IBV_ACCESS_MW_BIND)) return false;
  uint8_t *bytes = within(region, info->addr, info->length);
  if (!bytes || info->length == 0) return false;
  window->value = wr->bind_mw.rkey;
  window->start = info->addr;
  window->length = info->length;
  window->bytes = bytes;
  window->access = (int)info->mw_access_flags;
  window->region = region->region;
  window->owner = qp;
  window->valid = true;
  wr->bind_mw.mw->rkey = window->value;
  region->region->windows++;
  return true;
}

bool window_invalidate(struct qp *qp, uint32_t rkey) {
  struct key *key = find_key(deviceOf(qp->verbs.context), rkey);
  if (!key || key->kind != KEY_WINDOW || !key->valid || key->owner != qp) return false;
  unbind(key);
  return true;
}
