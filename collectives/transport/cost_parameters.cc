#include "collectives/transport/cost_parameters.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace allring {

namespace {

struct Row {
  const char* name;
  double& (*field)(CostParameters& costs);
};

constexpr Row kRows[] = {
    {"host_memory.line_us", [](CostParameters& c) -> double& { return c.host_memory.line_us; }},
    {"host_memory.flag_us", [](CostParameters& c) -> double& { return c.host_memory.flag_us; }},
    {"host_memory.us_per_byte",
     [](CostParameters& c) -> double& { return c.host_memory.us_per_byte; }},
    {"within_host.alpha_us", [](CostParameters& c) -> double& { return c.within_host.alpha_us; }},
    {"within_host.overhead_us",
     [](CostParameters& c) -> double& { return c.within_host.overhead_us; }},
    {"within_host.us_per_byte",
     [](CostParameters& c) -> double& { return c.within_host.us_per_byte; }},
    {"between_hosts.alpha_us",
     [](CostParameters& c) -> double& { return c.between_hosts.alpha_us; }},
    {"between_hosts.overhead_us",
     [](CostParameters& c) -> double& { return c.between_hosts.overhead_us; }},
    {"between_hosts.us_per_byte",
     [](CostParameters& c) -> double& { return c.between_hosts.us_per_byte; }},
    {"reduce_us_per_byte", [](CostParameters& c) -> double& { return c.reduce_us_per_byte; }},
};

const Row* find(const std::string& name) {
  for (const Row& row : kRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace

std::string CostParameters::to_text() const {
  CostParameters copy = *this;
  std::string text;
  for (const Row& row : kRows) {
    char value[32];  // the shortest that is read as the same
    const auto end = std::to_chars(value, value + sizeof(value), row.field(copy)).ptr;
    text.append(row.name).append(" ").append(value, end).append("\n");
  }
  return text;
}

Result<CostParameters> CostParameters::parse(std::string_view text) {
  CostParameters costs;
  std::set<std::string> seen;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, value, rest;
    if (!(words >> name)) continue;
    words >> value >> rest;
    const std::string where = "line " + std::to_string(number) + ": ";
    const Row* row = find(name);
    if (row == nullptr)
      return Status::invalid_argument(where + "there is no \"" + name + "\"; expected one of\n" +
                                      CostParameters().to_text());
    if (!seen.insert(name).second) return Status::invalid_argument(where + name + " comes twice");
    // Not strtod, which reads as the program's locale has it.
    double parsed = 0;
    const char* const value_end = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), value_end, parsed);
    if (error != std::errc() || end != value_end || !rest.empty() || !std::isfinite(parsed) ||
        parsed <= 0)
      return Status::invalid_argument(where + "\"" + line + "\": expected " + name +
                                      " and a positive number");
    row->field(costs) = parsed;
  }
  return costs;
}

Result<CostParameters> CostParameters::load(const std::string& path) {
  if (path.empty()) return CostParameters();
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // which sets a bit for a directory, too
  if (!file.is_open() || file.bad() || text.bad())
    return Status::invalid_argument("TUNING_FILE=\"" + path + "\": it cannot be read");
  Result<CostParameters> costs = parse(text.str());
  if (!costs.ok()) return costs.status().with_prefix("TUNING_FILE=\"" + path + "\": ");
  return costs;
}

}  // namespace allring
