#include "collectives/algorithm/algorithm.h"

#include "collectives/base/check.h"

namespace allring {

std::string_view collective_kind_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllreduce:
      return "allreduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllgather:
      return "allgather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kAlltoall:
      return "alltoall";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  check_failed(__FILE__, __LINE__, "kind", "not a CollectiveKind");
}

}  // namespace allring
