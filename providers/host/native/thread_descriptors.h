// Descriptors that JavaScript has as numbers: those that it has not closed are closed when its
// thread ends, which a terminated worker does at any moment.
#pragma once

#include <node_api.h>

namespace dapl {

/// The thread's from now on.
void keepDescriptor(napi_env env, int descriptor);
/// The caller's again: what takes it over, or closes it, by itself.
void releaseKept(napi_env env, int descriptor);
/// Closes it, if it is the thread's.
void closeKept(napi_env env, int descriptor);

}  // namespace dapl
