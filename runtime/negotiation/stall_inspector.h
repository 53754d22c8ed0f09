#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/types.h"

namespace allring {

/// How long a tensor may wait for ranks that have not submitted it.
struct StallLimits {
  nanoseconds warning = seconds(60);    ///< 0: never
  nanoseconds shutdown = seconds(600);  ///< 0: never
  static constexpr StallLimits never() { return {nanoseconds(0), nanoseconds(0)}; }
};

/// Watches over what some ranks have submitted and others have not. Pure: time is passed in.
/// Thread-compatible.
class StallInspector {
 public:
  /// A tensor that is not ready on all ranks.
  struct Waiting {
    std::string_view tensor;  ///< allreduce "x"
    TimePoint since;          ///< when the first rank submitted it
    std::vector<Rank> have;
    std::vector<Rank> missing;
    bool* warned;  ///< kept by the caller, false at first
  };

  /// What there is to say.
  struct Verdict {
    std::vector<std::string> warnings;  ///< one for each set of missing ranks
    std::vector<std::size_t> expired;   ///< places in the list
    TimePoint next = TimePoint::max();  ///< when to look again
  };

  explicit StallInspector(StallLimits limits) : limits_(limits) {}

  /// Tells that something waits since `now`. Cheap.
  void started_waiting(TimePoint now);

  /// When inspect() has something to do; TimePoint::max() if nothing waits.
  TimePoint next_check() const { return next_; }

  /// REQUIRES: `waiting` is everything that waits.
  /// @param members, descriptions of the group's ranks: place in the job, and "rank 2 (host b)".
  Verdict inspect(std::span<const Waiting> waiting, TimePoint now, std::span<const Rank> members,
                  std::span<const std::string> descriptions);

  /// The error for one that expired.
  std::string error_text(const Waiting& waiting, TimePoint now, std::span<const Rank> members,
                         std::span<const std::string> descriptions) const;

 private:
  StallLimits limits_;
  TimePoint next_ = TimePoint::max();
};

}  // namespace allring
