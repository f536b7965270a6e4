#!/bin/bash
# Runs the rings, the fake libibverbs and the native port (its compiled tests: build first) under
# sanitizers, the former also under valgrind where it is installed.
# The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")" || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0
failed=0

# check <name> <command...>
check() {
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $1"
    failed=$((failed + 1))
  fi
}

# build <name> <flags...>
build() {
  local object objects=() native=../../providers/verbs/native
  for source in fake-ibverbs/*.c; do
    object=$out/$(basename "$source").$1.o
    cc -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "${@:2}" "-I$native" \
      -c "$source" -o "$object" || return 1
    objects+=("$object")
  done
  c++ -std=c++17 -fno-exceptions -fno-rtti -O1 -g -Wall -Wextra -Werror "${@:2}" \
    -Ifake-ibverbs "-I$native" -o "$out/$1" harness/rings.cc \
    "$native"/{post,poll,bind,queues}.cc "${objects[@]}" -lpthread
}

# The port's tests, in a tree of their own whose addon has the sanitizers in it.
port_tree() {
  local root=../.. tree=$out/tree
  mkdir -p "$tree"/providers/{softroce,host} &&
    cp -r "$root/dist" "$root/package.json" "$tree" &&
    cp -r "$root/providers/softroce/native" "$tree/providers/softroce" &&
    cp -r "$root/providers/host/native" "$tree/providers/host" &&
    ln -s "$(realpath "$root/node_modules")" "$tree/node_modules" &&
    printf '%s\n' '#!/bin/sh' \
      'exec c++ "$@" -O1 -fsanitize=address,undefined -fno-sanitize-recover=all' >"$out/c++" &&
    chmod +x "$out/c++" &&
    CI=1 CXX=$out/c++ node "$tree/providers/softroce/native/build.mjs" \
      "$tree/providers/softroce/native"
}

# Node itself leaks by design at exit, so leaks are not looked for.
port_tests() {
  (
    cd "$out/tree" || exit 1
    preload="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libubsan.so)"
    LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0 node node_modules/mocha/bin/mocha.js \
      --no-config --no-package --timeout 60000 --reporter dot \
      dist/test/port/{native-port,hostile,lifecycle}.test.js 'dist/test/native/*.test.js'
  )
}

for name in address,undefined thread; do
  check "build for -fsanitize=$name" build "$name" "-fsanitize=$name" -fno-sanitize-recover=all
  # The thread sanitizer needs its fixed addresses: no randomization.
  check "-fsanitize=$name" setarch "$(uname -m)" -R "$out/$name"
done
check "build the port for -fsanitize=address,undefined" port_tree
check "the port's tests under -fsanitize=address,undefined" port_tests
if command -v valgrind >/dev/null; then
  check "build for valgrind" build plain
  check valgrind valgrind -q --leak-check=full --error-exitcode=1 "$out/plain"
fi
echo "$passed passed, $failed failed"
((failed == 0))
