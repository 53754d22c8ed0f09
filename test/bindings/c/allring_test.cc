#include "bindings/c/allring.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

// The library alone in its process, for the length of a test.
class Alone {
 public:
  Alone() { REQUIRE(allring_init() == ALLRING_OK); }
  ~Alone() { allring_shutdown(); }
};

std::string error() { return allring_last_error(); }

bool error_contains(const std::string& part) {
  UNSCOPED_INFO(error());
  return error().find(part) != std::string::npos;
}

constexpr std::int64_t kFour[] = {4};

int allreduce(const char* name, const float* input, float* output, allring_handle* handle) {
  return allring_allreduce_async(name, input, output, 1, kFour, ALLRING_FLOAT32, ALLRING_SUM, 1, 1,
                                 ALLRING_GLOBAL_PROCESS_SET, handle);
}

}  // namespace

TEST_CASE("before init everything says so") {
  CHECK(allring_is_initialized() == 0);
  CHECK(allring_rank() == -1);
  CHECK(error_contains("init"));
  CHECK(allring_size() == -1);
  CHECK(allring_is_homogeneous() == -1);
  allring_handle handle = 7;
  CHECK(allring_barrier_async(0, &handle) == ALLRING_INVALID_ARGUMENT);
  CHECK(handle == 7);
  CHECK(allring_shutdown() == ALLRING_OK);
  CHECK(std::string(allring_version()) != "");
  CHECK(allring_abi_version() == ALLRING_ABI_VERSION);
  CHECK(allring_describe(nullptr, 0) > 0);
}

TEST_CASE("one rank alone") {
  Alone alone;
  CHECK(allring_init() == ALLRING_OK);  // again: nothing happens
  CHECK(allring_is_initialized() == 1);
  CHECK(allring_rank() == 0);
  CHECK(allring_size() == 1);
  CHECK(allring_local_rank() == 0);
  CHECK(allring_local_size() == 1);
  CHECK(allring_cross_rank() == 0);
  CHECK(allring_cross_size() == 1);
  CHECK(allring_is_homogeneous() == 1);

  const float input[4] = {1, 2, 3, 4};
  float output[4] = {};
  allring_handle handle = 0;
  REQUIRE(allring_allreduce_async("x", input, output, 1, kFour, ALLRING_FLOAT32, ALLRING_AVERAGE,
                                  0.5, 4, 0, &handle) == ALLRING_OK);
  REQUIRE(allring_wait(handle, -1) == ALLRING_OK);
  CHECK(allring_poll(handle) == 1);
  CHECK(output[3] == 8);
  void* data = nullptr;
  int ndim = 0;
  std::int64_t shape[64];
  REQUIRE(allring_output(handle, 0, &data, &ndim, shape) == ALLRING_OK);
  CHECK(data == output);
  CHECK(ndim == 1);
  CHECK(shape[0] == 4);
  CHECK(allring_release(handle) == ALLRING_OK);
  CHECK(allring_release(handle) == ALLRING_INVALID_ARGUMENT);
  CHECK(allring_poll(handle) == -1);
  CHECK(allring_wait(handle, 0) == ALLRING_INVALID_ARGUMENT);
}

TEST_CASE("each kind alone") {
  Alone alone;
  const std::int32_t input[6] = {1, 2, 3, 4, 5, 6};
  const std::int64_t rows[2] = {3, 2};
  std::vector<allring_handle> handles(5);
  std::int32_t broadcast[6] = {};
  REQUIRE(allring_allgather_async("ag", input, 2, rows, ALLRING_INT32, 0, &handles[0]) == 0);
  REQUIRE(allring_reduce_scatter_async("rs", input, 2, rows, ALLRING_INT32, ALLRING_SUM, 1, 1, 0,
                                       &handles[1]) == 0);
  REQUIRE(allring_alltoall_async("aa", input, 2, rows, ALLRING_INT32, 0, nullptr, 0, &handles[2]) ==
          0);
  REQUIRE(allring_broadcast_async("bc", input, broadcast, 2, rows, ALLRING_INT32, 0, 0,
                                  &handles[3]) == 0);
  REQUIRE(allring_barrier_async(0, &handles[4]) == 0);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(allring_wait(handles[i], -1) == ALLRING_OK);
    void* data = nullptr;
    int ndim = 0;
    std::int64_t shape[64];
    const int status = allring_output(handles[i], 0, &data, &ndim, shape);
    if (i == 4) {
      CHECK(status == ALLRING_INVALID_ARGUMENT);
      continue;
    }
    REQUIRE(status == ALLRING_OK);
    CHECK(ndim == 2);
    CHECK(shape[0] == 3);
    CHECK(std::vector<std::int32_t>(static_cast<std::int32_t*>(data),
                                    static_cast<std::int32_t*>(data) + 6) ==
          std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  }
  std::int64_t received[1] = {};
  CHECK(allring_received_splits(handles[2], received) == ALLRING_OK);
  CHECK(received[0] == 3);
  CHECK(allring_received_splits(handles[0], received) == ALLRING_INVALID_ARGUMENT);
}

