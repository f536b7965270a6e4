// Memory that processes of one user share by a name. It is a memfd, and nothing of it is in the
// file system: the name is that of a Unix socket (abstract) by which a process that has the memory
// hands it to others. It lives until the last process that has it lets go; when the one that hands
// it out ends, another one takes its place.
#pragma once

#include <node_api.h>

namespace dapl {

/// shareMemory(name, bytes): an ArrayBuffer over memory that all callers of the user share.
/// Throws Error with `code`: EINVAL (it has another size), EACCES (another user's), ETIMEDOUT (no
/// answer from the process that has it), or the system's.
napi_value shareMemory(napi_env env, napi_callback_info info);

/// memoryDescriptor(name): of memory that this process has by that name, and as long as it has it.
/// Throws Error with `code` ENOENT: it has none.
napi_value memoryDescriptor(napi_env env, napi_callback_info info);

}  // namespace dapl
