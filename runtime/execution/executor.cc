#include "runtime/execution/executor.h"

#include <utility>

#include "runtime/fusion/planner.h"
#include "runtime/request/validate.h"

namespace allring {

namespace {

PlanItem plan_item(const Request& request) {
  PlanItem item{request.kind, request.dtype, request.op, request.prescale, request.postscale, 0,
                request.group};
  // Shapes of other kinds may differ between ranks, and plans must not.
  if (request.kind != CollectiveKind::kAllreduce) return item;
  const Result<std::int64_t> count = element_count(request.shape, request.dtype);
  item.bytes = *count * static_cast<std::int64_t>(element_bytes(request.dtype));
  return item;
}

}  // namespace

Executor::Executor(Settings settings, TensorQueue& queue, std::function<void()> wake)
    : settings_(std::move(settings)), queue_(queue), wake_(std::move(wake)) {}

std::unique_ptr<Executor> Executor::start(Settings settings,
                                          std::vector<std::unique_ptr<LaneNetwork>> networks,
                                          TensorQueue& queue, std::function<void()> wake) {
  std::unique_ptr<Executor> executor(new Executor(std::move(settings), queue, std::move(wake)));
  for (std::unique_ptr<LaneNetwork>& network : networks) {
    executor->lanes_.push_back(Lane::start(
        executor->lanes(), std::move(network), executor->settings_.forced,
        executor->settings_.strategy, [executor = executor.get()](Batch batch, Status status) {
          executor->finished(std::move(batch), std::move(status));
        }));
  }
  return executor;
}

void Executor::run(Decided decided) {
  std::vector<PlanItem> items;
  items.reserve(decided.tensors.size());
  for (const Agreed& agreed : decided.tensors)
    items.push_back(plan_item(agreed.submission.request));
  const std::vector<PlanBatch> batches = plan(items, decided.limits, settings_.single_host);
  items.clear();  // they look into the tensors, which move now
  outstanding_ += static_cast<int>(batches.size());
  for (const PlanBatch& members : batches) {
    Batch batch;
    batch.number = next_batch_++;
    batch.tensors.reserve(members.size());
    for (std::size_t i : members) {
      Agreed& agreed = decided.tensors[i];
      batch.tensors.push_back({std::move(agreed.submission), std::move(agreed.sizes), {}});
    }
    lanes_[batch.number % lanes_.size()]->run(std::move(batch));
  }
}

// On a lane's thread.
void Executor::finished(Batch batch, Status status) {
  bool wake = !status.ok();
  if (status.ok()) {
    for (BatchTensor& tensor : batch.tensors)
      queue_.complete(std::move(tensor.submission), std::move(tensor.completion));
  } else {
    std::lock_guard lock(mutex_);
    failed_.push_back({std::move(batch.tensors), std::move(status)});
  }
  wake |= --outstanding_ < wake_below_.load();
  if (wake) wake_();
}

std::vector<Executor::Failed> Executor::take_failed() {
  std::lock_guard lock(mutex_);
  return std::exchange(failed_, {});
}

void Executor::abort(const Status& reason) noexcept {
  for (const std::unique_ptr<Lane>& lane : lanes_) lane->abort(reason);
}

}  // namespace allring
