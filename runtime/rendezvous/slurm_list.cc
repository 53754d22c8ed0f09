#include "runtime/rendezvous/slurm_list.h"

#include <algorithm>
#include <charconv>

namespace allring {

namespace {

constexpr std::size_t kMostHosts = 1 << 20;
constexpr std::size_t kMostDigits = 9;

bool parse_number(std::string_view text, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && text.size() <= kMostDigits && error == std::errc() &&
         end == text.data() + text.size() && *number >= 0;
}

// The parts between commas that are outside of brackets; nullopt for unbalanced ones.
std::optional<std::vector<std::string_view>> split(std::string_view list) {
  std::vector<std::string_view> parts;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      if (i == begin) return std::nullopt;
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '[' || list[i] == ']') {
      if (inside == (list[i] == '[')) return std::nullopt;
      inside = !inside;
    }
  }
  if (inside) return std::nullopt;
  return parts;
}

// "01-04" or "7", digits kept as wide as the first bound is written.
bool expand_range(std::string_view range, std::vector<std::string>* out) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  int first = 0;
  int last = 0;
  if (!parse_number(low, &first) || !parse_number(high, &last) || first > last) return false;
  if (out->size() + static_cast<std::size_t>(last - first) >= kMostHosts) return false;
  for (int i = first; i <= last; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    out->push_back(std::move(digits));
  }
  return true;
}

// All names that one part of the list stands for.
bool expand_name(std::string_view name, std::vector<std::string>* out) {
  std::vector<std::string> names = {""};
  while (!name.empty()) {
    const std::size_t open = std::min(name.find('['), name.size());
    for (std::string& each : names) each += name.substr(0, open);
    name.remove_prefix(open);
    if (name.empty()) break;
    const std::size_t close = name.find(']');
    const auto ranges = split(name.substr(1, close - 1));
    if (!ranges) return false;
    std::vector<std::string> numbers;
    for (std::string_view range : *ranges)
      if (!expand_range(range, &numbers)) return false;
    if (names.size() * numbers.size() > kMostHosts) return false;
    std::vector<std::string> product;
    for (const std::string& each : names)
      for (const std::string& number : numbers) product.push_back(each + number);
    names = std::move(product);
    name.remove_prefix(close + 1);
  }
  if (out->size() + names.size() > kMostHosts) return false;
  out->insert(out->end(), names.begin(), names.end());
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> expand_slurm_hosts(std::string_view list) {
  const auto parts = split(list);
  if (!parts) return std::nullopt;
  std::vector<std::string> hosts;
  for (std::string_view part : *parts)
    if (!expand_name(part, &hosts)) return std::nullopt;
  return hosts;
}

std::optional<std::vector<int>> expand_slurm_tasks(std::string_view list) {
  const auto parts = split(list);
  if (!parts) return std::nullopt;
  std::vector<int> tasks;
  for (std::string_view part : *parts) {
    int count = 0;
    int times = 1;
    const std::size_t open = part.find("(x");
    if (!parse_number(part.substr(0, open), &count)) return std::nullopt;
    if (open != std::string_view::npos) {
      const std::string_view rest = part.substr(open + 2);
      if (!rest.ends_with(')') || !parse_number(rest.substr(0, rest.size() - 1), &times))
        return std::nullopt;
    }
    if (tasks.size() + static_cast<std::size_t>(times) > kMostHosts) return std::nullopt;
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), count);
  }
  return tasks;
}

}  // namespace allring
