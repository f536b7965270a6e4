// Memory that packets are gathered from and placed into, by region number.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <vector>

namespace dapl {

class RegionTable {
 public:
  /// Keeps the view (and so its memory) alive. @returns the region number
  uint32_t add(napi_env env, napi_value bytes);
  /// @returns false for a number that is not in use
  bool remove(napi_env env, uint32_t region);
  void clear(napi_env env);

  /// To be called once at the start of each port call: JavaScript may have detached memory since.
  void beginCall(napi_env env) {
    env_ = env;
    call_++;
  }
  /// The address of a range, or nullptr when it is not wholly inside a live region.
  uint8_t* resolve(uint32_t region, uint64_t offset, uint64_t length);

 private:
  struct Region {
    napi_ref view = nullptr;
    uint8_t* data = nullptr;
    uint64_t length = 0;
    uint64_t checkedInCall = 0;
  };
  bool isAlive(Region& region);

  napi_env env_ = nullptr;
  uint64_t call_ = 0;
  std::vector<Region> regions_;
  std::vector<uint32_t> free_;
};

inline uint8_t* RegionTable::resolve(uint32_t number, uint64_t offset, uint64_t length) {
  if (number >= regions_.size()) return nullptr;
  Region& region = regions_[number];
  if (offset > region.length || length > region.length - offset) return nullptr;
  if (region.checkedInCall != call_ && !isAlive(region)) return nullptr;
  return region.data + offset;
}

}  // namespace dapl
