#include "runtime/request/tensor_queue.h"

#include <catch2/catch.hpp>
#include <thread>

using namespace allring;

namespace {

Submission submission(const std::string& name, int* done = nullptr) {
  Submission result;
  result.request.name = name;
  result.done = [done](Completion) {
    if (done != nullptr) ++*done;
  };
  return result;
}

std::vector<Submission> several(const std::vector<std::string>& names) {
  std::vector<Submission> result;
  for (const std::string& name : names) result.push_back(submission(name));
  return result;
}

std::vector<std::string> names_of(const std::vector<Submission>& submissions) {
  std::vector<std::string> names;
  for (const Submission& submission : submissions) names.push_back(submission.request.name);
  return names;
}

}  // namespace

TEST_CASE("submissions come out in order, and only the first of a batch wakes") {
  int wakes = 0;
  TensorQueue queue([&] { ++wakes; });
  REQUIRE(queue.push(several({"a", "b"})).ok());
  REQUIRE(queue.push(several({"c"})).ok());
  CHECK(wakes == 1);
  CHECK(names_of(queue.take()) == std::vector<std::string>{"a", "b", "c"});
  CHECK(queue.take().empty());
  REQUIRE(queue.push(several({"d"})).ok());
  CHECK(wakes == 2);
  REQUIRE(queue.push({}).ok());
  CHECK(wakes == 2);
}

TEST_CASE("a name in flight is refused until it is complete") {
  TensorQueue queue([] {});
  int done = 0;
  REQUIRE(queue.push({}).ok());
  std::vector<Submission> first;
  first.push_back(submission("x", &done));
  REQUIRE(queue.push(std::move(first)).ok());
  const Status twice = queue.push(several({"y", "x"}));
  CHECK(twice.code() == StatusCode::kInvalidArgument);
  CHECK(twice.message().find("allreduce \"x\"") == 0);
  // All or none: y is not in flight.
  REQUIRE(queue.push(several({"y"})).ok());
  std::vector<Submission> taken = queue.take();
  CHECK(names_of(taken) == std::vector<std::string>{"x", "y"});
  CHECK(queue.push(several({"x"})).code() == StatusCode::kInvalidArgument);
  queue.complete(std::move(taken[0]), {});
  CHECK(done == 1);
  CHECK(queue.push(several({"x"})).ok());
}

TEST_CASE("one push may not name a tensor twice") {
  TensorQueue queue([] {});
  CHECK(queue.push(several({"a", "b", "a"})).code() == StatusCode::kInvalidArgument);
  CHECK(queue.in_flight().empty());
  CHECK(queue.push(several({"a", "b"})).ok());
}

TEST_CASE("the name is free when done is called") {
  TensorQueue queue([] {});
  bool again = false;
  Submission one = submission("x");
  one.done = [&](Completion) { again = queue.push(several({"x"})).ok(); };
  std::vector<Submission> push;
  push.push_back(std::move(one));
  REQUIRE(queue.push(std::move(push)).ok());
  queue.complete(std::move(queue.take().front()), {});
  CHECK(again);
}

TEST_CASE("a closed queue refuses with the first reason, and gives what it has") {
  int wakes = 0;
  TensorQueue queue([&] { ++wakes; });
  REQUIRE(queue.push(several({"a"})).ok());
  queue.close(Status::aborted("first"));
  queue.close(Status::aborted("second"));
  const Status refused = queue.push(several({"b"}));
  CHECK(refused.code() == StatusCode::kAborted);
  CHECK(refused.message() == "first");
  CHECK(wakes == 1);
  CHECK(queue.take().size() == 1);
  CHECK(queue.in_flight() == std::vector<std::string>{"allreduce \"a\""});
}

TEST_CASE("many threads push while one takes") {
  TensorQueue queue([] {});
  constexpr int kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        (void)queue.push(several({std::to_string(t) + "." + std::to_string(i)}));
    });
  int taken = 0;
  while (taken < kThreads * kEach)
    for (Submission& submission : queue.take()) {
      queue.complete(std::move(submission), {});
      ++taken;
    }
  for (std::thread& thread : threads) thread.join();
  CHECK(queue.in_flight().empty());
}
