#!/bin/bash
# Runs the rings and the fake libibverbs under sanitizers, and under valgrind where it is installed.
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
  local object objects=()
  for source in fake-ibverbs/*.c; do
    object=$out/$(basename "$source").$1.o
    cc -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "${@:2}" -c "$source" -o "$object" ||
      return 1
    objects+=("$object")
  done
  c++ -std=c++17 -fno-exceptions -fno-rtti -O1 -g -Wall -Wextra -Werror "${@:2}" \
    -Ifake-ibverbs -o "$out/$1" harness/rings.cc verbs-rings/p{ost,oll}.cc "${objects[@]}" -lpthread
}

for name in address,undefined thread; do
  check "build for -fsanitize=$name" build "$name" "-fsanitize=$name" -fno-sanitize-recover=all
  # The thread sanitizer needs its fixed addresses: no randomization.
  check "-fsanitize=$name" setarch "$(uname -m)" -R "$out/$name"
done
if command -v valgrind >/dev/null; then
  check "build for valgrind" build plain
  check valgrind valgrind -q --leak-check=full --error-exitcode=1 "$out/plain"
fi
echo "$passed passed, $failed failed"
((failed == 0))
