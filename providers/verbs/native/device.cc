// Devices: which there are, opening and closing, what they can do.
#include <endian.h>

#include <cstring>

#include "device_events.h"
#include "instance.h"

namespace {

// Calls it, and once more when it fails: nothing stays that need not. The errno of the first time;
// `*gone` tells how it is.
template <typename Call>
int insist(Call call, bool* gone) {
  const int error = errnoOf(call());
  *gone = error == 0 || errnoOf(call()) == 0;
  return error;
}

}  // namespace

int closeDevice(Device& device) {
  Instance& instance = *device.instance;
  const Verbs& verbs = instance.verbs;
  stopEvents(device);
  int error = 0;
  bool gone = true;
  if (device.channel) {
    error = insist([&] { return verbs.ibv_destroy_comp_channel(device.channel); }, &gone);
    if (error) error = failureOf(1, error);
    if (!gone) return error;
    device.channel = nullptr;
  }
  const int closing = insist([&] { return verbs.ibv_close_device(device.context); }, &gone);
  if (!error) error = closing;
  if (!gone) return error;
  release(instance, device.onNotify);
  release(instance, device.onEvent);
  instance.devices.remove(device.number);
  delete &device;
  return error;
}

// What could not be destroyed keeps its parents; once more, and a failure that was one is over.
void destroyObjects(Device& device) {
  for (int round = 0; round < 2; round++) {
    destroyQueuePairs(device);
    destroySharedReceives(device);
    destroyCompletionQueues(device);
    if (closeXrcDomains) closeXrcDomains(device);
    destroyMemory(device);
    if (device.children == 0) break;
  }
}

