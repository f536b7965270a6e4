#pragma once

#include <node_api.h>

// umad*: what providers/verbs/mad-native.ts declares.
void registerUmad(napi_env env, napi_value exports);
