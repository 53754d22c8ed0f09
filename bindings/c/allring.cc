#include "bindings/c/allring.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "allring_version.h"
#include "bindings/c/call.h"
#include "bindings/c/describe.h"
#include "bindings/c/last_error.h"
#include "bindings/c/process.h"

namespace allring {
namespace {

// Runs `body` where it may: not in a forked child, and no exception leaves.
template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    if (Status status = Process::instance().check_fork(); !status.ok()) return record(status);
    return record(body());
  } catch (const std::bad_alloc&) {
    return record(Status(StatusCode::kOutOfMemory, "no memory"));
  } catch (const std::exception& error) {
    return record(Status(StatusCode::kInternal, error.what()));
  } catch (...) {
    return record(Status(StatusCode::kInternal, "an unknown exception"));
  }
}

// The number that `read` takes from the runtime, or -1.
template <typename Read>
int from_runtime(Read&& read) noexcept {
  int value = -1;
  guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(const std::shared_ptr<Runtime> runtime, Process::instance().runtime());
    value = read(*runtime);
    return {};
  });
  return value;
}

// A handle's operation, done and well.
Result<std::shared_ptr<Operation>> succeeded(allring_handle handle) {
  ALLRING_ASSIGN_OR_RETURN(std::shared_ptr<Operation> operation,
                           Process::instance().handles().find(handle));
  const std::optional<Status> status = operation->wait(0);
  if (!status)
    return Status::invalid_argument("handle " + std::to_string(handle) +
                                    " is not done; wait for it first");
  ALLRING_RETURN_IF_ERROR(*status);
  return operation;
}

Result<CollectiveKind> groupable(int kind) {
  switch (kind) {
    case ALLRING_KIND_ALLREDUCE:
    case ALLRING_KIND_REDUCE_SCATTER:
    case ALLRING_KIND_ALLGATHER:
    case ALLRING_KIND_BROADCAST:
      return static_cast<CollectiveKind>(kind);
    default:
      return Status::invalid_argument(
          "kind " + std::to_string(kind) +
          " cannot be grouped: expected 0 (allreduce), 1 (reduce_scatter), 2 (allgather) or 3 " +
          "(broadcast)");
  }
}

// A barrier is a tensor without elements.
constexpr int64_t kNoRows = 0;

static_assert(static_cast<int>(CollectiveKind::kAllreduce) == ALLRING_KIND_ALLREDUCE);
static_assert(static_cast<int>(CollectiveKind::kReduceScatter) == ALLRING_KIND_REDUCE_SCATTER);
static_assert(static_cast<int>(CollectiveKind::kAllgather) == ALLRING_KIND_ALLGATHER);
static_assert(static_cast<int>(CollectiveKind::kBroadcast) == ALLRING_KIND_BROADCAST);
static_assert(static_cast<int>(CollectiveKind::kAlltoall) == ALLRING_KIND_ALLTOALL);
static_assert(static_cast<int>(CollectiveKind::kBarrier) == ALLRING_KIND_BARRIER);
static_assert(static_cast<int>(DataType::kBfloat16) == ALLRING_BFLOAT16);
static_assert(static_cast<int>(ReduceOp::kProduct) == ALLRING_PRODUCT);
static_assert(static_cast<int>(StatusCode::kInternal) == ALLRING_INTERNAL);

}  // namespace
}  // namespace allring

using namespace allring;  // NOLINT: this file is the outside of the namespace

extern "C" {

const char* allring_version(void) { return kVersion; }

int allring_abi_version(void) { return ALLRING_ABI_VERSION; }

const char* allring_last_error(void) { return recorded_message(); }

int allring_last_error_rank(void) { return recorded_rank(); }

int allring_init(void) {
  return guarded([] { return Process::instance().init(); });
}

int allring_shutdown(void) {
  return guarded([] { return Process::instance().shutdown(); });
}

int allring_is_initialized(void) {
  bool initialized = false;
  guarded([&]() -> Status {
    initialized = Process::instance().runtime_or_null() != nullptr;
    return {};
  });
  return initialized ? 1 : 0;
}

int allring_rank(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().rank; });
}

int allring_size(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().size; });
}

int allring_local_rank(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().local_rank; });
}

int allring_local_size(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().local_size; });
}

int allring_cross_rank(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().cross_rank; });
}

int allring_cross_size(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().cross_size; });
}

