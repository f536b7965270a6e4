# How .ci/run runs a part, and what it says of the parts at the end. Read by `source`.

# plain: the log on standard input without colours.
plain() {
  sed -E 's/\x1b\[[0-9;]*m//g'
}

# sum <regular expression with one number>: the sum of that number over the log.
sum() {
  plain | sed -nE "s/$1/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}

# reasons: what the log says of its failed tests: mocha's list, and the FAIL lines of other suites
# with what is indented beneath them.
reasons() {
  plain | awk '
    /^  [0-9]+ failing$/ { list = 1 }
    /^[0-9]+ passed, [0-9]+ failed$/ { list = 0 }
    /^FAIL/ { print; below = 1; next }
    below && !/^ / { below = 0 }
    list || below { print }' | head -n 300
}

# names: a line for each of these: its title, and the first line of its message.
names() {
  plain | awk '
    function tell(message) {
      sub(/^ +/, "", message)
      print substr(title ": " message, 1, 200)
      title = ""
    }
    /^  [0-9]+ failing$/ { list = 1 }
    /^[0-9]+ passed, [0-9]+ failed$/ { list = 0 }
    !list && /^FAIL/ { if (title != "") print title; title = $0; above = 0; next }
    !list && title != "" { if (/^ +[^ ]/) tell($0); else { print title; title = "" } }
    list && /^  [0-9]+\) / { sub(/^  [0-9]+\) /, ""); title = $0; above = !/:$/; next }
    list && above { sub(/^ +/, ""); title = title " > " $0; above = !/:$/; next }
    list && title != "" && /[^ ]/ { sub(/:$/, "", title); tell($0) }
    END { if (title != "") print title }'
}

# slowest: lines of seconds and a command as a table, the most first.
slowest() {
  sort -rns | awk -F '\t' '{ printf "%6d s  %s\n", $1, $2 }'
}

passed=0
failed=0
log=$(mktemp)
failures=$(mktemp) # what failed and why
failed_names=$(mktemp) # the same in a line each
times=$(mktemp) # seconds and command of each part
trap 'rm -f "$log" "$failures" "$failed_names" "$times"' EXIT

# run <command...>: output goes to the terminal and to $log; a bound of 40 minutes.
run() {
  local start=$SECONDS status
  echo
  echo "== $*"
  timeout --kill-after=10 2400 "$@" </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  printf '%d\t%s\n' $((SECONDS - start)) "$*" >>"$times"
  return "$status"
}

# fail <what>: $log has the reasons, and the last lines where it has none of a test.
fail() {
  local what=$1 lines
  echo "FAILED: $what" | tee -a "$failures"
  lines=$(names <"$log")
  if [[ -n $lines ]]; then
    reasons <"$log" >>"$failures"
    echo "$lines" >>"$failed_names"
  else
    tail -n 40 "$log" >>"$failures"
    echo "$what" >>"$failed_names"
  fi
}

# one <command...>: counts as one check.
one() {
  if run "$@"; then
    passed=$((passed + 1))
  else
    fail "$*"
    failed=$((failed + 1))
  fi
}

# suite <command...>: counts by its last line, "N passed, N failed", or by what mocha says.
suite() {
  local status=0 good bad
  run "$@" || status=$?
  if tail -n 1 "$log" | grep -qE '^[0-9]+ passed, [0-9]+ failed$'; then
    read -r good _ bad _ < <(tail -n 1 "$log")
  else
    # Mocha's own lines are two columns in; what a case quotes of another's output is further in.
    good=$(sum '^  ([0-9]+) passing .*' <"$log")
    bad=$(sum '^  ([0-9]+) (failing|pending)$' <"$log")
  fi
  if ((bad == 0 && (status != 0 || good == 0))); then
    fail "$* (exit code $status, $good passed)"
    bad=1
  elif ((bad > 0)); then
    fail "$bad of $*"
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
}

# apart <one or suite, and its command, or a function of them>: runs it beside what comes before
# `joined`, which prints its output and adds its counts.
apart() {
  apart=$* apart_output=$(mktemp) apart_counts=$(mktemp)
  (
    log=$(mktemp) passed=0 failed=0
    "$@"
    rm -f "$log"
    echo "$passed $failed" >"$apart_counts"
  ) >"$apart_output" 2>&1 &
}

joined() {
  local good bad
  wait
  cat "$apart_output"
  # Counts that are missing are those of checks that did not come to their end.
  read -r good bad <"$apart_counts" ||
    { good=0 bad=1; echo "FAILED: $apart, ended" | tee -a "$failures" "$failed_names"; }
  rm -f "$apart_output" "$apart_counts"
  passed=$((passed + good))
  failed=$((failed + bad))
}

finish() {
  if [[ -s $failures ]]; then
    echo
    echo "== what failed, and why"
    cat "$failures"
  fi
  echo
  echo "== seconds of each part"
  slowest <"$times"
  if [[ -s $failed_names ]]; then
    echo
    echo "== what failed"
    cat "$failed_names"
  fi
  echo
  echo "$passed passed, $failed failed"
  ((failed == 0))
  exit
}
