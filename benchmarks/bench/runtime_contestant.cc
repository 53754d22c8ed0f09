#include <cstring>
#include <string>

#include "benchmarks/bench/contestant.h"
#include "bindings/c/allring.h"

namespace allring::bench {

namespace {

Status last_error(int code) { return {static_cast<StatusCode>(code), allring_last_error()}; }

class RuntimeContestant final : public Contestant {
 public:
  ~RuntimeContestant() override { allring_shutdown(); }

  const char* layer() const override { return "runtime"; }
  int rank() const override { return allring_rank(); }
  int size() const override { return allring_size(); }
  int hosts() const override { return hosts_; }
  std::string_view algorithm(const Call&) override { return ""; }

  Status run(const Call& call) override { return run(call, false); }
  Status run_into_output(const Call& call) override { return run(call, true); }

  Status run(const Call& call, bool fetches) {
    allring_handle handle = 0;
    const std::string name = "bench." + std::to_string(static_cast<int>(call.kind)) + "." +
                             std::to_string(call.count) + (call.input == call.output ? ".i" : ".o");
    if (int code = start(call, name.c_str(), &handle)) return last_error(code);
    const int code = allring_wait(handle, -1);
    Status status = code == ALLRING_OK ? Status() : last_error(code);
    if (status.ok() && fetches) status = fetch(call, handle);
    allring_release(handle);
    return status;
  }

  /// Each host has one rank with local rank 0.
  Status count_hosts() {
    double first = allring_local_rank() == 0 ? 1 : 0;
    Call call;
    call.dtype = DataType::kFloat64;
    call.count = 1;
    call.input = call.output = &first;
    ALLRING_RETURN_IF_ERROR(run(call));
    hosts_ = static_cast<int>(first);
    return {};
  }

  Status barrier() override {
    Call call;
    call.kind = CollectiveKind::kBarrier;
    return run(call);
  }

 protected:
  Result<Memory> allocate_in_arena(std::size_t bytes) override {
    void* data = nullptr;
    if (int code = allring_arena_allocate(bytes, &data))
      return last_error(code).with_prefix("--buffers arena: ");
    return Memory(static_cast<std::byte*>(data), bytes,
                  [](std::byte* used) { allring_arena_free(used); });
  }

 private:
  static int start(const Call& call, const char* name, allring_handle* handle) {
    const auto count = static_cast<std::int64_t>(call.count);
    const std::int64_t part = count / allring_size();
    const int dtype = static_cast<int>(call.dtype);
    const int op = static_cast<int>(call.op);
    const int set = ALLRING_GLOBAL_PROCESS_SET;
    switch (call.kind) {
      case CollectiveKind::kAllreduce:
        return allring_allreduce_async(name, call.input, call.output, 1, &count, dtype, op, 1, 1,
                                       set, handle);
      case CollectiveKind::kAllgather:
        return allring_allgather_async(name, call.input, 1, &part, dtype, set, handle);
      case CollectiveKind::kReduceScatter:
        return allring_reduce_scatter_async(name, call.input, 1, &count, dtype, op, 1, 1, set,
                                            handle);
      case CollectiveKind::kBroadcast:
        return allring_broadcast_async(name, call.input, call.output, 1, &count, dtype, call.root,
                                       set, handle);
      case CollectiveKind::kAlltoall:
        return allring_alltoall_async(name, call.input, 1, &count, dtype, 0, nullptr, set, handle);
      case CollectiveKind::kBarrier:
        return allring_barrier_async(set, handle);
    }
    return ALLRING_INTERNAL;
  }

  /// Copies the output from where the library allocated it.
  static Status fetch(const Call& call, allring_handle handle) {
    if (call.kind == CollectiveKind::kAllreduce || call.kind == CollectiveKind::kBroadcast ||
        call.kind == CollectiveKind::kBarrier)
      return {};
    void* data = nullptr;
    int ndim = 0;
    std::int64_t shape[64];
    if (int code = allring_output(handle, 0, &data, &ndim, shape)) return last_error(code);
    std::size_t bytes = element_bytes(call.dtype);
    for (int i = 0; i < ndim; ++i) bytes *= static_cast<std::size_t>(shape[i]);
    std::memcpy(call.output, data, bytes);
    return {};
  }

  int hosts_ = 1;
};

}  // namespace

Result<std::unique_ptr<Contestant>> make_runtime_contestant() {
  if (int code = allring_init()) return last_error(code);
  auto contestant = std::make_unique<RuntimeContestant>();
  ALLRING_RETURN_IF_ERROR(contestant->count_hosts());
  return std::unique_ptr<Contestant>(std::move(contestant));
}

}  // namespace allring::bench
