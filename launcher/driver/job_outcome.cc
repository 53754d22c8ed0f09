#include "launcher/driver/job_outcome.h"

#include <signal.h>
#include <sys/wait.h>

#include <map>
#include <utility>

#include "launcher/child_process.h"

namespace allring {

namespace {

constexpr milliseconds kLateNews{500};

/// "0", "0 and 2", "0, 1 and 3", "1 to 63".
std::string list_ranks(const std::vector<int>& ranks) {
  const bool run =
      ranks.size() > 3 && ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  if (run) return std::to_string(ranks.front()) + " to " + std::to_string(ranks.back());
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

/// A signal that a program's own fault or somebody outside sends, unlike those by which a program
/// ends itself over an error that it has noticed.
bool is_telling(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return false;
  const int signal = WTERMSIG(wait_status);
  return signal != SIGABRT && signal != SIGTERM && signal != SIGINT && signal != SIGPIPE;
}

}  // namespace

JobOutcome::JobOutcome(std::vector<std::string> host_of)
    : host_of_(std::move(host_of)), ends_(host_of_.size()) {}

void JobOutcome::rank_exited(int rank, int wait_status, bool asked_to_end, TimePoint time) {
  if (ended(rank)) return;
  End& end = ends_[rank];
  end.kind = End::Kind::kExited;
  end.wait_status = wait_status;
  end.asked_to_end = asked_to_end;
  end.time = time;
  end.exit_code = exit_code_of(wait_status);
  ++ended_;
  if (end.failure()) failures_.push_back(rank);
}

void JobOutcome::host_lost(const std::string& host, const std::string& reason, int exit_code,
                           TimePoint time) {
  for (int rank = 0; rank < static_cast<int>(ends_.size()); ++rank) {
    if (host_of_[rank] != host || ended(rank)) continue;
    End& end = ends_[rank];
    end.kind = End::Kind::kLost;
    end.reason = reason;
    end.exit_code = exit_code;
    end.time = time;
    ++ended_;
    failures_.push_back(rank);
  }
}

std::optional<int> JobOutcome::cause() const {
  std::optional<int> first;
  for (int rank : failures_) {
    if (ends_[rank].asked_to_end) continue;
    if (!first) {
      first = rank;
      if (ends_[rank].kind == End::Kind::kLost || ends_[rank].exit_code != 1) break;
    } else if (is_telling(ends_[rank].wait_status) &&
               ends_[rank].time - ends_[*first].time < kLateNews) {
      return rank;
    }
  }
  return first;
}

int JobOutcome::exit_code() const {
  const std::optional<int> rank = cause();
  return rank ? ends_[*rank].exit_code : 0;
}

std::string JobOutcome::describe(int rank) const {
  const End& end = ends_[rank];
  if (end.kind == End::Kind::kLost) return "lost with its host: " + end.reason;
  return (WIFSIGNALED(end.wait_status) ? "killed by " : "") + describe_wait_status(end.wait_status);
}

std::string JobOutcome::account(
    const std::function<std::vector<std::string>(int rank)>& last_lines) const {
  const std::optional<int> first = cause();
  if (!first) return "";
  std::string text = "hvdrun: rank " + std::to_string(*first) + " on host " + host_of_[*first] +
                     " failed first: " + describe(*first) + "\n";
  const std::vector<std::string> lines = last_lines(*first);
  if (!lines.empty()) text += "hvdrun: its last lines were:\n";
  for (const std::string& line : lines) text += "    " + line + "\n";

  // Ranks that fared the same share a line, in the order in which the first of each did.
  std::vector<std::pair<std::string, std::vector<int>>> others;
  for (int rank = 0; rank < static_cast<int>(ends_.size()); ++rank) {
    if (rank == *first || !ended(rank)) continue;
    const bool asked = ends_[rank].asked_to_end && ends_[rank].failure();
    const std::string how = describe(rank) + (asked ? " after being asked to end" : "");
    auto same = others.begin();
    while (same != others.end() && same->first != how) ++same;
    if (same == others.end()) same = others.insert(same, {how, {}});
    same->second.push_back(rank);
  }
  for (const auto& [how, ranks] : others)
    text += "hvdrun: rank" + std::string(ranks.size() > 1 ? "s " : " ") + list_ranks(ranks) + ": " +
            how + "\n";
  return text;
}

}  // namespace allring
