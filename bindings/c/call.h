#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bindings/c/allring.h"
#include "bindings/c/operation.h"
#include "collectives/base/status.h"
#include "runtime/core/runtime.h"

namespace allring {

/// One asynchronous call of the C interface on its way into the runtime: numbers and pointers of a
/// stranger become Requests, or an error that says which argument is wrong. Lives for one call.
class Call {
 public:
  /// @return kInvalidArgument if not initialized, or there is no such process set.
  static Result<Call> begin(CollectiveKind kind, const char* name, int process_set,
                            allring_handle* handle);

  /// Sets what all members of the call share.
  Status set_reduction(int op, double prescale, double postscale);
  /// @param root a rank of the job.
  Status set_root(int root);

  /// Whether the caller brings the memory of the output.
  enum class Output { kCaller, kEither, kLibrary };
  Status add(const void* input, void* output, Output rule, int ndim, const int64_t* shape,
             int dtype);
  /// Of an alltoall; none: equal parts.
  Status set_splits(int nsplits, const int64_t* splits);

  /// Submits it. @param grouped with one handle, all or nothing.
  Status submit(bool grouped, allring_handle* handle);

 private:
  Call(std::shared_ptr<Runtime> runtime, ProcessSet* set, CollectiveKind kind, const char* name);
  /// For messages about calls that have no name yet.
  std::string text() const;
  void give_names(bool grouped);

  std::shared_ptr<Runtime> runtime_;
  ProcessSet* set_;
  const char* name_;
  Request shared_;
  std::vector<Request> requests_;
  std::vector<TensorView> views_;
};

}  // namespace allring
