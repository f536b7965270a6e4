/* Memory windows: type 1, bound by a call, and type 2B, bound by a work request (IBTA 10.6.7.2). */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

struct ibv_mw *window_alloc(struct ibv_pd *pd, enum ibv_mw_type type) {
  struct adapter *adapter = adapterOf(pd->context);
  int error = refused(pd->context, "ibv_alloc_mw");
  unsigned needed = type == IBV_MW_TYPE_1 ? FAKE_VERBS_MW_TYPE_1 : FAKE_VERBS_MW_TYPE_2B;
  if (!error && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) error = EINVAL;
  if (!error && !(adapter->features & needed)) error = EOPNOTSUPP;
  struct ibv_mw *mw = error ? NULL : calloc(1, sizeof(*mw));
  if (!mw) return failed(error ? error : ENOMEM);
  pthread_mutex_lock(&fakeLock);
  struct key *key = alloc_key(adapter);
  if (key) {
    key->kind = KEY_WINDOW;
    key->pd = pd;
    *mw = (struct ibv_mw){pd->context, pd, key->value, 0, type};
    ((struct pd *)pd)->users++;
    count(pd->context, KIND_MW, 1);
  }
  pthread_mutex_unlock(&fakeLock);
  if (key) return mw;
  free(mw);
  return failed(ENOMEM);
}

static void unbind(struct key *key) {
  if (key->valid) key->region->windows--;
  if (key->owner) key->owner->windows--;
  key->valid = false;
  key->owner = NULL;
}

static struct key *key_of(struct ibv_mw *mw) {
  return &adapterOf(mw->context)->keys[mw->rkey >> 8 & 0xffff];
}

int window_dealloc(struct ibv_mw *verbs) {
  int error = injected("ibv_dealloc_mw");
  if (error) return error;
  pthread_mutex_lock(&fakeLock);
  struct key *key = key_of(verbs);
  unbind(key);
  key->kind = KEY_FREE;
  ((struct pd *)verbs->pd)->users--;
  count(verbs->context, KIND_MW, -1);
  pthread_mutex_unlock(&fakeLock);
  free(verbs);
  return 0;
}

/* The part of the region that the window would open; NULL when it may not. */
static uint8_t *granted(struct qp *qp, const struct ibv_mw_bind_info *info, struct key **region) {
  *region = info->mr ? find_key(qp->adapter, info->mr->lkey) : NULL;
  if (!*region || (*region)->pd != qp->verbs.pd) return NULL;
  if (!((*region)->access & IBV_ACCESS_MW_BIND)) return NULL;
  const int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  bool wants = (int)info->mw_access_flags & writes;
  if (wants && !((*region)->access & IBV_ACCESS_LOCAL_WRITE)) return NULL;
  return within(*region, info->addr, info->length);
}

static void fill(struct key *window, const struct ibv_mw_bind_info *info, struct key *region,
                 uint8_t *bytes) {
  window->start = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
  window->length = info->length;
  window->bytes = bytes;
  window->access = (int)info->mw_access_flags;
  window->region = region->region;
  window->valid = true;
  region->region->windows++;
}

/* An invalid window gets the new variant of its key. A type 1 window has a bind of its own. */
static enum ibv_wc_status bind_type2(struct qp *qp, const struct ibv_send_wr *wr) {
  const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
  struct key *window = key_of(wr->bind_mw.mw), *region;
  if (window->pd != qp->verbs.pd || window->valid) return IBV_WC_MW_BIND_ERR;
  if (wr->bind_mw.rkey >> 8 != window->value >> 8) return IBV_WC_MW_BIND_ERR;
  uint8_t *bytes = granted(qp, info, &region);
  if (!bytes || info->length == 0) return IBV_WC_MW_BIND_ERR;
  fill(window, info, region, bytes);
  window->value = wr->bind_mw.rkey;
  window->owner = qp;
  qp->windows++;
  wr->bind_mw.mw->rkey = window->value;
  return IBV_WC_SUCCESS;
}

/* Any number of times; the call has chosen the key already. Length 0 unbinds. */
static enum ibv_wc_status bind_type1(struct qp *qp, const struct ibv_send_wr *wr) {
  const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
  struct key *window = key_of(wr->bind_mw.mw), *region;
  if (window->pd != qp->verbs.pd) return IBV_WC_MW_BIND_ERR;
  uint8_t *bytes = info->length ? granted(qp, info, &region) : NULL;
  if (info->length && !bytes) return IBV_WC_MW_BIND_ERR;
  unbind(window);
  window->value = wr->bind_mw.rkey;
  if (bytes) fill(window, info, region, bytes);
  return IBV_WC_SUCCESS;
}

enum ibv_wc_status window_bind(struct qp *qp, const struct ibv_send_wr *wr) {
  return wr->bind_mw.mw->type == IBV_MW_TYPE_1 ? bind_type1(qp, wr) : bind_type2(qp, wr);
}

enum ibv_wc_status window_invalidate(struct qp *qp, uint32_t rkey) {
  struct key *key = find_key(qp->adapter, rkey);
  if (!key || key->kind != KEY_WINDOW) return IBV_WC_LOC_QP_OP_ERR;
  if (!key->valid || key->owner != qp) return IBV_WC_MW_BIND_ERR;
  unbind(key);
  return IBV_WC_SUCCESS;
}

void windows_release(struct qp *qp) {
  for (uint32_t i = 0; i < MAX_KEYS && qp->windows > 0; i++) {
    struct key *key = &qp->adapter->keys[i];
    if (key->kind == KEY_WINDOW && key->owner == qp) unbind(key);
  }
}

int window_bind_type1(struct ibv_qp *verbs, struct ibv_mw *mw, struct ibv_mw_bind *bind) {
  int error = refused(verbs->context, "ibv_bind_mw");
  if (error) return error;
  if (mw->type != IBV_MW_TYPE_1 || verbs->pd != mw->pd) return EINVAL;
  struct ibv_send_wr wr = {
      .wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags};
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
  wr.bind_mw.bind_info = bind->bind_info;
  pthread_mutex_lock(&fakeLock);
  error = post_one_send(qpOf(verbs), &wr);
  if (!error) mw->rkey = wr.bind_mw.rkey;
  kick();
  pthread_mutex_unlock(&fakeLock);
  return error;
}
