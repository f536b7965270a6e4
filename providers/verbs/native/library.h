// Shared libraries that are looked up when they are first needed, so that the addon loads on a
// machine without them.
#pragma once

#include <string>
#include <utility>
#include <vector>

struct Symbol {
  const char* name;
  void** slot;  // null when an optional one is missing
  bool required;
};

struct SharedLibrary {
  SharedLibrary(const char* name, const char* soname, std::vector<Symbol> symbols)
      : name(name), soname(soname), symbols(std::move(symbols)) {}

  const char* name;    // what load() calls it: "verbs", "rdmacm", "umad"
  const char* soname;  // where it is unless load() says: "libibverbs.so.1"
  std::vector<Symbol> symbols;
  void* handle = nullptr;
  std::string path;

  // Looks everything up; again is nothing. Returns what is missing in words, or an empty text.
  std::string load(const std::string& from);
};

// An entry of `symbols` for a member of a struct that is named like the function.
#define REQUIRED_SYMBOL(functions, name) \
  Symbol{#name, reinterpret_cast<void**>(&(functions).name), true},
#define OPTIONAL_SYMBOL(functions, name) \
  Symbol{#name, reinterpret_cast<void**>(&(functions).name), false},
// A member of such a struct; the type is that of the function's declaration.
#define SYMBOL_MEMBER(name) decltype(&::name) name = nullptr;
