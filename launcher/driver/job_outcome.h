#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/base/clock.h"

namespace allring {

/// How the ranks of a job ended, and which end was the cause of the others. Pure over the times
/// that it is given; thread-compatible.
///
/// The cause is the failure that was seen first, with one correction: where that is an exit with
/// code 1, as from an unhandled exception, and another rank was killed by a signal within half a
/// second, the signal is the cause. For a rank that loses a peer may say so before the news of the
/// peer's own end has come from its host.
class JobOutcome {
 public:
  /// @param host_of the host's name for each rank.
  explicit JobOutcome(std::vector<std::string> host_of);

  /// @param asked_to_end the rank had been sent a signal by us: its end is no cause.
  void rank_exited(int rank, int wait_status, bool asked_to_end, TimePoint time);
  /// The ranks of a host that have not exited count as lost.
  /// @param exit_code for the job, if this is the cause.
  void host_lost(const std::string& host, const std::string& reason, int exit_code, TimePoint time);

  bool failed() const { return cause().has_value(); }
  bool all_ended() const { return ended_ == static_cast<int>(ends_.size()); }
  bool ended(int rank) const { return ends_[rank].kind != End::Kind::kRunning; }

  /// The exit code of the job: the cause's; 0 if all ranks ended well.
  int exit_code() const;

  /// Why the job failed, for the user: a few lines, each ended by \n; empty if it did not.
  /// @param last_lines gives what a rank wrote last.
  std::string account(const std::function<std::vector<std::string>(int rank)>& last_lines) const;

 private:
  struct End {
    enum class Kind { kRunning, kExited, kLost };
    Kind kind = Kind::kRunning;
    int wait_status = 0;
    bool asked_to_end = false;
    TimePoint time;
    std::string reason;  ///< of a loss
    int exit_code = 0;
    bool failure() const {
      return kind == Kind::kLost || (kind == Kind::kExited && exit_code != 0);
    }
  };

  std::optional<int> cause() const;
  std::string describe(int rank) const;

  std::vector<std::string> host_of_;
  std::vector<End> ends_;
  std::vector<int> failures_;  ///< ranks in the order in which their failures were seen
  int ended_ = 0;
};

}  // namespace allring