int allring_is_homogeneous(void) {
  return from_runtime([](const Runtime& runtime) { return runtime.place().homogeneous ? 1 : 0; });
}

int allring_allreduce_async(const char* name, const void* input, void* output, int ndim,
                            const int64_t* shape, int dtype, int op, double prescale,
                            double postscale, int process_set, allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(Call call,
                             Call::begin(CollectiveKind::kAllreduce, name, process_set, handle));
    ALLRING_RETURN_IF_ERROR(call.set_reduction(op, prescale, postscale));
    ALLRING_RETURN_IF_ERROR(call.add(input, output, Call::Output::kCaller, ndim, shape, dtype));
    return call.submit(false, handle);
  });
}

int allring_allgather_async(const char* name, const void* input, int ndim, const int64_t* shape,
                            int dtype, int process_set, allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(Call call,
                             Call::begin(CollectiveKind::kAllgather, name, process_set, handle));
    ALLRING_RETURN_IF_ERROR(call.add(input, nullptr, Call::Output::kLibrary, ndim, shape, dtype));
    return call.submit(false, handle);
  });
}

int allring_broadcast_async(const char* name, const void* input, void* output, int ndim,
                            const int64_t* shape, int dtype, int root, int process_set,
                            allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(Call call,
                             Call::begin(CollectiveKind::kBroadcast, name, process_set, handle));
    ALLRING_RETURN_IF_ERROR(call.set_root(root));
    ALLRING_RETURN_IF_ERROR(call.add(input, output, Call::Output::kCaller, ndim, shape, dtype));
    return call.submit(false, handle);
  });
}

int allring_alltoall_async(const char* name, const void* input, int ndim, const int64_t* shape,
                           int dtype, int nsplits, const int64_t* splits, int process_set,
                           allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(Call call,
                             Call::begin(CollectiveKind::kAlltoall, name, process_set, handle));
    ALLRING_RETURN_IF_ERROR(call.add(input, nullptr, Call::Output::kLibrary, ndim, shape, dtype));
    ALLRING_RETURN_IF_ERROR(call.set_splits(nsplits, splits));
    return call.submit(false, handle);
  });
}

int allring_reduce_scatter_async(const char* name, const void* input, int ndim,
                                 const int64_t* shape, int dtype, int op, double prescale,
                                 double postscale, int process_set, allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(
        Call call, Call::begin(CollectiveKind::kReduceScatter, name, process_set, handle));
    ALLRING_RETURN_IF_ERROR(call.set_reduction(op, prescale, postscale));
    ALLRING_RETURN_IF_ERROR(call.add(input, nullptr, Call::Output::kLibrary, ndim, shape, dtype));
    return call.submit(false, handle);
  });
}

int allring_barrier_async(int process_set, allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(Call call,
                             Call::begin(CollectiveKind::kBarrier, nullptr, process_set, handle));
    ALLRING_RETURN_IF_ERROR(call.add(nullptr, nullptr, Call::Output::kEither, 1, &kNoRows, 0));
    return call.submit(false, handle);
  });
}

int allring_grouped_async(int kind, const char* name, int count, const allring_tensor* tensors,
                          int op, double prescale, double postscale, int root, int process_set,
                          allring_handle* handle) {
  return guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(const CollectiveKind collective, groupable(kind));
    ALLRING_ASSIGN_OR_RETURN(Call call, Call::begin(collective, name, process_set, handle));
    if (count < 1 || tensors == nullptr)
      return Status::invalid_argument("a group has at least one tensor, got " +
                                      std::to_string(count));
    const bool reduces =
        collective == CollectiveKind::kAllreduce || collective == CollectiveKind::kReduceScatter;
    if (reduces) ALLRING_RETURN_IF_ERROR(call.set_reduction(op, prescale, postscale));
    if (collective == CollectiveKind::kBroadcast) ALLRING_RETURN_IF_ERROR(call.set_root(root));
    const bool same_shape =
        collective == CollectiveKind::kAllreduce || collective == CollectiveKind::kBroadcast;
    const std::size_t stride = tensors->struct_bytes;
    if (stride < sizeof(allring_tensor) || stride % alignof(allring_tensor) != 0)
      return Status::invalid_argument("struct_bytes is " + std::to_string(stride) +
                                      ", expected sizeof(allring_tensor)");
    for (int i = 0; i < count; ++i) {
      // The caller's struct may be of a later version, and longer.
      const auto& tensor = *reinterpret_cast<const allring_tensor*>(
          reinterpret_cast<const char*>(tensors) + stride * static_cast<std::size_t>(i));
      const Status added = call.add(tensor.input, tensor.output,
                                    same_shape ? Call::Output::kEither : Call::Output::kLibrary,
                                    tensor.ndim, tensor.shape, tensor.dtype);
      if (!added.ok()) return added.with_prefix("member " + std::to_string(i) + " of ");
    }
    return call.submit(true, handle);
  });
}

