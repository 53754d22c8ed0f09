#include "bindings/c/process.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "collectives/base/log.h"
#include "collectives/base/options.h"
#include "collectives/kernels/reduce.h"
#include "runtime/rendezvous/job.h"

namespace allring {

namespace {

void log_as(const Options& options, const std::string& prefix) {
  LogLevel level = LogLevel::kWarning;
  parse_log_level(options.log_level, &level);  // the option's choices are its words
  configure_log(level, options.log_hide_time, prefix);
}

Result<std::unique_ptr<Runtime>> start_runtime() {
  ALLRING_ASSIGN_OR_RETURN(const Options options, Options::from_environment());
  ALLRING_ASSIGN_OR_RETURN(const JobDescription job, describe_job(lookup_environment));
  log_as(options, "[" + std::to_string(job.rank) + "@" + job.hostname + "]");
  ALLRING_RETURN_IF_ERROR(set_simd(options.simd));
  return Runtime::join(options, job);
}

}  // namespace

Process& Process::instance() {
  static Process* const process = new Process;
  return *process;
}

Status Process::check_fork() const {
  const pid_t owner = owner_.load();
  if (owner == 0 || owner == getpid()) return {};
  return Status::invalid_argument(
      "process " + std::to_string(getpid()) + " was forked from process " + std::to_string(owner) +
      " after it had called init, so allring cannot be used in it; start it by spawn or " +
      "forkserver, or fork before init");
}

Status Process::init() {
  std::lock_guard lifecycle(lifecycle_mutex_);
  if (runtime_or_null() != nullptr) return {};
  owner_.store(getpid());
  Result<std::unique_ptr<Runtime>> runtime = start_runtime();
  if (!runtime.ok()) {
    owner_.store(0);
    return runtime.status();
  }
  std::lock_guard lock(mutex_);
  runtime_ = std::move(*runtime);
  return {};
}

Status Process::shutdown() {
  std::lock_guard lifecycle(lifecycle_mutex_);
  std::shared_ptr<Runtime> runtime;
  {
    std::lock_guard lock(mutex_);
    runtime = std::exchange(runtime_, nullptr);
  }
  if (runtime == nullptr) return {};
  // Completes everything that is pending. The handles stay: callers may still look into results.
  runtime->shutdown();
  owner_.store(0);
  return {};
}

Result<std::shared_ptr<Runtime>> Process::runtime() const {
  std::shared_ptr<Runtime> runtime = runtime_or_null();
  if (runtime == nullptr)
    return Status::invalid_argument("allring is not initialized; call init first");
  return runtime;
}

std::shared_ptr<Runtime> Process::runtime_or_null() const {
  std::lock_guard lock(mutex_);
  return runtime_;
}

}  // namespace allring
