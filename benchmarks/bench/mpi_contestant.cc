#include <cstring>
#include <memory>
#include <vector>

#include "benchmarks/bench/contestant.h"
#include "benchmarks/bench/mpi_library.h"

namespace allring::bench {

namespace {

class MpiContestant final : public Contestant {
 public:
  explicit MpiContestant(MpiCollectives mpi) : mpi_(std::move(mpi)) {}

  const char* impl() const override { return "openmpi"; }
  const char* layer() const override { return "mpi"; }
  std::string description() const override {
    const std::string tuning = mpi_tuning();
    return mpi_.library() + (tuning.empty() ? ", as installed" : ", " + tuning);
  }
  int rank() const override { return mpi_.rank(); }
  int size() const override { return mpi_.size(); }
  int hosts() const override { return 0; }
  std::string_view algorithm(const Call&) override { return ""; }

  Status run(const Call& call) override {
    // MPI broadcasts in place only, as our own communicator does.
    if (call.kind == CollectiveKind::kBroadcast && call.input != call.output && rank() == call.root)
      std::memcpy(call.output, call.input, call.count * element_bytes(call.dtype));
    return mpi_.run(static_cast<int>(call.kind), call.input, call.output, call.count,
                    static_cast<int>(call.dtype), static_cast<int>(call.op), call.root);
  }

  Status barrier() override {
    return mpi_.run(static_cast<int>(CollectiveKind::kBarrier), nullptr, nullptr, 0, 0, 0, 0);
  }

 private:
  MpiCollectives mpi_;
};

}  // namespace

Result<std::unique_ptr<Contestant>> make_mpi_contestant() {
  ALLRING_ASSIGN_OR_RETURN(MpiCollectives mpi, MpiCollectives::open());
  return std::unique_ptr<Contestant>(std::make_unique<MpiContestant>(std::move(mpi)));
}

}  // namespace allring::bench
