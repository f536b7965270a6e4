#!/bin/bash
# Wireshark's dissector reads what we send (npm run test:tshark). Needs tshark (Debian: apt install
# tshark) and, to capture on the loopback interface, root. Without them nothing is checked, which is
# said; in CI it is a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=""
command -v tshark >/dev/null || missing="tshark is not installed: apt-get install tshark"
[[ -z $missing && $(id -u) != 0 ]] && missing="capturing on the loopback interface needs root"
if [[ -n $missing ]]; then
  echo "SKIPPED, nothing was checked: $missing" >&2
  [[ -z ${CI:-} ]] || exit 1
  exit 0
fi

node build.mjs
exec npx mocha --no-config --enable-source-maps --forbid-only --forbid-pending --timeout 60000 \
  'dist/test/tshark/*.capture.js'
