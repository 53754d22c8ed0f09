#pragma once

#include <memory>

#include "runtime/negotiation/control_channel.h"

namespace allring {

/// The control channels of a group whose ranks are threads of this process: a star around rank 0.
/// Thread-safe; the channels may outlive it.
class InprocControlHub {
 public:
  explicit InprocControlHub(int size);
  ~InprocControlHub();

  /// The end of `rank`; once per rank. Destroying it looks to its neighbours like a closed link.
  std::unique_ptr<ControlChannel> channel(Rank rank);

  /// As if the process of `rank` had died: what it sent is still delivered, then its neighbours
  /// see kPeerLost; it sees kPeerLost for each of them.
  void kill(Rank rank);

 private:
  class Channel;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace allring
