// One rank of a job, through the C interface: rank MODE. Prints what happened, for job_test.cc.
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "bindings/c/allring.h"
#include "test/harness/thread_count.h"

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

[[noreturn]] void fail(const std::string& what) {
  std::printf("failed: %s: %s\n", what.c_str(), allring_last_error());
  std::fflush(stdout);
  std::_Exit(3);
}

void check(int status, const char* what) {
  if (status != ALLRING_OK) fail(what);
}

int start_allreduce(const char* name, std::vector<float>& data, allring_handle* handle) {
  const auto count = static_cast<std::int64_t>(data.size());
  return allring_allreduce_async(name, data.data(), data.data(), 1, &count, ALLRING_FLOAT32,
                                 ALLRING_SUM, 1, 1, ALLRING_GLOBAL_PROCESS_SET, handle);
}

int finish(allring_handle handle) {
  const int status = allring_wait(handle, -1);
  allring_release(handle);
  return status;
}

int allreduce(const char* name, std::vector<float>& data) {
  allring_handle handle = 0;
  const int status = start_allreduce(name, data, &handle);
  return status != ALLRING_OK ? status : finish(handle);
}

void barrier() {
  allring_handle handle = 0;
  check(allring_barrier_async(0, &handle), "barrier");
  check(finish(handle), "barrier");
}

// Small and large tensors, named and unnamed, some in flight together.
void train(int steps) {
  const int size = allring_size();
  std::vector<std::vector<float>> tensors;
  for (int count : {1, 10, 1000, 100000}) tensors.emplace_back(count);
  for (int step = 0; step < steps; ++step) {
    std::vector<allring_handle> handles(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].assign(tensors[i].size(), static_cast<float>(allring_rank() + step));
      const std::string name = "tensor." + std::to_string(i);
      check(start_allreduce(i == 1 ? nullptr : name.c_str(), tensors[i], &handles[i]), "submit");
    }
    const auto expected = static_cast<float>(size * (size - 1) / 2 + size * step);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      check(finish(handles[i]), "wait");
      for (float value : tensors[i])
        if (value != expected) fail("a wrong sum");
    }
  }
}

// Prints a fingerprint of averages of floats that each order of adding rounds otherwise, of many
// sizes and all in flight together.
void print_bits() {
  std::vector<std::vector<float>> tensors;
  std::vector<allring_handle> handles;
  std::uint32_t state = 12345u + 977u * static_cast<std::uint32_t>(allring_rank());
  for (int count : {1, 3, 14, 15, 500, 501, 20000, 300001}) {
    std::vector<float>& tensor = tensors.emplace_back(count);
    for (float& value : tensor) {
      state = state * 1664525u + 1013904223u;
      value = std::ldexp(static_cast<float>(static_cast<int>(state >> 8) - (1 << 23)),
                         static_cast<int>(state % 24));
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto count = static_cast<std::int64_t>(tensors[i].size());
    check(allring_allreduce_async(("bits." + std::to_string(i)).c_str(), tensors[i].data(),
                                  tensors[i].data(), 1, &count, ALLRING_FLOAT32, ALLRING_AVERAGE, 1,
                                  1, ALLRING_GLOBAL_PROCESS_SET, &handles.emplace_back()),
          "submit");
  }
  for (const allring_handle handle : handles) check(finish(handle), "wait");
  std::uint64_t hash = 14695981039346656037u;
  for (const std::vector<float>& tensor : tensors) {
    for (const float value : tensor) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      hash = (hash ^ bits) * 1099511628211u;
    }
  }
  std::printf("bits %016llx\n", static_cast<unsigned long long>(hash));
}

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

std::ptrdiff_t resident_pages() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long total = 0, resident = 0;
  if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = -1;
  std::fclose(file);
  return resident;
}

// Prints why the collectives ended, after some steps of them.
void until_it_fails(int victim, int signal) {
  std::vector<float> data(50000);
  int status = ALLRING_OK;
  double started = 0;
  // The victim never submits it, so it is in flight whenever the end comes.
  std::vector<float> held(1);
  allring_handle pending = 0;
  if (allring_rank() != victim) status = start_allreduce("held", held, &pending);
  for (int step = 0; status == ALLRING_OK; ++step) {
    if (step == 50 && allring_rank() == victim) raise(signal);
    started = now();
    status = allreduce("gradient", data);
  }
  const double took = now() - started;
  std::printf("status %d lost %d after %.1f s: %s\n", status, allring_last_error_rank(), took,
              allring_last_error());
  // Everything later says the same, at once.
  const std::string first = allring_last_error();
  allring_handle handle = 0;
  if (allring_barrier_async(0, &handle) != status || first != allring_last_error())
    fail("later calls say something else");
  if (pending != 0 && finish(pending) != status) fail("what was in flight says something else");
}

void again_and_again(int rounds) {
  std::ptrdiff_t descriptors = 0, pages = 0;
  int threads = 0;
  for (int round = 0; round < rounds; ++round) {
    check(allring_init(), "init");
    train(2);
    check(allring_shutdown(), "shutdown");
    if (round == 4) {
      descriptors = entries("/proc/self/fd");
      threads = allring::test::count_threads();
      pages = resident_pages();
    }
  }
  if (entries("/proc/self/fd") != descriptors) fail("descriptors leak");
  if (!allring::test::threads_fall_to(threads)) fail("threads leak");
  std::printf("grew by %td pages\n", resident_pages() - pages);
}

int processor_milliseconds() { return static_cast<int>(1000.0 * std::clock() / CLOCKS_PER_SEC); }

// Leaves the job when everything else of the program is gone; an error must not be a crash.
struct LastOne {
  ~LastOne() {
    if (!armed) return;
    allring_handle handle = 0;
    allring_barrier_async(0, &handle);
    allring_shutdown();
    allring_shutdown();
    std::printf("%s%s\n", *allring_last_error() != '\0' ? "" : "no error", "done");
  }
  bool armed = false;
} last_one;

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "again") {
    again_and_again(50);
    std::printf("done\n");
    return 0;
  }
  check(allring_init(), "init");
  if (mode == "exit") {
    train(3);
    std::atexit([] {
      std::vector<float> data(10);
      check(allreduce("late", data), "a collective at exit");
    });
    last_one.armed = true;
    return 0;
  }
  if (mode == "train") {
    train(100);
  } else if (mode == "bits") {
    print_bits();
  } else if (mode == "killed") {
    until_it_fails(2, SIGKILL);
  } else if (mode == "root killed") {
    until_it_fails(0, SIGKILL);
  } else if (mode == "frozen") {
    until_it_fails(1, SIGSTOP);
  } else if (mode == "leaves") {
    train(3);
    if (allring_rank() != 1) until_it_fails(-1, 0);
  } else if (mode == "exits without a word") {
    if (allring_rank() == 1) {
      // Others may not have noticed yet that the last step is done: theirs has the same name.
      std::vector<float> data(50000);
      for (int step = 0; step < 5; ++step) check(allreduce("gradient", data), "allreduce");
      std::_Exit(0);
    }
    until_it_fails(-1, 0);
  } else if (mode == "idle") {
    train(3);
    barrier();
    const int before = processor_milliseconds();
    const timespec second = {1, 0};
    nanosleep(&second, nullptr);
    std::printf("used %d ms\n", processor_milliseconds() - before);
    barrier();
  } else {
    fail("unknown mode");
  }
  check(allring_shutdown(), "shutdown");
  std::printf("done\n");
  return 0;
}
