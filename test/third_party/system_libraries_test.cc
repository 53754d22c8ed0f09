// Each library that the build takes from the system compiles, links and does one thing right.

#include <grpcpp/grpcpp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <sstream>
#include <string>

#include "test/third_party/ping.grpc.pb.h"

namespace allring::test {
namespace {

class EchoService final : public Echo::Service {
  grpc::Status Repeat(grpc::ServerContext*, const Ping* request, Ping* response) override {
    response->set_text(request->text() + request->text());
    return grpc::Status::OK;
  }
};

TEST_CASE("a gRPC call goes to a server on a free port and back") {
  EchoService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  REQUIRE(server != nullptr);
  REQUIRE(port > 0);

  const auto stub = Echo::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  Ping request;
  request.set_text("ab");
  Ping response;
  const grpc::Status status = stub->Repeat(&context, request, &response);
  INFO(status.error_message());
  CHECK(status.ok());
  CHECK(response.text() == "abab");
  server->Shutdown();
}

TEST_CASE("HMAC-SHA256 gives RFC 4231's test case 2") {
  const std::string key = "Jefe";
  const std::string text = "what do ya want for nothing?";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_bytes = 0;
  REQUIRE(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
               reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest,
               &digest_bytes) != nullptr);
  std::ostringstream hex;
  for (unsigned int i = 0; i < digest_bytes; ++i) {
    hex << std::hex << (digest[i] >> 4) << (digest[i] & 15);
  }
  CHECK(hex.str() == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("spdlog writes a formatted line") {
  std::ostringstream out;
  spdlog::logger logger("test", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  logger.set_pattern("%l %v");
  logger.warn("rank {} of {}", 1, 4);
  CHECK(out.str() == "warning rank 1 of 4\n");
}

TEST_CASE("CLI11 parses an option and leaves the rest") {
  CLI::App app;
  int ranks = 0;
  app.add_option("-n,--np", ranks);
  app.prefix_command();
  app.parse("-n 4 python train.py -n 7");
  CHECK(ranks == 4);
  CHECK(app.remaining() == std::vector<std::string>{"python", "train.py", "-n", "7"});
}

}  // namespace
}  // namespace allring::test