int allring_poll(allring_handle handle) {
  int done = -1;
  guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(const std::shared_ptr<Operation> operation,
                             Process::instance().handles().find(handle));
    done = operation->done() ? 1 : 0;
    return {};
  });
  return done;
}

int allring_wait(allring_handle handle, int64_t timeout_ms) {
  bool in_progress = false;
  const int code = guarded([&]() -> Status {
    ALLRING_ASSIGN_OR_RETURN(const std::shared_ptr<Operation> operation,
                             Process::instance().handles().find(handle));
    const std::optional<Status> status = operation->wait(timeout_ms);
    in_progress = !status.has_value();
    return status.value_or(Status());
  });
  return in_progress ? static_cast<int>(ALLRING_IN_PROGRESS) : code;
}

int allring_output(allring_handle handle, int index, void** data, int* ndim, int64_t* shape) {
  return guarded([&]() -> Status {
    if (data == nullptr || ndim == nullptr)
      return Status::invalid_argument("data and ndim must not be NULL");
    ALLRING_ASSIGN_OR_RETURN(const std::shared_ptr<Operation> operation, succeeded(handle));
    if (operation->kind() == CollectiveKind::kBarrier)
      return Status::invalid_argument("a barrier has no output");
    if (index < 0 || index >= operation->members())
      return Status::invalid_argument("index " + std::to_string(index) + " is not among the " +
                                      std::to_string(operation->members()) + " members of handle " +
                                      std::to_string(handle));
    const Operation::Output output = operation->output(index);
    const std::vector<std::int64_t>& extents = output.completion->shape;
    if (!extents.empty() && shape == nullptr)
      return Status::invalid_argument("shape must have room for " + std::to_string(extents.size()) +
                                      " extents, got NULL");
    *data = output.data;
    *ndim = static_cast<int>(extents.size());
    std::copy(extents.begin(), extents.end(), shape);
    return {};
  });
}

int allring_received_splits(allring_handle handle, int64_t* splits) {
  return guarded([&]() -> Status {
    if (splits == nullptr) return Status::invalid_argument("splits must not be NULL");
    ALLRING_ASSIGN_OR_RETURN(const std::shared_ptr<Operation> operation, succeeded(handle));
    if (operation->kind() != CollectiveKind::kAlltoall)
      return Status::invalid_argument("only an alltoall has received splits, this was " +
                                      std::string(collective_kind_name(operation->kind())));
    const std::vector<std::int64_t>& rows = operation->output(0).completion->received_splits;
    std::copy(rows.begin(), rows.end(), splits);
    return {};
  });
}

int allring_release(allring_handle handle) {
  return guarded([&] { return Process::instance().handles().release(handle); });
}

int allring_arena_allocate(size_t bytes, void** data) {
  return guarded([&]() -> Status {
    if (data == nullptr) return Status::invalid_argument("data must not be NULL");
    ALLRING_ASSIGN_OR_RETURN(const std::shared_ptr<Runtime> runtime, Process::instance().runtime());
    ALLRING_ASSIGN_OR_RETURN(*data,
                             Process::instance().arena_blocks().allocate(runtime->arena(), bytes));
    return {};
  });
}

int allring_arena_free(void* data) {
  return guarded([&] { return Process::instance().arena_blocks().free(data); });
}

int64_t allring_describe(char* buffer, size_t bytes) {
  int64_t needed = -1;
  guarded([&]() -> Status {
    if (buffer == nullptr && bytes > 0)
      return Status::invalid_argument("buffer must not be NULL unless bytes is 0");
    ALLRING_ASSIGN_OR_RETURN(const std::string text,
                             describe(Process::instance().runtime_or_null().get()));
    if (bytes > 0) {
      const std::size_t length = std::min(text.size(), bytes - 1);
      std::copy_n(text.data(), length, buffer);
      buffer[length] = '\0';
    }
    needed = static_cast<int64_t>(text.size()) + 1;
    return {};
  });
  return needed;
}

}  // extern "C"
