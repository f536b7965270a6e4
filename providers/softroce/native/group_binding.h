// What processes that share an address need of the system, as JavaScript functions:
// providers/softroce/group-sockets.ts has their contracts.
#pragma once

#include "napi_helpers.h"

namespace dapl {

extern const Method kGroupFunctions[];
extern const size_t kGroupFunctionCount;

}  // namespace dapl
