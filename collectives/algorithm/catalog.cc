#include "collectives/algorithm/catalog.h"

#include <algorithm>
#include <sstream>

#include "collectives/algorithm/binomial.h"
#include "collectives/algorithm/direct.h"
#include "collectives/algorithm/dissemination.h"
#include "collectives/algorithm/flags.h"
#include "collectives/algorithm/halving_doubling.h"
#include "collectives/algorithm/hierarchical.h"
#include "collectives/algorithm/line.h"
#include "collectives/algorithm/oneshot.h"
#include "collectives/algorithm/pairwise.h"
#include "collectives/algorithm/push.h"
#include "collectives/algorithm/ring.h"
#include "collectives/algorithm/rounding.h"
#include "collectives/algorithm/self.h"
#include "collectives/algorithm/slots_allgather.h"
#include "collectives/algorithm/slots_alltoall.h"
#include "collectives/algorithm/slots_broadcast.h"
#include "collectives/algorithm/slots_reduce_scatter.h"
#include "collectives/base/log.h"

namespace allring {

namespace {

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllgather,
    CollectiveKind::kBroadcast, CollectiveKind::kAlltoall,      CollectiveKind::kBarrier,
};

const Algorithm* find(CollectiveKind kind, std::string_view name) {
  for (const Algorithm& row : algorithms(kind)) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// "allreduce: ring, push; barrier: flags"
std::string everything() {
  std::string list;
  for (CollectiveKind kind : kKinds) {
    if (!list.empty()) list += "; ";
    list += std::string(collective_kind_name(kind)) + ": ";
    bool first = true;
    for (const Algorithm& row : algorithms(kind)) {
      list += (first ? "" : ", ") + std::string(row.name);
      first = false;
    }
  }
  return list;
}

Status unknown(std::string_view word, std::string_view text) {
  return Status::invalid_argument(
      "ALGORITHM=\"" + std::string(text) + "\": there is no \"" + std::string(word) +
      "\"; expected a name, or kind=name separated by commas, of " + everything());
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kReduceScatter;
}

/// Whether the option DETERMINISTIC leaves the row to be chosen.
bool allowed(const Algorithm& row, const CollectiveArgs& args, const ForcedAlgorithms& forced) {
  return !forced.deterministic() || row.in_rank_order || !reduces(args.kind) ||
         !rounding_depends_on_order(args.reduction);
}

void warn_of_other_row(const CollectiveArgs& args, Group& group, std::string_view forced,
                       bool supported) {
  std::ostringstream reason;
  if (supported) {
    reason << "does not add " << data_type_name(args.reduction.dtype)
           << " in the order of ranks, as DETERMINISTIC asks";
  } else {
    reason << "cannot run " << data_type_name(args.reduction.dtype) << " "
           << reduce_op_name(args.reduction.op) << " of " << args.count << " elements over "
           << group.size() << " ranks on " << group.topology().hosts() << " hosts, "
           << (group.host_memory() != nullptr ? "with" : "without") << " shared memory";
  }
  ALLRING_LOG(kWarning, "ALGORITHM forces " << collective_kind_name(args.kind) << "=" << forced
                                            << ", which " << reason.str()
                                            << "; the best other row runs instead, now and later");
}

}  // namespace

std::span<const Algorithm> algorithms(CollectiveKind kind) {
  static const Algorithm allreduce[] = {
      kSelfAllreduce,     kLineAllreduce, kOneshotAllreduce,      kDirectAllreduce,
      kPushAllreduce,     kRingAllreduce, kHierarchicalAllreduce, kHalvingDoublingAllreduce,
      kPairwiseAllreduce,
  };
  static const Algorithm reduce_scatter[] = {
      kSelfReduceScatter,
      kSlotsReduceScatter,
      kRingReduceScatter,
      kPairwiseReduceScatter,
  };
  static const Algorithm allgather[] = {kSelfAllgather, kSlotsAllgather, kRingAllgather};
  static const Algorithm broadcast[] = {kSelfBroadcast, kSlotsBroadcast, kBinomialBroadcast};
  static const Algorithm alltoall[] = {kSelfAlltoall, kSlotsAlltoall, kPairwiseAlltoall};
  static const Algorithm barrier[] = {kSelfBarrier, kFlagsBarrier, kDisseminationBarrier};
  switch (kind) {
    case CollectiveKind::kAllreduce:
      return allreduce;
    case CollectiveKind::kReduceScatter:
      return reduce_scatter;
    case CollectiveKind::kAllgather:
      return allgather;
    case CollectiveKind::kBroadcast:
      return broadcast;
    case CollectiveKind::kAlltoall:
      return alltoall;
    case CollectiveKind::kBarrier:
      return barrier;
  }
  check_failed(__FILE__, __LINE__, "kind", "not a CollectiveKind");
}

Result<ForcedAlgorithms> ForcedAlgorithms::parse(std::string_view text) {
  ForcedAlgorithms result;
  std::string_view rest = text;
  while (!trim(rest).empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = trim(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));

    const std::size_t equals = entry.find('=');
    const bool all_kinds = equals == std::string_view::npos;
    const std::string_view kind_word = all_kinds ? "" : trim(entry.substr(0, equals));
    const std::string_view name = all_kinds ? entry : trim(entry.substr(equals + 1));
    bool kind_exists = all_kinds, name_exists = false;
    for (CollectiveKind kind : kKinds) {
      if (!all_kinds && collective_kind_name(kind) != kind_word) continue;
      kind_exists = true;
      if (find(kind, name) == nullptr) continue;
      name_exists = true;
      result.forced_.emplace_back(kind, name);
    }
    if (!kind_exists) return unknown(kind_word, text);
    if (!name_exists) return unknown(entry, text);
  }
  return result;
}

