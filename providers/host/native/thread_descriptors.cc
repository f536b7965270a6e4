#include "thread_descriptors.h"

#include <unistd.h>

#include <map>
#include <mutex>
#include <set>

namespace dapl {
namespace {

std::mutex mutex;
/// Of all threads, by their environments. Never destroyed: threads may outlive the main one.
std::map<napi_env, std::set<int>>& kept() {
  static auto* const all = new std::map<napi_env, std::set<int>>;
  return *all;
}

void onThreadEnd(void* data) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = kept().find(static_cast<napi_env>(data));
  for (const int descriptor : found->second) close(descriptor);
  kept().erase(found);
}

}  // namespace

void keepDescriptor(napi_env env, int descriptor) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, isFirst] = kept().try_emplace(env);
  if (isFirst) napi_add_env_cleanup_hook(env, onThreadEnd, env);
  found->second.insert(descriptor);
}

void releaseKept(napi_env env, int descriptor) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = kept().find(env);
  if (found != kept().end()) found->second.erase(descriptor);
}

void closeKept(napi_env env, int descriptor) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = kept().find(env);
  if (found != kept().end() && found->second.erase(descriptor) > 0) close(descriptor);
}

}  // namespace dapl
