#include "bindings/c/call.h"

#include <string>
#include <utility>

#include "bindings/c/process.h"
#include "runtime/request/request_text.h"
#include "runtime/request/validate.h"
#include "runtime/request/wire.h"

namespace allring {

Call::Call(std::shared_ptr<Runtime> runtime, ProcessSet* set, CollectiveKind kind, const char* name)
    : runtime_(std::move(runtime)), set_(set), name_(name) {
  shared_.kind = kind;
  shared_.name = name != nullptr ? name : "(unnamed)";
}

std::string Call::text() const { return tensor_text(shared_) + ": "; }

Result<Call> Call::begin(CollectiveKind kind, const char* name, int process_set,
                         allring_handle* handle) {
  if (handle == nullptr) return Status::invalid_argument("handle must not be NULL");
  ALLRING_ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, Process::instance().runtime());
  ALLRING_ASSIGN_OR_RETURN(ProcessSet * set, runtime->process_set(process_set));
  if (name != nullptr && *name == '\0')
    return Status::invalid_argument("name must not be empty; NULL lets the library choose one");
  return Call(std::move(runtime), set, kind, name);
}

Status Call::set_reduction(int op, double prescale, double postscale) {
  if (!is_reduce_op(op))
    return Status::invalid_argument(text() + "op " + std::to_string(op) +
                                    " is none of 0 (average) to 5 (product)");
  shared_.op = static_cast<ReduceOp>(op);
  shared_.prescale = prescale;
  shared_.postscale = postscale;
  return {};
}

Status Call::set_root(int root) {
  const Result<Rank> place = set_->place_of(root);
  if (!place.ok()) return place.status().with_prefix(text() + "root: ");
  shared_.root = *place;
  return {};
}

Status Call::add(const void* input, void* output, Output rule, int ndim, const int64_t* shape,
                 int dtype) {
  if (!is_data_type(dtype))
    return Status::invalid_argument(text() + "dtype " + std::to_string(dtype) +
                                    " is none of 0 (uint8) to 10 (bfloat16)");
  if (ndim < 0 || ndim > static_cast<int>(kMaxDimensions))
    return Status::invalid_argument(text() + "ndim is " + std::to_string(ndim) +
                                    ", expected 0 to " + std::to_string(kMaxDimensions));
  if (ndim > 0 && shape == nullptr)
    return Status::invalid_argument(text() + "shape must not be NULL");
  Request request = shared_;
  request.dtype = static_cast<DataType>(dtype);
  request.shape.assign(shape, shape + ndim);
  const Result<std::int64_t> count = element_count(request.shape, request.dtype);
  if (!count.ok()) return count.status().with_prefix(text());
  if (*count > 0 && input == nullptr)
    return Status::invalid_argument(text() + "input must not be NULL");
  if (*count > 0 && output == nullptr && rule == Output::kCaller)
    return Status::invalid_argument(text() + "output must not be NULL");
  if (output != nullptr && rule == Output::kLibrary)
    return Status::invalid_argument(text() + "output must be NULL, the library allocates it");
  requests_.push_back(std::move(request));
  views_.push_back({input, output});
  return {};
}

Status Call::set_splits(int nsplits, const int64_t* splits) {
  Request& request = requests_.front();
  const int size = set_->size();
  if (nsplits < 0 || (nsplits > 0 && splits == nullptr))
    return Status::invalid_argument(text() + "splits must be " + std::to_string(size) +
                                    " numbers, or none with nsplits 0");
  if (nsplits > 0) {
    request.splits.assign(splits, splits + nsplits);
  } else if (!request.shape.empty()) {
    if (request.shape[0] % size != 0)
      return Status::invalid_argument(text() + "the " + std::to_string(request.shape[0]) +
                                      " rows cannot be split evenly over " + std::to_string(size) +
                                      " ranks; give splits");
    request.splits.assign(static_cast<std::size_t>(size), request.shape[0] / size);
  }
  return {};
}

void Call::give_names(bool grouped) {
  const bool unnamed = name_ == nullptr;
  const std::string name = unnamed ? set_->next_name(shared_.kind) : name_;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    request.unnamed = unnamed;
    request.name = grouped ? name + "." + std::to_string(i) : name;
    if (!grouped) continue;
    request.group = name;
    request.group_size = static_cast<std::int32_t>(requests_.size());
  }
}

Status Call::submit(bool grouped, allring_handle* handle) {
  // A call that is refused must not advance the counter of names.
  for (const Request& request : requests_) ALLRING_RETURN_IF_ERROR(validate(request, set_->size()));
  give_names(grouped);
  std::vector<void*> outputs;
  for (const TensorView& view : views_) outputs.push_back(view.output);
  auto operation = std::make_shared<Operation>(shared_.kind, std::move(outputs));
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    submissions.push_back({std::move(requests_[i]), views_[i],
                           [operation, member = static_cast<int>(i)](Completion completion) {
                             operation->finish(member, std::move(completion));
                           }});
  }
  ALLRING_RETURN_IF_ERROR(set_->submit(std::move(submissions)));
  *handle = Process::instance().handles().add(std::move(operation));
  return {};
}

}  // namespace allring
