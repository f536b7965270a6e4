#include "file_mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace dapl {
namespace {

struct Mapping {
  void* data;
  size_t length;
};

napi_value fail(napi_env env, const char* code, const std::string& message) {
  napi_throw_error(env, code, message.c_str());
  return nullptr;
}

const char* codeOf(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "EACCES";
    case ENOMEM:
    case EAGAIN:
      return "ENOMEM";
    case ENODEV:
      return "EOPNOTSUPP";
    default:
      return "EINVAL";
  }
}

/// Runs when the ArrayBuffer is collected: nothing, a registration included, holds a view any more.
void unmap(napi_env, void*, void* hint) {
  Mapping* mapping = static_cast<Mapping*>(hint);
  munmap(mapping->data, mapping->length);
  delete mapping;
}

}  // namespace

napi_value mapFile(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value arguments[4] = {};
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  double offset = 0;
  double length = 0;
  bool shared = false;
  napi_get_value_double(env, arguments[1], &offset);
  napi_get_value_double(env, arguments[2], &length);
  napi_get_value_bool(env, arguments[3], &shared);
  int32_t fd = -1;
  napi_get_value_int32(env, arguments[0], &fd);

  struct stat status;
  if (fstat(fd, &status) != 0) return fail(env, "EINVAL", std::string("fd: ") + strerror(errno));
  const double size = static_cast<double>(status.st_size);
  if (length == 0) length = size - offset;
  // Pages beyond the end of a file end the process when they are touched.
  if (!S_ISREG(status.st_mode) || length <= 0 || offset + length > size) {
    return fail(env, "EINVAL",
                S_ISREG(status.st_mode)
                    ? "the file has " + std::to_string(status.st_size) + " bytes"
                    : "only regular files can be mapped");
  }

  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t start = static_cast<uint64_t>(offset);
  const uint64_t lead = start % page;
  const size_t bytes = static_cast<size_t>(length) + lead;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd,
                    static_cast<off_t>(start - lead));
  if (data == MAP_FAILED) return fail(env, codeOf(errno), strerror(errno));

  Mapping* mapping = new Mapping{data, bytes};
  napi_value buffer = nullptr;
  napi_value view = nullptr;
  if (napi_create_external_arraybuffer(env, data, bytes, unmap, mapping, &buffer) != napi_ok) {
    unmap(env, nullptr, mapping);
    return fail(env, "EOPNOTSUPP", "this runtime allows no memory from outside of its heap");
  }
  napi_create_typedarray(env, napi_uint8_array, static_cast<size_t>(length), buffer, lead, &view);
  return view;
}

}  // namespace dapl