std::string_view ForcedAlgorithms::name(CollectiveKind kind) const {
  // The last word on a kind counts: "ring,allreduce=push".
  for (auto entry = forced_.rbegin(); entry != forced_.rend(); ++entry) {
    if (entry->first == kind) return entry->second;
  }
  return {};
}

std::string obstacle(const Algorithm& row, const CollectiveArgs& args, Group& group,
                     const ForcedAlgorithms& forced) {
  if (row.supports(args, group)) {
    return allowed(row, args, forced) ? ""
                                      : "does not add in the order of ranks, as DETERMINISTIC asks";
  }
  // Rows only say no: what would they take instead?
  const auto takes = [&](DataType dtype, std::size_t count) {
    CollectiveArgs other = args;
    other.reduction.dtype = dtype;
    other.count = count;
    return row.supports(other, group);
  };
  if (takes(args.reduction.dtype, 1)) return "takes shorter ones only";
  if (takes(DataType::kInt32, args.count)) return "would round 16-bit sums more than once";
  if (group.size() == 1) return "is for several ranks";
  if (row.name == "self") return "is for one rank";
  return "not over " + std::to_string(group.size()) + " ranks on " +
         std::to_string(group.topology().hosts()) + " hosts, " +
         (group.host_memory() != nullptr ? "with" : "without") + " memory that all share";
}

const Algorithm& choose(const CollectiveArgs& args, Group& group, const ForcedAlgorithms& forced) {
  const std::string_view name = group.size() == 1 ? "" : forced.name(args.kind);
  if (!name.empty()) {
    const Algorithm& row = *find(args.kind, name);
    const bool supported = row.supports(args, group);
    if (supported && allowed(row, args, forced)) return row;
    if (forced.warn_once()) warn_of_other_row(args, group, name, supported);
  }
  const Algorithm* best = nullptr;
  double best_cost = 0;
  for (const Algorithm& row : algorithms(args.kind)) {
    if (!row.supports(args, group) || !allowed(row, args, forced)) continue;
    const double cost = row.cost_us(args, group);
    if (best == nullptr || cost < best_cost) {
      best = &row;
      best_cost = cost;
    }
  }
  ALLRING_CHECK(best != nullptr, "every valid argument has a row");
  return *best;
}

}  // namespace allring
