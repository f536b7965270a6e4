#!/bin/bash
# Runs the rings and the fake libibverbs under sanitizers and valgrind (where it is installed), the
# native port and the verbs addon, with their compiled tests (build first), under sanitizers.
# The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")" || exit 1
out=$(mktemp -d)
# Programs of another user run in it, too.
chmod 755 "$out"
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
    "$native"/queues/{post,poll,bind,queues}.cc "${objects[@]}" -lpthread &&
    cc -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "${@:2}" "-I$native" \
      -o "$out/$1.fake" harness/fake.c "${objects[@]}" -lpthread
}

# rings_of_channels <flags...>: between two threads, without Node
rings_of_channels() {
  local native=../../providers/softroce/native
  c++ -std=c++17 -fno-exceptions -fno-rtti -O1 -g -Wall -Wextra -Werror "$@" "-I$native" \
    -o "$out/channels" harness/channel_ring.cc "$native"/shm/{producer,consumer}.cc -lpthread &&
    setarch "$(uname -m)" -R "$out/channels"
}

# The addons, in a tree of their own where they have the sanitizers in them.
addon_tree() {
  local root=../.. tree=$out/tree native
  mkdir -p "$tree/test/native" &&
    cp -r "$root/dist" "$root/package.json" "$tree" &&
    ln -s "$(realpath "$root/node_modules")" "$tree/node_modules" || return 1
  for native in providers/{softroce,verbs,host}/native \
    test/native/fake-{ibverbs,control,rdmacm,umad} test/native/shared-half; do
    mkdir -p "$tree/$native" && cp -r "$root/$native/." "$tree/$native" || return 1
  done
  local compiler
  for compiler in cc c++; do
    printf '%s\n' '#!/bin/sh' \
      "exec $compiler \"\$@\" -O1 -fsanitize=address,undefined -fno-sanitize-recover=all" \
      >"$out/$compiler" && chmod +x "$out/$compiler" || return 1
  done
  CI=1 CC=$out/cc CXX=$out/c++ node "$tree/providers/softroce/native/build.mjs" \
    "$tree"/providers/{softroce,verbs}/native \
    "$tree"/test/native/fake-{ibverbs,control,rdmacm,umad} "$tree"/test/native/shared-half
}

# addon_tests <compiled tests...>; Node itself leaks by design at exit, so leaks are not looked for.
addon_tests() {
  (
    cd "$out/tree" || exit 1
    preload="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libubsan.so)"
    LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0 node node_modules/mocha/bin/mocha.js \
      --no-config --no-package --timeout 300000 --reporter dot --exit "$@"
  )
}

for name in address,undefined thread; do
  check "build for -fsanitize=$name" build "$name" "-fsanitize=$name" -fno-sanitize-recover=all
  # The thread sanitizer needs its fixed addresses: no randomization.
  check "-fsanitize=$name" setarch "$(uname -m)" -R "$out/$name"
  check "rings of channels, -fsanitize=$name" \
    rings_of_channels "-fsanitize=$name" -fno-sanitize-recover=all
  for mode in immediate thread; do
    check "the fake, $mode, -fsanitize=$name" \
      env FAKE_VERBS_MODE=$mode setarch "$(uname -m)" -R "$out/$name.fake"
  done
done
check "build the addons for -fsanitize=address,undefined" addon_tree
check "the port's tests under -fsanitize=address,undefined" addon_tests \
  dist/test/port/{native-port,hostile,lifecycle,local-packets,packets-in-place}.test.js \
  dist/test/port/page-memory.test.js dist/test/port/channel-{port,memory}.test.js \
  dist/test/port/{hostile-half,slots}.test.js \
      dist/test/native/{crc32,icrc,train-planner,group-sockets,unix-socket}.test.js
check "the verbs addon's tests under -fsanitize=address,undefined" addon_tests \
  dist/test/unit/verbs/{device,memory,notification,objects,opcodes,queues,windows}.test.js \
  dist/test/unit/verbs/{cm,cm-datagrams,datagrams,mad,mad-rmpp,xrc}.test.js \
  dist/test/unit/verbs/{failing-calls,torture}.long.test.js dist/test/compliance/verbs.test.js
if command -v valgrind >/dev/null; then
  check "build for valgrind" build plain
  check valgrind valgrind -q --leak-check=full --error-exitcode=1 "$out/plain"
  check "valgrind: the fake" \
    valgrind -q --leak-check=full --error-exitcode=1 "$out/plain.fake"
fi
echo "$passed passed, $failed failed"
((failed == 0))
