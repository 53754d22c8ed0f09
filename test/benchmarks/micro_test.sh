#!/usr/bin/env bash
# Each micro-benchmark runs, briefly.
set -euo pipefail
for program in "$@"; do
  # Memory-sized ones take long.
  "$program" --benchmark_min_time=0.0001 --benchmark_filter='-(16384KiB|/16777216)' \
    >"$TEST_TMPDIR/out" 2>&1 || { cat "$TEST_TMPDIR/out"; exit 1; }
  if grep 'ERROR OCCURRED' "$TEST_TMPDIR/out" | grep -v 'this processor lacks it'; then
    echo "$program: benchmarks failed (above)"
    exit 1
  fi
  grep -q 'Time' "$TEST_TMPDIR/out"
done
