// What goes wrong: mismatches, duplicates, stalls, losses, shutdowns. Everybody hears of it, nobody
// hangs.

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <mutex>
#include <vector>

#include "test/harness/thread_count.h"
#include "test/runtime/harness/inproc_job.h"

using namespace allring;
using namespace allring::test;

namespace {

// One small allreduce on each rank; what came of it, by rank.
std::vector<Completion> each(InprocJob& job, const std::function<Request(Rank)>& request) {
  std::vector<Completion> completions(job.size());
  job.on_each([&](Rank rank) {
    std::vector<float> data(64, 1);
    completions[rank] = await(submit(job.set(rank), request(rank), data.data(), nullptr));
  });
  return completions;
}

void check_works(InprocJob& job, const std::string& name) {
  for (const Completion& completion :
       each(job, [&](Rank) { return float_request(CollectiveKind::kAllreduce, name, 4); })) {
    INFO(completion.status.to_string());
    REQUIRE(completion.status.ok());
    CHECK(*reinterpret_cast<const float*>(completion.allocated.get()) == job.size());
  }
}

}  // namespace

TEST_CASE("every mismatch is the same error on all ranks, and the next collective works") {
  InprocJob job(4);
  const std::vector<std::pair<std::string, std::function<void(Request&)>>> differences = {
      {"float32 [4], rank 2 float64 [4]", [](Request& r) { r.dtype = DataType::kFloat64; }},
      {"float32 [4], rank 2 float32 [2,2]",
       [](Request& r) {
         r.shape = {2, 2};
       }},
      {"float32 [4] sum, rank 2 float32 [4] max", [](Request& r) { r.op = ReduceOp::kMax; }},
      {"prescale 1, rank 2 float32 [4] prescale 3", [](Request& r) { r.prescale = 3; }},
      {"postscale 1, rank 2 float32 [4] postscale 3", [](Request& r) { r.postscale = 3; }},
      {"allreduce float32 [4], rank 2 allgather float32 [*]",
       [](Request& r) { r.kind = CollectiveKind::kAllgather; }},
  };
  for (int round = 0; round < 2; ++round) {  // the second time, some of it is remembered
    for (const auto& [text, change] : differences) {
      const auto completions = each(job, [&, change = change](Rank rank) {
        Request request = float_request(CollectiveKind::kAllreduce, "weights", 4);
        if (rank == 2) change(request);
        return request;
      });
      for (const Completion& completion : completions) {
        CHECK(completion.status.code() == StatusCode::kMismatch);
        CHECK(completion.status.message() == completions[0].status.message());
      }
      INFO(completions[0].status.message());
      CHECK(completions[0].status.message().find("\"weights\": ranks 0,1,3 submitted ") !=
            std::string::npos);
      CHECK(completions[0].status.message().find(text) != std::string::npos);
      check_works(job, "weights");
    }
  }
  const auto roots = each(job, [](Rank rank) {
    Request request = float_request(CollectiveKind::kBroadcast, "b", 4);
    request.root = rank;
    return request;
  });
  CHECK(roots[3].status.message() ==
        "broadcast \"b\": rank 0 submitted float32 [4] root 0, rank 1 float32 [4] root 1, rank 2 "
        "float32 [4] root 2, rank 3 float32 [4] root 3");
  const auto columns = each(job, [](Rank rank) {
    Request request = float_request(CollectiveKind::kAllgather, "g", 4);
    request.shape = {rank, 2 + rank / 3};
    return request;
  });
  CHECK(columns[0].status.message() ==
        "allgather \"g\": ranks 0,1,2 submitted float32 [*,2], rank 3 float32 [*,3]");
  check_works(job, "weights");
}