namespace {

// () => names, or errno
napi_value listDevices(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  const Verbs& verbs = args.instance().verbs;
  if (!verbs.ibv_get_device_list) return number(env, ENOSYS);
  int count = 0;
  errno = 0;
  ibv_device** list = verbs.ibv_get_device_list(&count);
  if (!list) return number(env, failure());
  napi_value names = nullptr;
  napi_create_array(env, &names);
  for (int i = 0; i < count; i++) {
    napi_set_element(env, names, static_cast<uint32_t>(i),
                     text(env, verbs.ibv_get_device_name(list[i])));
  }
  verbs.ibv_free_device_list(list);
  return names;
}

// `*error` tells why there is none.
ibv_context* openByName(const Verbs& verbs, const std::string& name, int* error) {
  ibv_device** list = verbs.ibv_get_device_list(nullptr);
  if (!list) {
    *error = failureOf(1, failure());
    return nullptr;
  }
  ibv_context* context = nullptr;
  *error = ENODEV;
  for (ibv_device** device = list; *device && !context; device++) {
    if (name != verbs.ibv_get_device_name(*device)) continue;
    errno = 0;
    context = verbs.ibv_open_device(*device);
    *error = failure();
    break;
  }
  verbs.ibv_free_device_list(list);
  return context;
}

// (name, onNotify, onEvent) => device
double openDevice(const Args& args, Instance& instance) {
  const Verbs& verbs = instance.verbs;
  if (!verbs.ibv_open_device) return -ENOSYS;
  int error = 0;
  ibv_context* context = openByName(verbs, args.text(0), &error);
  if (!context) return -error;
  auto* device = new Device(instance);
  device->context = context;
  device->tables.modifyQp = verbs.ibv_modify_qp;
  errno = 0;
  device->channel = verbs.ibv_create_comp_channel(context);
  if (!device->channel) {
    error = failureOf(2, failure());
    verbs.ibv_close_device(context);
    delete device;
    return -error;
  }
  device->onNotify = args.keep(1);
  device->onEvent = args.keep(2);
  device->number = instance.devices.add(device);
  error = startEvents(*device);
  if (error) {
    closeDevice(*device);
    return -failureOf(3, error);
  }
  return device->number;
}
NUMBER_CALL(openDevice)

// (device, by force): without force EBUSY while it has objects; with, they are destroyed first
double closeDevice(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  if (!device) return EINVAL;
  if (args.u32(1)) destroyObjects(*device);
  if (device->children > 0) return EBUSY;
  return closeDevice(*device);
}
NUMBER_CALL(closeDevice)

// (device, alive)
double setAlive(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  if (!device) return EINVAL;
  setEventsAlive(*device, args.u32(1) != 0);
  return 0;
}
NUMBER_CALL(setAlive)

void setNumbers(napi_env env, napi_value object, const ibv_device_attr& attr) {
  const std::pair<const char*, uint32_t> numbers[] = {
      {"vendorId", attr.vendor_id},
      {"vendorPartId", attr.vendor_part_id},
      {"hardwareVersion", attr.hw_ver},
      {"maxQp", attr.max_qp},
      {"maxQpWr", attr.max_qp_wr},
      {"capabilityFlags", attr.device_cap_flags},
      {"maxSge", attr.max_sge},
      {"maxCq", attr.max_cq},
      {"maxCqe", attr.max_cqe},
      {"maxMr", attr.max_mr},
      {"maxPd", attr.max_pd},
      {"maxQpRdAtom", attr.max_qp_rd_atom},
      {"maxQpInitRdAtom", attr.max_qp_init_rd_atom},
      {"atomicCapability", attr.atomic_cap},
      {"maxMw", attr.max_mw},
      {"maxAh", attr.max_ah},
      {"maxMulticastGroups", attr.max_mcast_grp},
      {"maxSrq", attr.max_srq},
      {"maxSrqWr", attr.max_srq_wr},
      {"maxSrqSge", attr.max_srq_sge},
      {"localAckDelay", attr.local_ca_ack_delay},
      {"ports", attr.phys_port_cnt},
  };
  for (const auto& [name, value] : numbers) setProperty(env, object, name, number(env, value));
}

// (device) => its attributes, or errno
napi_value queryDevice(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  Device* device = args.instance().devices.at(args.u32(0));
  if (!device) return number(env, EINVAL);
  ibv_device_attr attr = {};
  errno = 0;
  const int error = errnoOf(args.instance().verbs.ibv_query_device(device->context, &attr));
  if (error) return number(env, error);
  napi_value object = nullptr;
  napi_create_object(env, &object);
  const size_t length = strnlen(attr.fw_ver, sizeof(attr.fw_ver));
  setProperty(env, object, "firmwareVersion", text(env, std::string(attr.fw_ver, length)));
  setProperty(env, object, "nodeGuid", bigint(env, be64toh(attr.node_guid)));
  setProperty(env, object, "maxMrBytes", bigint(env, attr.max_mr_size));
  setNumbers(env, object, attr);
  return object;
}

// (device, port) => its attributes, or errno
napi_value queryPort(napi_env env, napi_callback_info info) {
  const Args args(env, info);
  Device* device = args.instance().devices.at(args.u32(0));
  if (!device) return number(env, EINVAL);
  ibv_port_attr attr = {};
  const auto port = static_cast<uint8_t>(args.u32(1));
  errno = 0;
  const int error = errnoOf(args.instance().verbs.ibv_query_port(device->context, port, &attr));
  if (error) return number(env, error);
  napi_value object = nullptr;
  napi_create_object(env, &object);
  const std::pair<const char*, uint32_t> numbers[] = {
      {"state", attr.state},          {"maxMtu", attr.max_mtu},
      {"activeMtu", attr.active_mtu}, {"gidTableLength", attr.gid_tbl_len},
      {"maxMessageBytes", attr.max_msg_sz}, {"lid", attr.lid},
      {"linkLayer", attr.link_layer}, {"physicalState", attr.phys_state},
  };
  for (const auto& [name, value] : numbers) setProperty(env, object, name, number(env, value));
  return object;
}

// (device, port, index, out: 16 bytes) => type of the GID (1 RoCE v1, 2 RoCE v2), or -errno.
// Where library or kernel do not tell the type it is 0.
double queryGid(const Args& args, Instance& instance) {
  Device* device = instance.devices.at(args.u32(0));
  size_t length = 0;
  auto* out = static_cast<uint8_t*>(args.memory(3, &length));
  if (!device || length < 16) return -EINVAL;
  const Verbs& verbs = instance.verbs;
  ibv_gid_entry entry = {};
  int error = EOPNOTSUPP;
  if (verbs._ibv_query_gid_ex) {
    error = errnoOf(verbs._ibv_query_gid_ex(device->context, args.u32(1), args.u32(2), &entry, 0,
                                            sizeof(entry)));
  }
  if (error == EOPNOTSUPP) {
    errno = 0;
    error = errnoOf(verbs.ibv_query_gid(device->context, static_cast<uint8_t>(args.u32(1)),
                                        static_cast<int>(args.u32(2)), &entry.gid));
  }
  if (error) return -error;
  memcpy(out, entry.gid.raw, 16);
  return entry.gid_type;
}
NUMBER_CALL(queryGid)

}  // namespace

void registerDevices(napi_env env, napi_value exports, Instance& instance) {
  exportFunction(env, exports, "listDevices", listDevices, &instance);
  exportFunction(env, exports, "queryDevice", queryDevice, &instance);
  exportFunction(env, exports, "queryPort", queryPort, &instance);
  EXPORT_CALL(openDevice) EXPORT_CALL(closeDevice) EXPORT_CALL(setAlive) EXPORT_CALL(queryGid)
}
