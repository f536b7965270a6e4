#include "library.h"

#include <dlfcn.h>

std::string SharedLibrary::load(const std::string& from) {
  const std::string wanted = from.empty() ? soname : from;
  if (handle) {
    if (from.empty() || wanted == path) return "";
    return wanted + ": " + path + " is loaded already";
  }
  void* opened = dlopen(wanted.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) return dlerror();
  std::string missing;
  for (const Symbol& symbol : symbols) {
    *symbol.slot = dlsym(opened, symbol.name);
    if (*symbol.slot || !symbol.required) continue;
    missing += (missing.empty() ? wanted + " has no " : ", ") + std::string(symbol.name);
  }
  if (!missing.empty()) {
    dlclose(opened);
    return missing;
  }
  handle = opened;
  path = wanted;
  return "";
}