TEST_CASE("a name twice in flight is an error on the caller alone") {
  InprocJob job(2);
  float data[2][4] = {};
  auto first =
      submit(job.set(0), float_request(CollectiveKind::kAllreduce, "x", 4), data[0], data[0]);
  const Completion twice = await(
      submit(job.set(0), float_request(CollectiveKind::kAllreduce, "x", 4), data[0], data[0]));
  CHECK(twice.status.code() == StatusCode::kInvalidArgument);
  CHECK(twice.status.message().find("allreduce \"x\"") == 0);
  auto other =
      submit(job.set(1), float_request(CollectiveKind::kAllreduce, "x", 4), data[1], data[1]);
  CHECK(await(first).status.ok());
  CHECK(await(other).status.ok());
}

TEST_CASE("a group fails as a whole on all ranks") {
  InprocJob job(3);
  std::vector<std::vector<Completion>> completions(3);
  job.on_each([&](Rank rank) {
    std::vector<float> data(8);
    std::vector<Request> requests;
    for (int i = 0; i < 3; ++i) {
      requests.push_back(float_request(CollectiveKind::kAllreduce, "g." + std::to_string(i),
                                       rank == 1 && i == 1 ? 5 : 4));
      requests.back().group = "g";
      requests.back().group_size = 3;
    }
    auto futures =
        submit_group(job.set(rank), requests,
                     {{data.data(), nullptr}, {data.data(), nullptr}, {data.data(), nullptr}});
    for (auto& future : futures) completions[rank].push_back(await(future));
  });
  for (const auto& of_rank : completions)
    for (const Completion& completion : of_rank)
      CHECK(completion.status.message() ==
            "allreduce \"g.1\": ranks 0,2 submitted float32 [4], rank 1 float32 [5]");
  check_works(job, "x");
}

TEST_CASE("half a group is refused") {
  InprocJob job(1);
  Request request = float_request(CollectiveKind::kAllreduce, "g.0", 0);
  request.group = "g";
  request.group_size = 2;
  CHECK(await(submit(job.set(0), request, nullptr, nullptr)).status.code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("what one rank never submits becomes an error, also for who comes late") {
  Options options;
  options.stall_warning_seconds = 0;
  options.stall_shutdown_seconds = 0.3;
  InprocJob job(3, options);
  std::vector<Completion> completions(3);
  job.on_each(
      [&](Rank rank) {
        completions[rank] = await(submit(
            job.set(rank), float_request(CollectiveKind::kAllreduce, "x", 0), nullptr, nullptr));
      },
      {0, 2});
  for (const Rank rank : {0, 2}) {
    CHECK(completions[rank].status.code() == StatusCode::kTimedOut);
    INFO(completions[rank].status.message());
    CHECK(completions[rank].status.message().find(
              "allreduce \"x\": submitted by ranks 0,2, but not by rank 1 (host h0) within") == 0);
  }
  const Completion late = await(
      submit(job.set(1), float_request(CollectiveKind::kAllreduce, "x", 0), nullptr, nullptr));
  CHECK(late.status.message() == completions[0].status.message());
  check_works(job, "x");
}

TEST_CASE("a lost rank is named to all others, with what was in flight") {
  for (const Rank lost : {0, 2}) {
    for (const bool shared_memory : {true, false}) {
      Options options;
      options.shared_memory = shared_memory;
      options.lanes = 2;
      InprocJob job(4, options);
      check_works(job, "before");
      std::vector<Rank> survivors;
      for (Rank rank = 0; rank < 4; ++rank)
        if (rank != lost) survivors.push_back(rank);
      std::atomic<int> started{0};
      std::vector<Status> statuses(4), later(4);
      // They reduce until it fails; the lost one takes part for a while.
      job.on_each([&](Rank rank) {
        std::vector<float> data(20000, 1);
        for (int i = 0; statuses[rank].ok(); ++i) {
          if (rank == lost && i == 20) {
            job.kill(lost);
            return;
          }
          ++started;
          statuses[rank] = await(submit(job.set(rank),
                                        float_request(CollectiveKind::kAllreduce,
                                                      "step" + std::to_string(i), 20000),
                                        data.data(), nullptr))
                               .status;
        }
        later[rank] = await(submit(job.set(rank), float_request(CollectiveKind::kBarrier, "b", 0),
                                   nullptr, nullptr))
                          .status;
      });
      for (const Rank rank : survivors) {
        INFO("rank " << rank << ": " << statuses[rank].to_string());
        CHECK(statuses[rank].code() == StatusCode::kPeerLost);
        CHECK(statuses[rank].lost_rank() == lost);
        CHECK(statuses[rank].message().find("rank " + std::to_string(lost) + " (host h0)") == 0);
        // Unless it came between two steps.
        const std::size_t list = statuses[rank].message().find("; in flight on this rank: ");
        if (list != std::string::npos)
          CHECK(statuses[rank].message().find("allreduce \"step", list) != std::string::npos);
        CHECK(later[rank].message() == statuses[rank].message());
      }
    }
  }
}

TEST_CASE("a rank that shuts down fails what others wait for, and is not called lost") {
  for (const Rank leaver : {0, 1}) {
    InprocJob job(3);
    check_works(job, "before");
    std::vector<Status> statuses(3), later(3);
    job.on_each([&](Rank rank) {
      if (rank == leaver) {
        job.runtime(rank).shutdown();
        return;
      }
      statuses[rank] =
          await(submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "x", 0), nullptr,
                       nullptr))
              .status;
      later[rank] = await(submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "y", 0),
                                 nullptr, nullptr))
                        .status;
    });
    for (Rank rank = 0; rank < 3; ++rank) {
      if (rank == leaver) continue;
      INFO(statuses[rank].to_string());
      CHECK(statuses[rank].code() == StatusCode::kAborted);
      CHECK(statuses[rank].message().find("rank " + std::to_string(leaver) +
                                          " (host h0) has shut down in an orderly way") == 0);
      CHECK(later[rank].code() == StatusCode::kAborted);
    }
    CHECK(await(submit(job.set(leaver), float_request(CollectiveKind::kAllreduce, "z", 0), nullptr,
                       nullptr))
              .status.code() == StatusCode::kAborted);
  }
}

