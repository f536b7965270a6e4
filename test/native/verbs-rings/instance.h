// What one Node environment holds: the library, its objects by number, and the watchers.
#pragma once

#include <node_api.h>
#include <uv.h>

#include <vector>

#include "fake_verbs.h"
#include "rings.h"

// Every function of the library that is looked up by name.
#define LIBRARY_FUNCTIONS(X)                                                              \
  X(ibv_get_device_list) X(ibv_free_device_list) X(ibv_open_device) X(ibv_close_device)   \
  X(ibv_get_async_event) X(ibv_ack_async_event) X(ibv_alloc_pd) X(ibv_dealloc_pd)         \
  X(ibv_reg_mr_iova) X(ibv_dereg_mr) X(ibv_create_comp_channel)                           \
  X(ibv_destroy_comp_channel) X(ibv_create_cq) X(ibv_resize_cq) X(ibv_destroy_cq)         \
  X(ibv_get_cq_event) X(ibv_ack_cq_events) X(ibv_create_srq) X(ibv_modify_srq)            \
  X(ibv_destroy_srq) X(ibv_create_qp) X(ibv_modify_qp) X(ibv_query_qp) X(ibv_destroy_qp)  \
  X(fake_verbs_set_mode) X(fake_verbs_progress) X(fake_verbs_inject)                      \
  X(fake_verbs_clear_injections)

struct Library {
#define MEMBER(name) decltype(&::name) name = nullptr;
  LIBRARY_FUNCTIONS(MEMBER)
#undef MEMBER
};

// Objects by number; 0 is none.
template <typename T>
struct Table {
  std::vector<T*> items{nullptr};

  uint32_t add(T* item) {
    for (uint32_t i = 1; i < items.size(); i++) {
      if (!items[i]) {
        items[i] = item;
        return i;
      }
    }
    items.push_back(item);
    return static_cast<uint32_t>(items.size() - 1);
  }
  T* at(uint32_t number) const { return number < items.size() ? items[number] : nullptr; }
};

struct Region {
  ibv_mr* verbs;
  napi_ref memory;
};

struct Cq : rings::CompletionQueue {
  uint32_t number;
  napi_ref memory;
};

struct Qp : rings::QueuePair {
  uint32_t number;
  napi_ref memory[2];
  rings::Queue sendQueue, receiveQueue;
};

struct Srq {
  ibv_srq* verbs;
  uint32_t number;
  napi_ref memory[2];
  rings::Queue queue;
};

struct Instance {
  napi_env env;
  Library library;
  ibv_context* context = nullptr;
  ibv_comp_channel* channel = nullptr;
  uv_poll_t* channelWatch = nullptr;
  uv_poll_t* asyncWatch = nullptr;
  napi_async_context async = nullptr;
  napi_ref onNotify = nullptr;  // (cq) => void
  napi_ref onEvent = nullptr;   // (type, number of the object or 0) => void
  rings::Tables tables;
  Table<ibv_pd> pds;
  Table<Region> regions;
  Table<ibv_mw> windows;
  Table<Cq> cqs;
  Table<Qp> qps;
  Table<Srq> srqs;
};

// The arguments of one call. Numbers are u32, memory is a typed array.
struct Args {
  napi_env env;
  Instance* instance;
  napi_value values[24];

  Args(napi_env env, napi_callback_info info);
  uint32_t u32(int i) const;
  bool has(int i) const;
  void* memory(int i, size_t* lengthBytes = nullptr) const;
  napi_ref keep(int i) const;
};

napi_value number(napi_env env, double value);

// watch.cc: completion and event file descriptors on the event loop.
int startWatching(Instance& instance);
void stopWatching(Instance& instance);

// objects.cc: adds the calls that are not on the data path.
void exportObjects(napi_env env, napi_value exports, Instance* instance);
void exportFunction(napi_env env, napi_value exports, const char* name, napi_callback callback,
                    Instance* instance);
