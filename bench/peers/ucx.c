// UCX (UCP): tagged messages and one-sided put and get. The variant is the transport: tcp or
// posix.

#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "peer.h"

struct description {
  uint64_t address;
  uint32_t key_length, worker_length;
  uint8_t rest[4000];  // packed key, then worker address
};

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static ucp_mem_h region;
static ucp_rkey_h remote_key;
static uint64_t remote_address;
static uint8_t *memory;
static size_t bytes;
static int finished, arrived;

static void check(const char *what, ucs_status_t status) {
  if (status != UCS_OK) peer_fail(what, ucs_status_string(status));
}

static void set_up(ucp_config_t *config, const char *name, const char *value) {
  check(name, ucp_config_modify(config, name, value));
}

static void ucx_open(const struct peer_options *options, uint8_t *room, int slots) {
  memory = room;
  bytes = options->bytes;
  ucp_config_t *config;
  check("ucp_config_read", ucp_config_read(NULL, NULL, &config));
  set_up(config, "TLS", options->variant);
  set_up(config, "NET_DEVICES", "lo");
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                         .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
  check("ucp_init", ucp_init(&params, config, &context));
  ucp_config_release(config);
  ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                .thread_mode = UCS_THREAD_MODE_SINGLE};
  check("ucp_worker_create", ucp_worker_create(context, &single, &worker));
  ucp_mem_map_params_t map = {
      .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
      .address = memory,
      .length = bytes * (size_t)slots};
  check("ucp_mem_map", ucp_mem_map(context, &map, &region));
}

static void ucx_describe(struct peer_name *own) {
  static struct description description;
  void *key;
  ucp_address_t *address;
  size_t key_length, worker_length;
  check("ucp_rkey_pack", ucp_rkey_pack(context, region, &key, &key_length));
  check("ucp_worker_get_address", ucp_worker_get_address(worker, &address, &worker_length));
  if (key_length + worker_length > sizeof description.rest) peer_fail("ucx", "a long address");
  description.address = (uint64_t)(uintptr_t)memory;
  description.key_length = (uint32_t)key_length;
  description.worker_length = (uint32_t)worker_length;
  memcpy(description.rest, key, key_length);
  memcpy(description.rest + key_length, address, worker_length);
  memcpy(own->bytes, &description, sizeof description);
  own->length = sizeof description;
  ucp_rkey_buffer_release(key);
  ucp_worker_release_address(worker, address);
}

static void ucx_connect(const struct peer_name *name) {
  static struct description other;
  memcpy(&other, name->bytes, sizeof other);
  remote_address = other.address;
  ucp_ep_params_t params = {
      .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
      .address = (const ucp_address_t *)(other.rest + other.key_length)};
  check("ucp_ep_create", ucp_ep_create(worker, &params, &endpoint));
  check("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(endpoint, other.rest, &remote_key));
}

static void on_done(void *request, ucs_status_t status, void *unused) {
  (void)unused;
  check("completion", status);
  finished++;
  ucp_request_free(request);
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *unused) {
  (void)info;
  (void)unused;
  check("receive", status);
  arrived++;
  ucp_request_free(request);
}

static const ucp_request_param_t when_done = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
                                              .cb = {.send = on_done}};
static const ucp_request_param_t when_received = {
    .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
    .cb = {.recv = on_received}};

static bool started(const char *what, ucs_status_ptr_t request) {
  if (UCS_PTR_IS_ERR(request)) check(what, UCS_PTR_STATUS(request));
  if (request == NULL) finished++;  // complete already
  return true;
}

static uint8_t *slot_of(int slot) { return memory + bytes * (size_t)slot; }

static bool ucx_send(int slot) {
  return started("send", ucp_tag_send_nbx(endpoint, slot_of(slot), bytes, 1, &when_done));
}

static bool ucx_receive(int slot) {
  ucs_status_ptr_t request =
      ucp_tag_recv_nbx(worker, slot_of(slot), bytes, 1, UINT64_MAX, &when_received);
  if (UCS_PTR_IS_ERR(request)) check("receive", UCS_PTR_STATUS(request));
  return true;
}

static bool ucx_write(int slot) {
  const uint64_t to = remote_address + bytes * (size_t)slot;
  return started("put", ucp_put_nbx(endpoint, slot_of(slot), bytes, to, remote_key, &when_done));
}

static bool ucx_read(int slot) {
  const uint64_t from = remote_address + bytes * (size_t)slot;
  return started("get", ucp_get_nbx(endpoint, slot_of(slot), bytes, from, remote_key, &when_done));
}

static void ucx_poll(int *done, int *received) {
  ucp_worker_progress(worker);
  *done += finished;
  *received += arrived;
  finished = arrived = 0;
}

static void ucx_flush(void) {
  int done = 0, received = 0;
  started("flush", ucp_ep_flush_nbx(endpoint, &when_done));
  while (done == 0) ucx_poll(&done, &received);
}

const struct peer_library peer_library = {
    .open = ucx_open,
    .describe = ucx_describe,
    .connect = ucx_connect,
    .send = ucx_send,
    .receive = ucx_receive,
    .write = ucx_write,
    .read = ucx_read,
    .poll = ucx_poll,
    .flush = ucx_flush,
};
