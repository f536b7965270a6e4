#include "tables/region_table.h"

namespace dapl {

uint32_t RegionTable::add(napi_env env, napi_value bytes) {
  Region region;
  void* data = nullptr;
  size_t length = 0;
  napi_get_typedarray_info(env, bytes, nullptr, &length, &data, nullptr, nullptr);
  napi_create_reference(env, bytes, 1, &region.view);
  static uint8_t nothing;  // an empty range has an address, too
  region.data = data ? static_cast<uint8_t*>(data) : &nothing;
  region.length = length;
  if (free_.empty()) {
    regions_.push_back(region);
    return static_cast<uint32_t>(regions_.size() - 1);
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  regions_[number] = region;
  return number;
}

bool RegionTable::remove(napi_env env, uint32_t number) {
  if (number >= regions_.size() || !regions_[number].view) return false;
  napi_delete_reference(env, regions_[number].view);
  regions_[number] = Region();
  free_.push_back(number);
  return true;
}

void RegionTable::clear(napi_env env) {
  for (Region& region : regions_) {
    if (region.view) napi_delete_reference(env, region.view);
  }
  regions_.clear();
  free_.clear();
}

// A strong reference keeps memory from being collected, not from being transferred away; memory
// that was detached shows as an empty view. Only JavaScript can do that, so once a call is enough.
bool RegionTable::isAlive(Region& region) {
  if (!region.view) return false;
  napi_handle_scope scope;
  napi_open_handle_scope(env_, &scope);
  napi_value view = nullptr;
  size_t length = 0;
  napi_get_reference_value(env_, region.view, &view);
  napi_get_typedarray_info(env_, view, nullptr, &length, nullptr, nullptr, nullptr);
  napi_close_handle_scope(env_, scope);
  if (length < region.length) return false;
  region.checkedInCall = call_;
  return true;
}

}  // namespace dapl
