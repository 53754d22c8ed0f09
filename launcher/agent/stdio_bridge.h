#pragma once

#include <memory>
#include <thread>

#include "collectives/base/status.h"
#include "launcher/file_descriptor.h"

namespace allring {

/// Joins standard input and output, which sshd makes two pipes, to one stream socket, which is what
/// gRPC speaks over. One thread moves the bytes.
class StdioBridge {
 public:
  /// A socket connected to descriptors 0 and 1: themselves where they already are one socket (no
  /// bridge is made), else one end of a pair whose other end a bridge serves.
  struct Connection {
    std::unique_ptr<StdioBridge> bridge;
    FileDescriptor socket;
  };
  static Result<Connection> connect();

  /// Waits until what was written to the socket is out, at most two seconds after the socket has
  /// been closed.
  ~StdioBridge();

 private:
  explicit StdioBridge(FileDescriptor socket);
  void run();

  FileDescriptor socket_;
  std::thread thread_;
};

}  // namespace allring
