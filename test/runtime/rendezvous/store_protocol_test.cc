#include "runtime/rendezvous/store_protocol.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/rendezvous/store_address.h"

namespace allring {
namespace {

TEST_CASE("frames come back as they were, however the stream is cut") {
  const std::string value(1000, 'v');
  const std::vector<StoreFrame> frames = {
      {StoreFrameType::kPut, 1, "key", value},      {StoreFrameType::kPut, 2, "", ""},
      {StoreFrameType::kWait, 0xffffffff, "k", {}}, {StoreFrameType::kRemove, 3, "k", {}},
      {StoreFrameType::kCancel, 4, {}, {}},         {StoreFrameType::kOk, 5, {}, {}},
      {StoreFrameType::kValue, 6, {}, value}};
  std::string stream;
  for (const StoreFrame& frame : frames) stream += frame.encode();
  for (const std::size_t cut : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    StoreFrameReader reader;
    std::size_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += cut) {
      reader.append(std::string_view(stream).substr(at, cut));
      for (;;) {
        auto body = reader.next();
        REQUIRE(body.ok());
        if (!*body) break;
        auto frame = StoreFrame::parse(**body);
        REQUIRE(frame.ok());
        CHECK(frame->type == frames[seen].type);
        CHECK(frame->id == frames[seen].id);
        CHECK(frame->key == frames[seen].key);
        CHECK(frame->value == frames[seen].value);
        ++seen;
      }
    }
    CHECK(seen == frames.size());
  }
}

TEST_CASE("an answer's head goes before its value") {
  const StoreFrame whole{StoreFrameType::kValue, 7, {}, "value"};
  CHECK(encode_store_answer(StoreFrameType::kValue, 7, 5) + "value" == whole.encode());
}

TEST_CASE("random bytes are a frame or an error") {
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() : random() % 8);
    if (auto frame = StoreFrame::parse(text); frame.ok()) {
      CHECK(frame->encode().substr(4) == text);
    }
    StoreFrameReader reader;
    reader.append(text);
    for (int turn = 0; turn < 40; ++turn) {
      auto body = reader.next();
      if (!body.ok() || !*body) break;
    }
  }
}

TEST_CASE("addresses") {
  for (const char* text : {"unix:@a", "tcp:host:1", "tcp:[fd00::1]:65535", "tcp::0"}) {
    auto address = StoreAddress::parse(text);
    REQUIRE(address.ok());
    CHECK(address->to_string() == text);
  }
  for (const std::string& text :
       {std::string("unix:@"), std::string("unix:/path"), std::string("tcp:host"),
        std::string("tcp:host:"), std::string("tcp:host:70000"), std::string("tcp:host:1x"),
        std::string("tcp:fd00::1:5"), std::string("udp:host:1"), std::string(""),
        "unix:@" + std::string(108, 'x')}) {
    INFO(text);
    CHECK(StoreAddress::parse(text).status().code() == StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace allring
