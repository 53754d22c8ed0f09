#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/transport/mesh.h"
#include "test/collectives/transport/endpoints.h"

namespace allring {

/// What the ranks of a MeshRanks are joined by.
enum class Medium { kShm, kUnix, kTcp, kMixed };

inline const char* medium_name(Medium medium) {
  switch (medium) {
    case Medium::kShm:
      return "shared memory";
    case Medium::kUnix:
      return "unix sockets";
    case Medium::kTcp:
      return "TCP";
    case Medium::kMixed:
      return "shared memory and TCP";
  }
  return "?";
}

/// A mesh between ranks that are threads of the test, over real sockets and shared memory.
class MeshRanks {
 public:
  MeshRanks(Medium medium, int ranks, WaitPolicy policy = {.spins = 20, .yields = 20})
      : endpoints_(hosts(medium, ranks)) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      MeshTransport::Settings settings;
      settings.wait = policy;
      settings.shared_memory = medium != Medium::kUnix;
      meshes_.push_back(MeshTransport::create(endpoints_[rank], settings).value());
    }
  }

  MeshTransport& operator[](Rank rank) { return *meshes_[rank]; }
  Endpoints& endpoints() { return endpoints_; }
  /// Ends a rank as its process's death would.
  void end(Rank rank) {
    meshes_[rank].reset();
    endpoints_.end(rank);
  }

 private:
  static std::vector<std::string> hosts(Medium medium, int ranks) {
    std::vector<std::string> hosts;
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::string host = "a";
      if (medium == Medium::kTcp) host = "host" + std::to_string(rank);
      if (medium == Medium::kMixed && rank % 2 == 1) host = "b";
      hosts.push_back(host);
    }
    return hosts;
  }

  Endpoints endpoints_;
  std::vector<std::unique_ptr<MeshTransport>> meshes_;
};

}  // namespace allring
