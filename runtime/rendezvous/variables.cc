#include "runtime/rendezvous/variables.h"

#include <charconv>

#include "runtime/rendezvous/job.h"

namespace allring {

namespace {

constexpr int kLargestJob = 1 << 20;

}  // namespace

std::optional<std::string> Variables::text(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  std::optional<std::string> value = lookup_(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

Result<std::string> Variables::required_text(const std::string& name) const {
  if (auto value = text(name)) return *std::move(value);
  return invalid(name, "a value");
}

Result<int> Variables::number(const std::string& name, int least, int most) const {
  const std::string value = text(name).value_or("");
  int result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (value.empty() || error != std::errc() || end != value.data() + value.size() ||
      result < least || result > most)
    return invalid(name,
                   "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return result;
}

Result<int> Variables::number_or(const std::string& name, int least, int most,
                                 int otherwise) const {
  return has(name) ? number(name, least, most) : otherwise;
}

Result<bool> Variables::flag_or(const std::string& name, bool otherwise) const {
  ALLRING_ASSIGN_OR_RETURN(const int value, number_or(name, 0, 1, otherwise ? 1 : 0));
  return value == 1;
}

Status Variables::invalid(const std::string& name, const std::string& expected) const {
  const std::optional<std::string> value = lookup_(name);
  if (!value) return Status::invalid_argument(name + " is not set: expected " + expected);
  return Status::invalid_argument(name + "=\"" + *value + "\": expected " + expected);
}

Status read_numbers(const Variables& variables, const NumberNames& names, JobDescription* job) {
  ALLRING_ASSIGN_OR_RETURN(job->size, variables.number(names.size, 1, kLargestJob));
  ALLRING_ASSIGN_OR_RETURN(job->rank, variables.number(names.rank, 0, job->size - 1));
  ALLRING_ASSIGN_OR_RETURN(job->local_size,
                           variables.number_or(names.local_size, 1, job->size, -1));
  const int most_local = (job->local_size < 0 ? job->size : job->local_size) - 1;
  ALLRING_ASSIGN_OR_RETURN(job->local_rank,
                           variables.number_or(names.local_rank, 0, most_local, -1));
  ALLRING_ASSIGN_OR_RETURN(job->cross_size,
                           variables.number_or(names.cross_size, 1, job->size, -1));
  const int most_cross = (job->cross_size < 0 ? job->size : job->cross_size) - 1;
  ALLRING_ASSIGN_OR_RETURN(job->cross_rank,
                           variables.number_or(names.cross_rank, 0, most_cross, -1));
  return {};
}

}  // namespace allring
