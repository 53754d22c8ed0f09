#pragma once

#include <algorithm>

namespace allring {

/// How long a waiting thread should spin before it gives its core away, learned from what came of
/// it before. Spinning is right while the peer runs on a core of its own; when other load puts both
/// on one core, the peer cannot go on until the spinner stops. Thread-compatible.
class SpinBudget {
 public:
  /// As good as for ever: the user wants it so, whatever is learned.
  static constexpr int kAlways = 1 << 30;

  /// @param most turns when spinning pays.
  explicit SpinBudget(int most) : most_(most), turns_(most) {}

  /// For the wait that begins. Now and then all of it, to find out whether times have changed.
  int begin() {
    if (++waits_ % kProbeEvery == 0 || most_ == kAlways) turns_ = most_;
    return std::min(turns_, most_);
  }
  /// What was waited for came while spinning.
  void caught() { turns_ = turns_ > most_ / 2 ? most_ : std::max(2 * turns_, kLeast); }
  /// It did not.
  void missed() { turns_ = std::max(turns_ / 4, kLeast); }

 private:
  static constexpr int kLeast = 32;
  static constexpr unsigned kProbeEvery = 32;

  const int most_;
  int turns_;
  unsigned waits_ = 0;
};

}  // namespace allring
