// Prints sizes, offsets, values and types of what rows.inc names, as HEADER declares it. Compiled
// once with a header of ours and once with the distribution's: see abi.test.ts.
#include <cstddef>
#include <cstdio>
#include <typeinfo>

#include HEADER

#define SIZE(type) std::printf(#type ": %zu bytes\n", sizeof(type));
#define MEMBER(type, member)                                               \
  std::printf(#type "." #member ": %zu bytes at %zu\n",                    \
              sizeof(static_cast<type*>(nullptr)->member), offsetof(type, member));
#define VALUE(name) std::printf(#name ": %lld\n", static_cast<long long>(name));
#define CALL(call) std::printf(#call ": %s\n", typeid(decltype(&::call)).name());

int main() {
#include "rows.inc"
}
