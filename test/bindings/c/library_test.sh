#!/bin/bash
# The shared library: what it exports, what it needs, and that it loads into a stranger.
set -euo pipefail
library="$1"

exported="$(nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort)"
foreign="$(grep -v '^allring_' <<< "$exported" || true)"
[[ -z "$foreign" ]] || { echo "exports more than allring_*:"; head <<< "$foreign"; exit 1; }
for name in allring_init allring_shutdown allring_last_error allring_allreduce_async allring_wait; do
  grep -qx "$name" <<< "$exported" || { echo "does not export $name"; exit 1; }
done

# libstdc++ and libgcc are inside with --config=opt; sanitizers bring their own.
needed="$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')"
for name in $needed; do
  case "$name" in
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | libdl.so.2 | libpthread.so.0 | librt.so.1) ;;
    libstdc++.so.6 | libgcc_s.so.1 | libasan.so.* | libubsan.so.* | libtsan.so.*) ;;
    *)
      echo "needs $name"
      exit 1
      ;;
  esac
done
# And nothing is left to be found at run time.
unresolved="$(ldd -r "$library" 2>&1 | grep -E 'undefined symbol|not found' | grep -v -E 'asan|ubsan|tsan|sanitizer' || true)"
[[ -z "$unresolved" ]] || { echo "$unresolved"; exit 1; }
