#include "launcher/hosts.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

std::string show(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += (host.user.empty() ? "" : host.user + "@") + host.name + "*" +
            std::to_string(host.slots) +
            (host.max_slots != 0 ? "/" + std::to_string(host.max_slots) : "") +
            (host.local ? "!" : "") + " ";
  return text;
}

std::string parsed(std::string_view text) {
  Result<std::vector<Host>> hosts = parse_host_list(text);
  return hosts.ok() ? show(*hosts) : hosts.status().message();
}

std::string parsed_file(std::string_view text) {
  Result<std::vector<Host>> hosts = parse_hostfile(text, "f");
  return hosts.ok() ? show(*hosts) : hosts.status().message();
}

TEST_CASE("host lists") {
  CHECK(parsed("a") == "a*1 ");
  CHECK(parsed("a:2,b:3") == "a*2 b*3 ");
  CHECK(parsed("a:2, b ,,c:1,") == "a*2 b*1 c*1 ");
  CHECK(parsed("me@a.example.org:2") == "me@a.example.org*2 ");
  CHECK(parsed("10.0.0.1:4") == "10.0.0.1*4 ");
  CHECK(parsed("[fd00::1]:2,[::1]") == "fd00::1*2 ::1*1 ");
  CHECK(parsed("fd00::1,u@fe80::1%eth0") == "fd00::1*1 u@fe80::1%eth0*1 ");
  CHECK(parsed("a,a,a") == "a*1 a*1 a*1 ");
}

TEST_CASE("bad host lists are refused, naming the part") {
  for (const char* text : {"a:0", "a:-1", "a:", "a:x", "a:2x", "a:99999999999", "a: 2"})
    CHECK_THAT(parsed(text), Catch::Contains("bad slot count") || Catch::Contains("bad host"));
  for (const char* text : {":2", "@a", "a b@c:1:2", "-oProxyCommand=x", "u@-x:2", "a;b", "[a]:2",
                           "[::1", "[::1]2", "a:b:2", "$(id)", "a/b"})
    CHECK_THAT(parsed(text), Catch::Contains("bad host"));
  CHECK_THAT(parsed(""), Catch::Contains("no host"));
  CHECK_THAT(parsed(" , "), Catch::Contains("no host"));
  CHECK_THAT(parsed("a:2,b:z"), Catch::Contains("\"b:z\""));
}

TEST_CASE("host files") {
  CHECK(parsed_file("a slots=2\nb slots=3 max_slots=4\n") == "a*2 b*3/4 ");
  CHECK(parsed_file("# all\n\n  \t\na  # one\r\nme@b slots=2 max-slots=2") == "a*1 me@b*2/2 ");
  CHECK(parsed_file("a:2\n[fd00::2]:3\n") == "a*2 fd00::2*3 ");
}

TEST_CASE("errors in host files say where") {
  CHECK_THAT(parsed_file("a\n\nb slots=x\n"), Catch::StartsWith("f:3: bad slot count"));
  CHECK_THAT(parsed_file("a slots\n"), Catch::StartsWith("f:1: bad slot count"));
  CHECK_THAT(parsed_file("a slts=2\n"), Catch::StartsWith("f:1: unknown word \"slts=2\""));
  CHECK_THAT(parsed_file("a\nb 2\n"), Catch::StartsWith("f:2: unknown word"));
  CHECK_THAT(parsed_file("a slots=4 max_slots=2\n"), Catch::StartsWith("f:1: max_slots=2"));
  CHECK_THAT(parsed_file("a!\n"), Catch::StartsWith("f:1: bad host"));
  CHECK_THAT(parsed_file("# nothing\n"), Catch::StartsWith("f: names no host"));
}

TEST_CASE("entries of one host are joined") {
  auto local = [](const Host& host) { return host.name == "here" || host.name == "localhost"; };
  auto merged = [&](const char* text) {
    Result<std::vector<Host>> hosts = merge_hosts(*parse_host_list(text), local);
    return hosts.ok() ? show(*hosts) : hosts.status().message();
  };
  CHECK(merged("a:2,b:1,a:3") == "a*5 b*1 ");
  CHECK(merged("localhost:1,b,here:2") == "localhost*3! b*1 ");
  CHECK_THAT(merged("u@a,v@a"), Catch::Contains("two users"));

  const auto limits = [&](int first, int second) {
    return merge_hosts({{"", "a", 1, first, false}, {"", "a", 1, second, false}}, local)
        ->front()
        .max_slots;
  };
  CHECK(limits(2, 3) == 5);
  CHECK(limits(2, 0) == 0);
}

}  // namespace
}  // namespace allring
