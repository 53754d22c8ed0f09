#pragma once

#include <optional>
#include <string>

#include "collectives/base/options.h"
#include "collectives/base/status.h"

namespace allring {

/// The environment of a starter, read with errors that name the variable, its value and what is
/// expected. Thread-compatible.
class Variables {
 public:
  explicit Variables(const Options::Lookup& lookup) : lookup_(lookup) {}

  bool has(const std::string& name) const { return text(name).has_value(); }
  /// nullopt when unset or empty.
  std::optional<std::string> text(const std::string& name) const;
  Result<std::string> required_text(const std::string& name) const;

  /// A whole number from `least` to `most`.
  Result<int> number(const std::string& name, int least, int most) const;
  /// The same, `otherwise` when unset.
  Result<int> number_or(const std::string& name, int least, int most, int otherwise) const;
  /// "0" or "1".
  Result<bool> flag_or(const std::string& name, bool otherwise) const;

  Status invalid(const std::string& name, const std::string& expected) const;

 private:
  const Options::Lookup& lookup_;
};

/// The names under which a starter tells a rank its numbers; an empty name is one that it has not.
struct NumberNames {
  std::string rank;
  std::string size;
  std::string local_rank;
  std::string local_size;
  std::string cross_rank;
  std::string cross_size;
};

struct JobDescription;

/// Reads rank and size, which must be there, and the others or -1, and checks them against each
/// other.
Status read_numbers(const Variables& variables, const NumberNames& names, JobDescription* job);

}  // namespace allring
