#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "benchmarks/bench/contestant.h"
#include "collectives/base/options.h"
#include "collectives/communicator/communicator.h"
#include "runtime/rendezvous/job.h"
#include "runtime/rendezvous/session.h"

namespace allring::bench {

namespace {

constexpr nanoseconds kPatience = seconds(600);
constexpr int kCallsPerDeadline = 64;

class CoreContestant final : public Contestant {
 public:
  static Result<std::unique_ptr<Contestant>> make() {
    ALLRING_ASSIGN_OR_RETURN(Options options, Options::from_environment());
    ALLRING_RETURN_IF_ERROR(set_simd(options.simd));
    ALLRING_ASSIGN_OR_RETURN(ForcedAlgorithms forced, ForcedAlgorithms::parse(options.algorithm));
    forced.set_deterministic(options.deterministic);
    ALLRING_ASSIGN_OR_RETURN(JobDescription job, describe_job(lookup_environment));
    ALLRING_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::join(options, job));
    std::vector<Rank> everyone(static_cast<std::size_t>(session->job().size));
    std::iota(everyone.begin(), everyone.end(), 0);
    ALLRING_ASSIGN_OR_RETURN(std::unique_ptr<LaneNetwork> lane,
                             session->lane(0, 0, everyone, deadline_after(kPatience)));
    return std::unique_ptr<Contestant>(
        new CoreContestant(std::move(session), std::move(lane), std::move(forced)));
  }

  ~CoreContestant() override { (void)communicator_.barrier(deadline_after(seconds(5))); }

  const char* layer() const override { return "core"; }
  int rank() const override { return session_->job().rank; }
  int size() const override { return session_->job().size; }
  int hosts() const override { return session_->topology().hosts(); }

  Status run(const Call& call) override {
    // The clock takes a good part of the time of the smallest calls.
    if (calls_++ % kCallsPerDeadline == 0) deadline_ = deadline_after(kPatience);
    const Deadline deadline = deadline_;
    switch (call.kind) {
      case CollectiveKind::kAllreduce: {
        ALLRING_ASSIGN_OR_RETURN(const Reduction reduction, resolve(call));
        return communicator_.allreduce(call.input, call.output, call.count, reduction, deadline);
      }
      case CollectiveKind::kReduceScatter: {
        ALLRING_ASSIGN_OR_RETURN(const Reduction reduction, resolve(call));
        return communicator_.reduce_scatter(call.input, call.output, parts(call), reduction,
                                            deadline);
      }
      case CollectiveKind::kAllgather:
        return communicator_.allgather(call.input, call.output, parts(call), call.dtype, deadline);
      case CollectiveKind::kBroadcast:
        if (call.input != call.output && rank() == call.root)
          std::memcpy(call.output, call.input, call.count * element_bytes(call.dtype));
        return communicator_.broadcast(call.output, call.count, call.dtype, call.root, deadline);
      case CollectiveKind::kAlltoall:
        return communicator_.alltoall(call.input, call.output, parts(call), parts(call), call.dtype,
                                      deadline);
      case CollectiveKind::kBarrier:
        return communicator_.barrier(deadline);
    }
    return Status::internal("no such collective");
  }

  std::string_view algorithm(const Call& call) override {
    CollectiveArgs args;
    args.kind = call.kind;
    args.reduction.dtype = call.dtype;
    if (call.kind == CollectiveKind::kAllreduce || call.kind == CollectiveKind::kReduceScatter) {
      auto reduction = resolve(call);
      if (!reduction.ok()) return "";
      args.reduction = *reduction;
    }
    args.count = call.count;
    args.root = call.root;
    args.counts = parts(call);
    args.recv_counts = parts(call);
    return choose(args, communicator_.group(), forced_).name;
  }

  Status barrier() override { return communicator_.barrier(deadline_after(kPatience)); }

 protected:
  Result<Memory> allocate_in_arena(std::size_t bytes) override {
    const std::shared_ptr<Arena> arena = session_->arena();
    if (arena == nullptr)
      return Status::unsupported("--buffers arena: the ranks share no arena (ALLRING_ARENA_BYTES)");
    ALLRING_ASSIGN_OR_RETURN(std::byte* const data, arena->allocate(bytes));
    return Memory(data, bytes, [arena](std::byte* used) { arena->free(used); });
  }

 private:
  CoreContestant(std::unique_ptr<Session> session, std::unique_ptr<LaneNetwork> lane,
                 ForcedAlgorithms forced)
      : session_(std::move(session)),
        lane_(std::move(lane)),
        forced_(forced),
        communicator_(lane_->group(), std::move(forced)) {}

  Result<Reduction> resolve(const Call& call) const {
    return Reduction::resolve(call.dtype, call.op, size(), 1.0);
  }

  std::span<const std::size_t> parts(const Call& call) {
    parts_.assign(static_cast<std::size_t>(size()), call.count / static_cast<std::size_t>(size()));
    return parts_;
  }

  std::unique_ptr<Session> session_;
  std::unique_ptr<LaneNetwork> lane_;
  ForcedAlgorithms forced_;
  Communicator communicator_;
  std::vector<std::size_t> parts_;
  unsigned calls_ = 0;
  Deadline deadline_ = deadline_after(kPatience);
};

}  // namespace

Result<std::unique_ptr<Contestant>> make_core_contestant() { return CoreContestant::make(); }

}  // namespace allring::bench
