// Allreduces of buffers in the arena, some of them, or none: what the row "direct" decides by.
#include "collectives/algorithm/direct.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "test/collectives/algorithm/matrix.h"
#include "test/harness/reference.h"

namespace allring::test {
namespace {

constexpr std::uint64_t kSeed = 11;

/// Where a rank's buffers are in one call.
enum class Placement { kInPlace, kArena, kInputPrivate, kOutputPrivate, kPrivate };

/// A rank's memory for one call: in the arena, or its own.
class Piece {
 public:
  Piece(Group& group, bool in_arena, std::size_t bytes)
      : arena_(in_arena ? group.arena().arena : nullptr), private_(in_arena ? 0 : bytes + 1) {
    data_ = in_arena ? *arena_->allocate(bytes) : private_.data();
  }
  ~Piece() {
    if (arena_) arena_->free(data_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::shared_ptr<Arena> arena_;
  std::vector<std::byte> private_;
  std::byte* data_;
};

/// One call. Returns what is wrong, or "".
Result<std::string> check(Group& group, Placement placement, DataType dtype, ReduceOp op,
                          std::size_t count, const Algorithm& row) {
  const std::size_t bytes = count * element_bytes(dtype);
  std::vector<std::vector<std::byte>> inputs;
  for (Rank rank = 0; rank < group.size(); ++rank)
    inputs.emplace_back(elements(dtype, rank).begin(), elements(dtype, rank).begin() + bytes);
  const Piece input(
      group, placement != Placement::kInputPrivate && placement != Placement::kPrivate, bytes);
  const Piece separate(
      group, placement != Placement::kOutputPrivate && placement != Placement::kPrivate, bytes);
  std::byte* const output = placement == Placement::kInPlace ? input.data() : separate.data();
  if (bytes > 0) std::memcpy(input.data(), inputs[group.rank()].data(), bytes);

  CollectiveArgs args;
  args.kind = CollectiveKind::kAllreduce;
  ALLRING_ASSIGN_OR_RETURN(args.reduction, Reduction::resolve(dtype, op, group.size(), 1.0));
  args.input = input.data();
  args.output = output;
  args.count = count;
  if (!row.supports(args, group)) return std::string("not supported");
  ALLRING_RETURN_IF_ERROR(row.run(args, group, deadline_after(seconds(30))));
  if (output != input.data() && bytes > 0 &&
      std::memcmp(input.data(), inputs[group.rank()].data(), bytes) != 0)
    return std::string("the input was changed");
  return Expected(inputs, dtype, op).compare(output, 0, count);
}

std::string run_all(int size, const std::function<Result<std::string>(Group&)>& body) {
  return failures(run_ranks(Cluster::one_host(size, Medium::kInproc, true), [&](Group& group) {
    const Result<std::string> wrong = body(group);
    if (!wrong.ok()) return wrong.status();
    return wrong->empty() ? Status() : Status::internal(*wrong);
  }));
}

TEST_CASE("all buffers in the arena: every dtype, awkward counts") {
  for (int size : {2, 3, 5}) {
    CHECK(run_all(size, [&](Group& group) -> Result<std::string> {
            for (DataType dtype : all_data_types()) {
              for (std::size_t count : awkward_counts(size)) {
                for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
                  for (Placement placement : {Placement::kInPlace, Placement::kArena}) {
                    ALLRING_ASSIGN_OR_RETURN(
                        const std::string wrong,
                        check(group, placement, dtype, op, count, kDirectAllreduce));
                    if (!wrong.empty())
                      return std::string(data_type_name(dtype)) + " x " + std::to_string(count) +
                             ": " + wrong;
                  }
                }
              }
            }
            return std::string();
          }) == "");
  }
}

TEST_CASE("ranks of different placements, between other rows") {
  for (int size : {2, 4}) {
    CHECK(
        run_all(size, [&](Group& group) -> Result<std::string> {
          std::mt19937_64 common(kSeed);  // equal on all ranks
          std::mt19937_64 own(kSeed + 1 + static_cast<std::uint64_t>(group.rank()));
          const auto rows = algorithms(CollectiveKind::kAllreduce);
          for (int turn = 0; turn < 150; ++turn) {
            const std::size_t count = common() % 4 == 0 ? common() % 15 : common() % kMostElements;
            const bool any_row = common() % 3 == 0;
            const bool all_in_arena = common() % 3 == 0;
            const Algorithm* row = any_row ? &rows[common() % rows.size()] : &kDirectAllreduce;
            CollectiveArgs args;
            args.kind = CollectiveKind::kAllreduce;
            args.reduction.dtype = DataType::kFloat32;
            args.count = count;
            if (!row->supports(args, group)) row = &kDirectAllreduce;
            const auto placement = static_cast<Placement>(own() % (all_in_arena ? 2 : 5));
            ALLRING_ASSIGN_OR_RETURN(
                const std::string wrong,
                check(group, placement, DataType::kFloat32, ReduceOp::kAverage, count, *row));
            if (!wrong.empty())
              return "turn " + std::to_string(turn) + ", " + std::string(row->name) + ": " + wrong;
          }
          return std::string();
        }) == "");
  }
}

TEST_CASE("without an arena the row is not there") {
  Cluster cluster = Cluster::one_host(2, Medium::kInproc, true);
  cluster.arena = false;
  CHECK(failures(run_ranks(cluster, [](Group& group) {
          return kDirectAllreduce.supports({}, group) ? Status::internal("it is") : Status();
        })) == "");
}

}  // namespace
}  // namespace allring::test
