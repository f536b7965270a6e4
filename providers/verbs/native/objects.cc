// Protection domains, regions, windows and address handles. A call that makes something returns its
// number, or -errno; the others return errno or 0.
#include <cstring>

#include "memory/backing_store.h"
#include "instance.h"

namespace {

// The least page that a kernel has: what does not agree modulo this is refused by every one.
constexpr uint64_t PAGE_BYTES = 4096;

double allocPd(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  if (!device) return -EINVAL;
  ibv_pd* verbs = instance.verbs.ibv_alloc_pd(device->context);
  if (!verbs) return -failure();
  auto* pd = new Pd{device};
  pd->verbs = verbs;
  device->children++;
  return pd->number = instance.pds.add(pd);
}
NUMBER_CALL(allocPd)

int destroy(Instance& instance, Pd* pd) {
  if (!pd) return EINVAL;
  if (pd->children > 0) return EBUSY;
  if (const int error = errnoOf(instance.verbs.ibv_dealloc_pd(pd->verbs))) return error;
  pd->device->children--;
  instance.pds.remove(pd->number);
  delete pd;
  return 0;
}

double deallocPd(const Args& args, Instance& instance) {
  return destroy(instance, instance.pds.at(args.u32(0)));
}
NUMBER_CALL(deallocPd)

// At an address of its own choice where the library can, else at the memory's.
ibv_mr* registerAt(const Verbs& verbs, Pd& pd, void* address, size_t length, uint64_t iova,
                   int access) {
  if (iova == reinterpret_cast<uintptr_t>(address)) {
    return verbs.ibv_reg_mr(pd.verbs, address, length, access);
  }
  if ((iova - reinterpret_cast<uintptr_t>(address)) % PAGE_BYTES != 0) {
    errno = EINVAL;
    return nullptr;
  }
  if (verbs.ibv_reg_mr_iova) {
    return verbs.ibv_reg_mr_iova(pd.verbs, address, length, iova, access);
  }
  errno = EOPNOTSUPP;
  return nullptr;
}

// (pd, memory, access, iova or undefined, out: lkey, rkey, iova lo, iova hi)
double regMr(const Args& args, Instance& instance) {
  Pd* pd = instance.pds.at(args.u32(0));
  size_t length = 0;
  void* address = args.memory(1, &length);
  uint32_t* out = args.words(4);
  if (!pd || !address || !out) return -EINVAL;
  const uint64_t iova = args.has(3) ? args.u64(3) : reinterpret_cast<uintptr_t>(address);
  const int access = static_cast<int>(args.u32(2));
  ibv_mr* mr = registerAt(instance.verbs, *pd, address, length, iova, access);
  if (!mr) return -failure();
  out[0] = mr->lkey;
  out[1] = mr->rkey;
  out[2] = static_cast<uint32_t>(iova);
  out[3] = static_cast<uint32_t>(iova >> 32);
  pd->device->tables.regionsByLkey[mr->lkey] = mr;
  pd->children++;
  auto* region = new Region{pd};
  region->verbs = mr;
  region->memory = args.keep(1);
  region->store = backingStoreOf(args.env, args.values[1]);
  return region->number = instance.regions.add(region);
}
NUMBER_CALL(regMr)

int destroy(Instance& instance, Region* region) {
  if (!region) return EINVAL;
  rings::Tables& tables = region->pd->device->tables;
  const uint32_t lkey = region->verbs->lkey;
  if (const int error = errnoOf(instance.verbs.ibv_dereg_mr(region->verbs))) {
    // What drivers say of a region that a window is bound to differs.
    for (const rings::Window* window : tables.windows.items) {
      if (window && window->regionLkey == lkey && error == EINVAL) return EBUSY;
    }
    return error;
  }
  tables.regionsByLkey.erase(lkey);
  region->pd->children--;
  release(instance, region->memory);
  instance.regions.remove(region->number);
  delete region;
  return 0;
}

double deregMr(const Args& args, Instance& instance) {
  return destroy(instance, instance.regions.at(args.u32(0)));
}
NUMBER_CALL(deregMr)

struct BoundWindow : rings::Window {
  Pd* pd;
};

// (pd, type)
double allocMw(const Args& args, Instance& instance) {
  Pd* pd = instance.pds.at(args.u32(0));
  if (!pd) return -EINVAL;
  const ibv_context_ops& ops = pd->device->context->ops;
  if (!ops.alloc_mw) return -EOPNOTSUPP;
  ibv_mw* mw = ops.alloc_mw(pd->verbs, static_cast<ibv_mw_type>(args.u32(1)));
  if (!mw) return -failure();
  auto* window = new BoundWindow();
  window->verbs = mw;
  window->rkey = mw->rkey;
  window->pd = pd;
  pd->children++;
  return pd->device->tables.windows.add(window);
}
NUMBER_CALL(allocMw)

rings::Window* windowAt(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  return device ? device->tables.windows.at(args.u32(1)) : nullptr;
}

// (device, window): 0 is no key
double mwRkey(const Args& args, Instance& instance) {
  const rings::Window* window = windowAt(args, instance);
  return window ? window->rkey : 0;
}
NUMBER_CALL(mwRkey)

int destroyWindow(Device& device, uint32_t handle) {
  auto* window = static_cast<BoundWindow*>(device.tables.windows.at(handle));
  if (!window) return EINVAL;
  if (const int error = errnoOf(device.context->ops.dealloc_mw(window->verbs))) return error;
  window->pd->children--;
  device.tables.windows.remove(handle);
  delete window;
  return 0;
}

// (device, window)
double deallocMw(const Args& args, Instance& instance) {
  return windowAt(args, instance) ? destroyWindow(*instance.devices.at(args.u32(0)), args.u32(1))
                                  : EINVAL;
}
NUMBER_CALL(deallocMw)

// (pd, gid, words: index of the local GID, hop limit, traffic class, flow label, port)
double createAh(const Args& args, Instance& instance) {
  Pd* pd = instance.pds.at(args.u32(0));
  size_t length = 0;
  const void* gid = args.memory(1, &length);
  if (!pd || !gid || length != 16) return -EINVAL;
  const auto* words = static_cast<const uint32_t*>(args.memory(2, &length));
  if (!words || length < 5 * sizeof(uint32_t)) return -EINVAL;
  ibv_ah_attr attr = {};
  memcpy(attr.grh.dgid.raw, gid, 16);
  attr.is_global = 1;
  attr.grh.sgid_index = static_cast<uint8_t>(words[0]);
  attr.grh.hop_limit = static_cast<uint8_t>(words[1]);
  attr.grh.traffic_class = static_cast<uint8_t>(words[2]);
  attr.grh.flow_label = words[3];
  attr.port_num = static_cast<uint8_t>(words[4]);
  ibv_ah* ah = instance.verbs.ibv_create_ah(pd->verbs, &attr);
  if (!ah) return -failure();
  pd->children++;
  return pd->device->tables.addressHandles.add(ah);
}
NUMBER_CALL(createAh)

int destroyHandle(Instance& instance, Pd& pd, uint32_t handle) {
  ibv_ah* ah = pd.device->tables.addressHandles.at(handle);
  if (!ah || ah->pd != pd.verbs) return EINVAL;
  if (const int error = errnoOf(instance.verbs.ibv_destroy_ah(ah))) return error;
  pd.device->tables.addressHandles.remove(handle);
  pd.children--;
  return 0;
}

// (pd it was made in, handle)
double destroyAh(const Args& args, Instance& instance) {
  Pd* pd = instance.pds.at(args.u32(0));
  return pd ? destroyHandle(instance, *pd, args.u32(1)) : EINVAL;
}
NUMBER_CALL(destroyAh)

}  // namespace

