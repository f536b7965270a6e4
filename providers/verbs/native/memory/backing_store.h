// The memory of an ArrayBuffer apart from the buffer: a script can take it from a registered one
// (`ArrayBuffer.prototype.transfer`), which Node-API has no means against, and drop it.
#pragma once

#include <node_api.h>

#include <memory>

// What keeps the memory of a typed array while it is held. Null for shared memory, which nothing
// takes away, and with a runtime that is not known: then only the buffer keeps it.
std::shared_ptr<void> backingStoreOf(napi_env env, napi_value typedArray);
