#!/bin/bash
# Code for newer instruction sets must not leave copies of inline functions that the linker could
# choose for everybody: each archive defines one symbol, its entry, and no other.
set -u
checked=0
failed=0
for archive in "$@"; do
  case $archive in
    *libkernels_avx2*.a) expected='allring::kernels::kAvx2Kernels' ;;
    *libkernels_avx512*.a) expected='allring::kernels::kAvx512Kernels' ;;
    *libcrc32c_sse42*.a) expected='allring::kernels::crc32c_sse42(unsigned int, void const*, unsigned long)' ;;
    *) continue ;;
  esac
  # Lower case is local, but for u, v and w: weak or unique.
  defined=$(nm -C --defined-only "$archive" | sed -n 's/^[0-9a-f]* [A-Zuvw] //p')
  if [ "$defined" != "$expected" ]; then
    printf '%s\nexpected: %s\ngot: %s\n' "$archive" "$expected" "$defined"
    failed=1
  fi
  checked=$((checked + 1))
done
if [ "$checked" -lt 3 ]; then
  echo "expected three archives, got: $*"
  exit 1
fi
exit $failed
