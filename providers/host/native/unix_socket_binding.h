// Unix sockets for JavaScript, watched by the event loop of the thread that made them.
#pragma once

#include <node_api.h>

namespace dapl {

/// listenUnix(name, backlog): { accept, watch, close }
napi_value listenUnix(napi_env env, napi_callback_info info);
/// connectUnix(name): { send, receive, identity, watch, release, close }
napi_value connectUnix(napi_env env, napi_callback_info info);

}  // namespace dapl
