#pragma once

#include <atomic>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "runtime/execution/executor.h"
#include "runtime/negotiation/control_channel.h"
#include "runtime/negotiation/controller.h"
#include "runtime/request/tensor_queue.h"

namespace allring {

/// The coordinator's round: wait until something happens, negotiate, hand what is agreed to the
/// lanes, complete what has failed. Runs on one thread at a time; request_leave() is thread-safe.
class Cycle {
 public:
  /// None is owned; all outlive this.
  Cycle(TensorQueue& queue, ControlChannel& channel, Controller& controller, Executor& executor,
        Clock& clock);

  /// One round. Blocks in ControlChannel::receive until there is something to do, at most until
  /// `deadline`.
  void run_once(Deadline deadline);

  /// Makes this rank leave the group; the rounds go on until finished().
  void request_leave();
  bool finished() const { return controller_.finished(clock_.now()); }

  /// Completes everything that is left with the reason why the group ended, or `otherwise`. After
  /// the last round, and with the lanes joined.
  void complete_rest(const Status& otherwise);

 private:
  void listen(Deadline deadline);
  void negotiate();
  void carry_out_all();
  void carry_out(Outcome outcome);
  void collect_failures();
  void end(const Status& reason, std::vector<Submission> pending);
  void fail(std::vector<Submission> submissions);

  TensorQueue& queue_;
  ControlChannel& channel_;
  Controller& controller_;
  Executor& executor_;
  Clock& clock_;
  std::atomic<bool> leave_requested_{false};
  Status ended_;                  // why everything fails from now on
  bool aborted_ = false;          // which includes what is under way
  std::vector<Submission> held_;  // failed in a lane; the group has yet to agree on why
};

}  // namespace allring