TEST_CASE("who is done may leave while others still finish the same collective") {
  for (int round = 0; round < 20; ++round) {
    InprocJob job(4);
    std::vector<Status> statuses(4);
    job.on_each([&](Rank rank) {
      std::vector<float> data(100000, 1);
      statuses[rank] =
          await(submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "last", 100000),
                       data.data(), data.data()))
              .status;
      job.runtime(rank).shutdown();
    });
    for (const Status& status : statuses) CHECK(status.to_string() == "ok");
  }
}

TEST_CASE("start and shutdown again and again leave no thread") {
  { InprocJob warm_up(2); }
  const int before = test::count_threads();
  for (int i = 0; i < 50; ++i) {
    Options options;
    options.lanes = 1 + i % 3;
    InprocJob job(2, options);
    if (i % 2 == 0) check_works(job, "x");
  }
  CHECK(test::threads_fall_to(before));
}

TEST_CASE("64 ranks in one process") {
  InprocJob job(64);
  check_works(job, "x");
  const auto completions = each(job, [](Rank rank) {
    return float_request(CollectiveKind::kAllreduce, "y", rank == 63 ? 5 : 4);
  });
  CHECK(completions[0].status.message() ==
        "allreduce \"y\": ranks 0-62 submitted float32 [4], rank 63 float32 [5]");
  check_works(job, "y");
}

TEST_CASE("an unknown algorithm or process set is refused") {
  Options options;
  options.algorithm = "teleport";
  ProcessSet::Settings settings;
  settings.members = {0};
  settings.descriptions = {"rank 0 (host h0)"};
  const auto alone = Runtime::start_alone(options, "h0");
  CHECK(alone.status().code() == StatusCode::kInvalidArgument);
  const auto runtime = Runtime::start_alone({}, "h0");
  REQUIRE(runtime.ok());
  CHECK(!(*runtime)->process_set(1).ok());
  CHECK(!(*runtime)->process_set(-1).ok());
  CHECK((*runtime)->process_set(0).ok());
}