TEST_CASE("a group has one handle") {
  Alone alone;
  const float input[4] = {1, 2, 3, 4};
  float output[4] = {};
  std::vector<allring_tensor> tensors(
      3, {sizeof(allring_tensor), nullptr, input, nullptr, 1, kFour, ALLRING_FLOAT32});
  tensors[1].output = output;
  allring_handle handle = 0;
  REQUIRE(allring_grouped_async(ALLRING_KIND_ALLREDUCE, "g", 3, tensors.data(), ALLRING_SUM, 1, 2,
                                0, 0, &handle) == ALLRING_OK);
  REQUIRE(allring_wait(handle, -1) == ALLRING_OK);
  CHECK(output[3] == 8);
  for (int i = 0; i < 3; ++i) {
    void* data = nullptr;
    int ndim = 0;
    std::int64_t shape[64];
    REQUIRE(allring_output(handle, i, &data, &ndim, shape) == ALLRING_OK);
    CHECK((data == output) == (i == 1));
    CHECK(static_cast<float*>(data)[2] == 6);
  }
  void* data = nullptr;
  int ndim = 0;
  CHECK(allring_output(handle, 3, &data, &ndim, nullptr) == ALLRING_INVALID_ARGUMENT);
  CHECK(allring_grouped_async(ALLRING_KIND_ALLTOALL, "g", 3, tensors.data(), ALLRING_SUM, 1, 1, 0,
                              0, &handle) == ALLRING_INVALID_ARGUMENT);
  tensors[2].dtype = 99;
  CHECK(allring_grouped_async(ALLRING_KIND_ALLREDUCE, "g2", 3, tensors.data(), ALLRING_SUM, 1, 1, 0,
                              0, &handle) == ALLRING_INVALID_ARGUMENT);
  CHECK(error_contains("member 2"));
}

TEST_CASE("wrong arguments are refused by name") {
  Alone alone;
  const float input[4] = {};
  float output[4] = {};
  allring_handle handle = 0;
  const auto refused = [&](int status, const std::string& part) {
    CHECK(status == ALLRING_INVALID_ARGUMENT);
    CHECK(error_contains(part));
  };
  const auto call = [&](const void* in, void* out, int ndim, const std::int64_t* shape, int dtype,
                        int op, double scale, int set) {
    return allring_allreduce_async("t", in, out, ndim, shape, dtype, op, scale, 1, set, &handle);
  };
  refused(call(nullptr, output, 1, kFour, 7, 1, 1, 0), "input must not be NULL");
  refused(call(input, nullptr, 1, kFour, 7, 1, 1, 0), "output must not be NULL");
  refused(call(input, output, 1, nullptr, 7, 1, 1, 0), "shape must not be NULL");
  refused(call(input, output, -1, kFour, 7, 1, 1, 0), "ndim is -1");
  refused(call(input, output, 65, kFour, 7, 1, 1, 0), "ndim is 65");
  refused(call(input, output, 1, kFour, 11, 1, 1, 0), "dtype 11");
  refused(call(input, output, 1, kFour, -1, 1, 1, 0), "dtype -1");
  refused(call(input, output, 1, kFour, 7, 6, 1, 0), "op 6");
  refused(call(input, output, 1, kFour, 7, 1, std::numeric_limits<double>::infinity(), 0),
          "finite");
  refused(call(input, output, 1, kFour, 7, 1, 1, 3), "process set 3");
  refused(call(input, output, 1, kFour, 7, 1, 1, -1), "process set -1");
  refused(call(input, output, 1, kFour, ALLRING_BOOL, ALLRING_AVERAGE, 1, 0), "bool");
  const std::int64_t negative[] = {2, -3};
  refused(call(input, output, 2, negative, 7, 1, 1, 0), "[2,-3]");
  const std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  refused(call(input, output, 2, huge, 7, 1, 1, 0), "more bytes");
  CHECK(call(input, output, 1, kFour, 7, ALLRING_ADASUM, 1, 0) == ALLRING_UNSUPPORTED);
  refused(allreduce("", input, output, &handle), "name");
  refused(allreduce("t", input, output, nullptr), "handle");
  refused(allring_broadcast_async("t", input, output, 1, kFour, 7, 1, 0, &handle), "rank 1");
  refused(allring_broadcast_async("t", input, output, 1, kFour, 7, -1, 0, &handle), "rank -1");
  refused(allring_allgather_async("t", input, 0, nullptr, 7, 0, &handle), "scalar");
  refused(allring_reduce_scatter_async("t", input, 1, kFour, 7, ALLRING_MAX, 1, 1, 0, &handle),
          "max");
  const std::int64_t splits[] = {5, 0};
  refused(allring_alltoall_async("t", input, 1, kFour, 7, 1, splits, 0, &handle), "[5]");
  refused(allring_alltoall_async("t", input, 1, kFour, 7, 2, splits, 0, &handle), "2 splits");
  refused(allring_alltoall_async("t", input, 1, kFour, 7, 1, nullptr, 0, &handle), "splits");
  refused(allring_output(999, 0, nullptr, nullptr, nullptr), "NULL");
  // None of it has used up a name.
  REQUIRE(allreduce("t", input, output, &handle) == ALLRING_OK);
  CHECK(allring_wait(handle, -1) == ALLRING_OK);
}

