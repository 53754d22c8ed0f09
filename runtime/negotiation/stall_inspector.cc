#include "runtime/negotiation/stall_inspector.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "runtime/negotiation/rank_set.h"
#include "runtime/request/request_text.h"

namespace allring {

namespace {

std::string seconds_text(nanoseconds duration) {
  std::ostringstream text;
  text.precision(3);
  text << std::chrono::duration<double>(duration).count() << " s";
  return text.str();
}

// rank 1 (host a) and rank 3 (host b)
std::string missing_text(std::span<const Rank> missing, std::span<const Rank> members,
                         std::span<const std::string> descriptions) {
  constexpr std::size_t kDescribed = 4;
  if (missing.empty()) return "the other members of its group";
  if (missing.size() > kDescribed) return rank_list_text(missing, members);
  std::string text;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (i > 0) text += i + 1 == missing.size() ? " and " : ", ";
    text += descriptions[missing[i]];
  }
  return text;
}

}  // namespace

void StallInspector::started_waiting(TimePoint now) {
  for (nanoseconds limit : {limits_.warning, limits_.shutdown})
    if (limit > nanoseconds(0)) next_ = std::min(next_, now + limit);
}

StallInspector::Verdict StallInspector::inspect(std::span<const Waiting> waiting, TimePoint now,
                                                std::span<const Rank> members,
                                                std::span<const std::string> descriptions) {
  Verdict verdict;
  struct Report {
    std::vector<std::string> tensors;
    TimePoint since = TimePoint::max();
    std::vector<Rank> have;
  };
  std::map<std::vector<Rank>, Report> reports;  // by missing ranks
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const Waiting& item = waiting[i];
    if (limits_.shutdown > nanoseconds(0)) {
      if (now >= item.since + limits_.shutdown) {
        verdict.expired.push_back(i);
        continue;
      }
      verdict.next = std::min(verdict.next, item.since + limits_.shutdown);
    }
    if (limits_.warning <= nanoseconds(0) || *item.warned) continue;
    if (now < item.since + limits_.warning) {
      verdict.next = std::min(verdict.next, item.since + limits_.warning);
      continue;
    }
    *item.warned = true;
    Report& report = reports[item.missing];
    report.tensors.emplace_back(item.tensor);
    if (item.since < report.since) report.have = item.have;
    report.since = std::min(report.since, item.since);
  }
  for (const auto& [missing, report] : reports) {
    std::string text = tensor_list_text(report.tensors) + ": submitted by " +
                       rank_list_text(report.have, members) + " " +
                       seconds_text(now - report.since) + " ago, still waiting for " +
                       missing_text(missing, members, descriptions);
    if (limits_.shutdown > nanoseconds(0))
      text += "; an error after " + seconds_text(limits_.shutdown);
    text += ". Do all ranks submit the same tensors, or is one of them slow or stuck?";
    verdict.warnings.push_back(std::move(text));
  }
  next_ = verdict.next;
  return verdict;
}

std::string StallInspector::error_text(const Waiting& waiting, TimePoint now,
                                       std::span<const Rank> members,
                                       std::span<const std::string> descriptions) const {
  return std::string(waiting.tensor) + ": submitted by " + rank_list_text(waiting.have, members) +
         ", but not by " + missing_text(waiting.missing, members, descriptions) + " within " +
         seconds_text(now - waiting.since) +
         ". Submit it on all ranks, or raise ALLRING_STALL_SHUTDOWN_TIME_SECONDS";
}

}  // namespace allring
