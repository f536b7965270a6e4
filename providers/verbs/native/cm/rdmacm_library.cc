// Looking librdmacm up, and what one environment has of it.
#include "cm/rdmacm.h"

namespace rdmacm {

uint32_t State::newNumber() {
  while (nextNumber == 0 || nextNumber > INT32_MAX || ids.count(nextNumber) ||
         channels.count(nextNumber)) {
    nextNumber = nextNumber > INT32_MAX ? 1 : nextNumber + 1;
  }
  return nextNumber++;
}

Channel* State::channelAt(uint32_t number) const {
  const auto found = channels.find(number);
  return found == channels.end() ? nullptr : found->second;
}

namespace {

void end(void* data) {
  auto* state = static_cast<State*>(data);
  closeAll(*state);
  delete state;
}

}  // namespace

}  // namespace rdmacm

// Adds the calls; their names begin with `cm`.
void registerRdmacm(napi_env env, napi_value exports, Instance& instance) {
  auto* state = new rdmacm::State();
  state->instance = &instance;
#define SYMBOL(name) REQUIRED_SYMBOL(state->library, name)
  instance.libraries.push_back({"rdmacm", "librdmacm.so.1", {RDMACM_FUNCTIONS(SYMBOL)}});
#undef SYMBOL
  instance.cleanups.push_back({rdmacm::end, state});
  rdmacm::exportChannels(env, exports, state);
  rdmacm::exportCalls(env, exports, state);
}