TEST_CASE("scalars and empty tensors") {
  Alone alone;
  const double input = 3;
  double output = 0;
  allring_handle handle = 0;
  REQUIRE(allring_allreduce_async("s", &input, &output, 0, nullptr, ALLRING_FLOAT64, ALLRING_SUM, 1,
                                  1, 0, &handle) == ALLRING_OK);
  CHECK(allring_wait(handle, -1) == ALLRING_OK);
  CHECK(output == 3);
  const std::int64_t none[] = {0, 3};
  REQUIRE(allring_allgather_async("e", nullptr, 2, none, ALLRING_FLOAT64, 0, &handle) ==
          ALLRING_OK);
  CHECK(allring_wait(handle, -1) == ALLRING_OK);
  void* data = nullptr;
  int ndim = 0;
  std::int64_t shape[64] = {7, 7};
  CHECK(allring_output(handle, 0, &data, &ndim, shape) == ALLRING_OK);
  CHECK(data != nullptr);
  CHECK(shape[0] == 0);
  CHECK(shape[1] == 3);
}

TEST_CASE("errors belong to their thread") {
  Alone alone;
  CHECK(allring_poll(12345) == -1);
  const std::string mine = error();
  std::thread([] {
    allring_handle handle;
    allring_barrier_async(77, &handle);
  }).join();
  CHECK(error() == mine);
}

TEST_CASE("init and shutdown again and again") {
  const auto count_of = [](const char* folder) {
    int count = 0;
    std::string command = std::string("ls /proc/self/") + folder + " | wc -l";
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(fscanf(pipe, "%d", &count) == 1);
    pclose(pipe);
    return count;
  };
  { Alone warm_up; }
  const int descriptors = count_of("fd");
  allring_handle former = 0;
  for (int i = 0; i < 50; ++i) {
    Alone alone;
    const float input[4] = {1, 1, 1, 1};
    float output[4] = {};
    allring_handle handle = 0;
    REQUIRE(allreduce(nullptr, input, output, &handle) == ALLRING_OK);
    CHECK(handle > former);
    // Handles outlive a shutdown, done well or aborted by it.
    if (former != 0) CHECK(allring_poll(former) == 1);
    CHECK((former == 0 || allring_release(former) == ALLRING_OK));
    CHECK(allring_poll(former) == -1);
    former = handle;
    if (i % 2 == 0) CHECK(allring_wait(handle, -1) == ALLRING_OK);
  }
  CHECK(count_of("fd") == descriptors);
  CHECK(allring_release(former) == ALLRING_OK);
  CHECK(allring_wait(former, 0) == ALLRING_INVALID_ARGUMENT);
}

TEST_CASE("a result of the library's outlives the runtime") {
  allring_handle handle = 0;
  {
    Alone alone;
    const float input[3] = {1, 2, 3};
    const int64_t shape = 3;
    REQUIRE(allring_allgather_async(nullptr, input, 1, &shape, ALLRING_FLOAT32, 0, &handle) ==
            ALLRING_OK);
    REQUIRE(allring_wait(handle, -1) == ALLRING_OK);
  }
  void* data = nullptr;
  int ndim = 0;
  int64_t rows = 0;
  REQUIRE(allring_output(handle, 0, &data, &ndim, &rows) == ALLRING_OK);
  CHECK(rows == 3);
  CHECK(static_cast<const float*>(data)[2] == 3);
  CHECK(allring_release(handle) == ALLRING_OK);
}

TEST_CASE("a forked child is told so and does not hang") {
  Alone alone;
  const pid_t child = fork();
  if (child == 0) {
    allring_handle handle = 0;
    bool well = allring_init() == ALLRING_INVALID_ARGUMENT &&
                std::string(allring_last_error()).find("forked") != std::string::npos;
    well = well && allring_barrier_async(0, &handle) == ALLRING_INVALID_ARGUMENT;
    well = well && allring_shutdown() == ALLRING_INVALID_ARGUMENT && allring_rank() == -1;
    well = well && allring_is_initialized() == 0 && allring_poll(1) == -1;
    well = well && allring_describe(nullptr, 0) == -1 && *allring_version() != '\0';
    _exit(well ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(allring_rank() == 0);
}

TEST_CASE("the description is cut to the buffer") {
  Alone alone;
  const std::int64_t needed = allring_describe(nullptr, 0);
  REQUIRE(needed > 100);
  std::vector<char> whole(static_cast<std::size_t>(needed), 'x');
  CHECK(allring_describe(whole.data(), whole.size()) == needed);
  CHECK(whole.back() == '\0');
  CHECK(std::string(whole.data()).size() == whole.size() - 1);
  char part[10];
  CHECK(allring_describe(part, sizeof part) == needed);
  CHECK(std::string(part) == std::string(whole.data()).substr(0, 9));
}
