/* What only a fake can do, for tests in JavaScript: this file is an addon as well as a library. */
#include <arpa/inet.h>
#include <node_api.h>
#include <string.h>

#include "internal.h"

enum { MAX_ARGUMENTS = 3 };

struct arguments {
  napi_env env;
  napi_value values[MAX_ARGUMENTS];
};

static struct arguments argumentsOf(napi_env env, napi_callback_info info) {
  struct arguments arguments = {.env = env};
  size_t count = MAX_ARGUMENTS;
  napi_get_cb_info(env, info, &count, arguments.values, NULL, NULL);
  return arguments;
}

static int32_t integerAt(const struct arguments *arguments, int i) {
  int32_t value = 0;
  napi_get_value_int32(arguments->env, arguments->values[i], &value);
  return value;
}

static void textAt(const struct arguments *arguments, int i, char out[64]) {
  size_t length = 0;
  out[0] = 0;
  napi_get_value_string_utf8(arguments->env, arguments->values[i], out, 64, &length);
}

static napi_value number(napi_env env, int64_t value) {
  napi_value result;
  napi_create_int64(env, value, &result);
  return result;
}

/* (switch, value) */
static napi_value set(napi_env env, napi_callback_info info) {
  struct arguments arguments = argumentsOf(env, info);
  int which = integerAt(&arguments, 0);
  if (which >= 0 && which < FAKE_SWITCHES) fake_rdmacm_set(which, integerAt(&arguments, 1));
  return NULL;
}

static napi_value reset(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  fake_rdmacm_reset();
  return NULL;
}

/* (address, device) */
static napi_value addAddress(napi_env env, napi_callback_info info) {
  struct arguments arguments = argumentsOf(env, info);
  char text[64], device[64];
  textAt(&arguments, 0, text);
  textAt(&arguments, 1, device);
  struct sockaddr_in in = {.sin_family = AF_INET};
  struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
  int error = EINVAL;
  if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
    error = fake_rdmacm_add_address((struct sockaddr *)&in, device);
  } else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
    error = fake_rdmacm_add_address((struct sockaddr *)&in6, device);
  }
  return number(env, error);
}

/* (event type, status, device or nothing: all) */
static napi_value raise(napi_env env, napi_callback_info info) {
  struct arguments arguments = argumentsOf(env, info);
  char device[64];
  textAt(&arguments, 2, device);
  fake_rdmacm_raise(integerAt(&arguments, 0), integerAt(&arguments, 1), device[0] ? device : NULL);
  (void)env;
  return NULL;
}

static napi_value live(napi_env env, napi_callback_info info) {
  (void)info;
  return number(env, fake_rdmacm_live());
}

/* (function, nth, errno) */
static napi_value inject(napi_env env, napi_callback_info info) {
  struct arguments arguments = argumentsOf(env, info);
  char name[64];
  textAt(&arguments, 0, name);
  unsigned nth = (unsigned)integerAt(&arguments, 1);
  return number(env, fake_rdmacm_inject(name, nth, integerAt(&arguments, 2)));
}

/* (function) */
static napi_value calls(napi_env env, napi_callback_info info) {
  struct arguments arguments = argumentsOf(env, info);
  char name[64];
  textAt(&arguments, 0, name);
  return number(env, fake_rdmacm_calls(name));
}

static napi_value init(napi_env env, napi_value exports) {
  const struct {
    const char *name;
    napi_callback callback;
  } functions[] = {{"set", set},   {"reset", reset},   {"addAddress", addAddress},
                   {"raise", raise}, {"live", live}, {"inject", inject}, {"calls", calls}};
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
    napi_value function;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].callback, NULL,
                         &function);
    napi_set_named_property(env, exports, functions[i].name, function);
  }
  return exports;
}

NAPI_MODULE(fake_rdmacm, init)