void reopenWindows(const Qp& qp) {
  const ibv_context_ops& ops = qp.device->context->ops;
  for (rings::Window* window : qp.device->tables.windows.items) {
    if (!window || window->holder != &qp) continue;
    ibv_mw* old = window->verbs;
    ibv_mw* fresh = ops.alloc_mw(old->pd, old->type);
    if (!fresh) continue;
    if (ops.dealloc_mw(old) != 0) {
      ops.dealloc_mw(fresh);
      continue;
    }
    window->verbs = fresh;
    window->rkey = fresh->rkey;
    window->regionLkey = 0;
    window->holder = nullptr;
  }
}

void destroyMemory(Device& device) {
  Instance& instance = *device.instance;
  for (Pd* pd : instance.pds.items) {
    if (!pd || pd->device != &device) continue;
    const size_t handles = device.tables.addressHandles.items.size();
    for (uint32_t i = 1; i < handles; i++) destroyHandle(instance, *pd, i);
  }
  for (uint32_t i = 1; i < device.tables.windows.items.size(); i++) destroyWindow(device, i);
  for (Region* region : instance.regions.items) {
    if (region && region->pd->device == &device) destroy(instance, region);
  }
  for (Pd* pd : instance.pds.items) {
    if (pd && pd->device == &device) destroy(instance, pd);
  }
}

void registerObjects(napi_env env, napi_value exports, Instance& instance) {
  EXPORT_CALL(allocPd) EXPORT_CALL(deallocPd) EXPORT_CALL(regMr) EXPORT_CALL(deregMr)
  EXPORT_CALL(allocMw) EXPORT_CALL(mwRkey) EXPORT_CALL(deallocMw)
  EXPORT_CALL(createAh) EXPORT_CALL(destroyAh)
}
