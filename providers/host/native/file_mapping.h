// Files as memory that can be registered: for the addons of all providers.
#pragma once

#include <node_api.h>

namespace dapl {

/// mapFile(fd, offset, length or 0 for the rest, shared): a Uint8Array over the pages of the file
napi_value mapFile(napi_env env, napi_callback_info info);

}  // namespace dapl
