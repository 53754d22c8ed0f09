#include "collectives/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace allring {

void check_failed(const char* file, int line, const char* condition, const char* what) {
  std::fprintf(stderr, "allring: broken invariant at %s:%d: %s (%s)\n", file, line, what,
               condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace allring
