// Memory to be registered, in pages of its own: for the addons of all providers.
#pragma once

#include <node_api.h>

namespace dapl {

/// allocatePages(length): an ArrayBuffer of zeros that begins with a huge page, in huge pages where
/// the system has them to give; undefined where it cannot be had
napi_value allocatePages(napi_env env, napi_callback_info info);

}  // namespace dapl
