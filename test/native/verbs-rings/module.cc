// The addon: arguments, the library, and the calls of the data path, which take a number and give
// a number.
#include "instance.h"

#include <dlfcn.h>

#include <cerrno>

Args::Args(napi_env env, napi_callback_info info) : env(env), values{} {
  size_t count = 24;
  void* data = nullptr;
  napi_get_cb_info(env, info, &count, values, nullptr, &data);
  instance = static_cast<Instance*>(data);
}

uint32_t Args::u32(int i) const {
  uint32_t value = 0;
  napi_get_value_uint32(env, values[i], &value);
  return value;
}

bool Args::has(int i) const {
  napi_valuetype type = napi_undefined;
  napi_typeof(env, values[i], &type);
  return type != napi_undefined;
}

void* Args::memory(int i, size_t* lengthBytes) const {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  napi_get_typedarray_info(env, values[i], &type, &length, &data, nullptr, nullptr);
  const bool isBytes = type == napi_uint8_array || type == napi_int8_array;
  if (lengthBytes) *lengthBytes = isBytes ? length : length * 4;
  return data;
}

napi_ref Args::keep(int i) const {
  napi_ref reference = nullptr;
  napi_create_reference(env, values[i], 1, &reference);
  return reference;
}

napi_value number(napi_env env, double value) {
  napi_value result;
  napi_create_double(env, value, &result);
  return result;
}

void exportFunction(napi_env env, napi_value exports, const char* name, napi_callback callback,
                    Instance* instance) {
  napi_value function;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, instance, &function);
  napi_set_named_property(env, exports, name, function);
}

namespace {

// One number in, without the rest of Args: this is what a doorbell costs.
Instance* hot(napi_env env, napi_callback_info info, uint32_t* argument) {
  size_t count = 1;
  napi_value value;
  void* data = nullptr;
  napi_get_cb_info(env, info, &count, &value, nullptr, &data);
  napi_get_value_uint32(env, value, argument);
  return static_cast<Instance*>(data);
}

napi_value small(napi_env env, int32_t value) {
  napi_value result;
  napi_create_int32(env, value, &result);
  return result;
}

napi_value postSends(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Instance* instance = hot(env, info, &which);
  Qp* qp = instance->qps.at(which);
  return small(env, qp ? rings::postSends(instance->tables, qp->sendQueue) : EINVAL);
}

napi_value postReceives(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Instance* instance = hot(env, info, &which);
  Qp* qp = instance->qps.at(which);
  return small(env, qp ? rings::postReceives(instance->tables, qp->receiveQueue) : EINVAL);
}

napi_value postShared(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Instance* instance = hot(env, info, &which);
  Srq* srq = instance->srqs.at(which);
  return small(env, srq ? rings::postShared(instance->tables, srq->queue) : EINVAL);
}

napi_value poll(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Instance* instance = hot(env, info, &which);
  Cq* cq = instance->cqs.at(which);
  return small(env, cq ? rings::poll(instance->tables, *cq) : -1);
}

// (cq << 1 | solicitedOnly) => errno
napi_value arm(napi_env env, napi_callback_info info) {
  uint32_t which = 0;
  Instance* instance = hot(env, info, &which);
  Cq* cq = instance->cqs.at(which >> 1);
  if (!cq) return small(env, EINVAL);
  return small(env, cq->verbs->context->ops.req_notify_cq(cq->verbs, which & 1));
}

// (path) => the name of what is missing, or undefined
napi_value load(napi_env env, napi_callback_info info) {
  Args args(env, info);
  char path[4096];
  size_t length = 0;
  napi_get_value_string_utf8(env, args.values[0], path, sizeof(path), &length);
  const char* missing = nullptr;
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) missing = dlerror();
#define LOOK_UP(name)                                                                       \
  if (handle) {                                                                             \
    args.instance->library.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
    if (!args.instance->library.name) missing = #name;                                      \
  }
  LIBRARY_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  args.instance->tables.modifyQp = args.instance->library.ibv_modify_qp;
  napi_value result = nullptr;
  if (missing) napi_create_string_utf8(env, missing, NAPI_AUTO_LENGTH, &result);
  return result;
}

void destroyInstance(napi_env, void* data, void*) { delete static_cast<Instance*>(data); }

napi_value init(napi_env env, napi_value exports) {
  auto* instance = new Instance();
  instance->env = env;
  napi_set_instance_data(env, instance, destroyInstance, nullptr);
  exportFunction(env, exports, "load", load, instance);
  exportFunction(env, exports, "postSends", postSends, instance);
  exportFunction(env, exports, "postReceives", postReceives, instance);
  exportFunction(env, exports, "postShared", postShared, instance);
  exportFunction(env, exports, "poll", poll, instance);
  exportFunction(env, exports, "arm", arm, instance);
  exportObjects(env, exports, instance);
  return exports;
}

}  // namespace

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
