#include "runtime/fusion/planner.h"

#include <algorithm>

namespace allring {

namespace {

bool alike(const PlanItem& one, const PlanItem& other) {
  return one.dtype == other.dtype && one.op == other.op && one.prescale == other.prescale &&
         one.postscale == other.postscale;
}

// A batch that may still take more.
struct OpenBatch {
  std::size_t place = 0;  // among the batches
  const PlanItem* like = nullptr;
  std::int64_t bytes = 0;
};

class Planner {
 public:
  Planner(std::span<const PlanItem> items, const FusionLimits& limits, bool single_host)
      : items_(items), limits_(limits), single_host_(single_host) {}

  std::vector<PlanBatch> run() {
    for (std::size_t i = 0; i < items_.size();) {
      const std::size_t end = end_of_unit(i);
      std::int64_t bytes = 0;
      for (std::size_t j = i; j < end; ++j) bytes += items_[j].bytes;
      for (std::size_t j = i; j < end; ++j) add(j, j == i ? bytes : items_[j].bytes);
      i = end;
    }
    return std::move(batches_);
  }

 private:
  bool packable(const PlanItem& item) const {
    const std::int64_t most = single_host_ ? std::min(limits_.tensor_bytes, limits_.threshold_bytes)
                                           : limits_.threshold_bytes;
    return item.kind == CollectiveKind::kAllreduce && item.bytes <= most &&
           limits_.threshold_bytes > 0;
  }

  // Items that are to stay together: the rest of a group if it can be packed into one batch, else
  // one.
  std::size_t end_of_unit(std::size_t first) const {
    const PlanItem& item = items_[first];
    if (item.group.empty() || !packable(item)) return first + 1;
    std::size_t end = first;
    std::int64_t bytes = 0;
    for (; end < items_.size() && items_[end].group == item.group; ++end) {
      bytes += items_[end].bytes;
      if (!packable(items_[end]) || !alike(items_[end], item) || bytes > limits_.threshold_bytes)
        return first + 1;
    }
    return end;
  }

  // `room` is what the batch must have left for this item and those of its unit that follow.
  void add(std::size_t i, std::int64_t room) {
    const PlanItem& item = items_[i];
    if (!packable(item)) {
      batches_.push_back({i});
      return;
    }
    auto open = std::find_if(open_.begin(), open_.end(),
                             [&](const OpenBatch& one) { return alike(*one.like, item); });
    if (open == open_.end()) open = open_.insert(open, OpenBatch{});
    if (open->like == nullptr || open->bytes + room > limits_.threshold_bytes) {
      *open = {batches_.size(), &item, 0};
      batches_.emplace_back();
    }
    batches_[open->place].push_back(i);
    open->bytes += item.bytes;
  }

  std::span<const PlanItem> items_;
  const FusionLimits& limits_;
  bool single_host_;
  std::vector<PlanBatch> batches_;
  std::vector<OpenBatch> open_;
};

}  // namespace

std::vector<PlanBatch> plan(std::span<const PlanItem> items, const FusionLimits& limits,
                            bool single_host) {
  return Planner(items, limits, single_host).run();
}

}  // namespace allring
