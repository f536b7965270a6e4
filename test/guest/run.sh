#!/bin/bash
# Real kernels in QEMU guests: all interop cases, a shell, or a command (docs/testing-guest.md).
#   test/guest/run.sh                      the small set (npm run test:guest)
#   test/guest/run.sh cases <part of name> some of it; docs/interop.md is left alone
#   test/guest/run.sh full [part of name]  all cases, or some of them (npm run test:guest:full)
#   test/guest/run.sh shell                a terminal in a guest (npm run guest)
#   test/guest/run.sh exec '<command>'     one command in a guest
#   test/guest/run.sh bench [options]      the verbs provider beside perftest (npm run bench:verbs)
#   test/guest/run.sh bench-storage        our iSER target beside LIO's, in a guest
#   test/guest/run.sh bench-rstream        rsockets beside rstream (npm run bench:rstream)
set -euo pipefail
cd "$(dirname "$0")/../.."
node build.mjs
exec node --enable-source-maps dist/test/guest/main.js "$@"
