#pragma once

#include <memory>
#include <vector>

#include "collectives/transport/transport.h"

namespace allring {

/// A network whose ranks are threads of this process: gives tests, the simulator and single-process
/// jobs `size` Transports that reach each other through memory. Aborting one of them is, to the
/// others, the death of that rank: what it had sent still arrives, then they get kPeerLost.
///
/// The network outlives its transports' use. Thread-compatible; its transports are as Transport
/// says.
class InprocNetwork {
 public:
  enum class Mode {
    kBuffered,    ///< a send is copied and complete at once, as small ones are on a socket
    kRendezvous,  ///< a send completes only when the peer has posted the receive: the least that
                  ///< Transport promises, to show that an algorithm asks for no more
  };

  explicit InprocNetwork(int size, Mode mode = Mode::kBuffered);
  ~InprocNetwork();

  int size() const { return static_cast<int>(transports_.size()); }
  Transport& transport(Rank rank) { return *transports_[rank]; }

 private:
  class Mailbox;
  class Endpoint;

  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // [from * size + to]
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace allring
