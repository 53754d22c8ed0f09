#include "launcher/arguments.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "launcher/command_line.h"

namespace allring {
namespace {

using Words = std::vector<std::string>;

Arguments parse(const Words& words, const Environment& environment = {}) {
  Result<ParsedArguments> parsed = parse_arguments(words, environment);
  INFO(parsed.status().message());
  REQUIRE(parsed.ok());
  REQUIRE(!parsed->print);
  return parsed->arguments;
}

std::string refusal(const Words& words, const Environment& environment = {}) {
  Result<ParsedArguments> parsed = parse_arguments(words, environment);
  REQUIRE(!parsed.ok());
  CHECK(parsed.status().message().find('\n') == std::string::npos);
  return parsed.status().message();
}

TEST_CASE("everything from the command on is left alone") {
  Arguments a = parse({"-np", "4", "python", "train.py", "--np", "7", "-H", "--", "-x", ""});
  CHECK(a.num_proc == 4);
  CHECK(a.hosts.empty());
  CHECK(a.command == Words{"python", "train.py", "--np", "7", "-H", "--", "-x", ""});
  CHECK(parse({"-np", "1", "--", "--odd-name", "x"}).command == Words{"--odd-name", "x"});
  CHECK(parse({"-np", "1", "-"}).command == Words{"-"});
}

TEST_CASE("spellings of one option") {
  for (const Words& words : {Words{"-np", "3"},
                             {"--np", "3"},
                             {"-n", "3"},
                             {"-n3"},
                             {"-np=3"},
                             {"--num-proc", "3"},
                             {"--num_proc=3"},
                             {"-num-proc", "3"}}) {
    Words all = words;
    all.push_back("true");
    CAPTURE(words);
    CHECK(parse(all).num_proc == 3);
  }
}

TEST_CASE("all options") {
  Arguments a = parse({"-np",
                       "4",
                       "-H",
                       "a:2",
                       "-H",
                       "b:2,c",
                       "--hostfile",
                       "f",
                       "-hostfile",
                       "g",
                       "--oversubscribe",
                       "--wdir",
                       "/w",
                       "--network-interfaces",
                       "eth0",
                       "-p",
                       "2222",
                       "-i",
                       "key",
                       "--ssh-args",
                       "-4 -o 'A b'",
                       "--remote-hvdrun",
                       "/r",
                       "-x",
                       "A=1",
                       "-xB= 2 ",
                       "--start-timeout",
                       "2.5",
                       "--grace-secs",
                       "0",
                       "--output-filename",
                       "out",
                       "--timestamp",
                       "-v",
                       "--dry-run",
                       "cmd"});
  CHECK(a.hosts == Words{"a:2", "b:2,c"});
  CHECK(a.hostfiles == Words{"f", "g"});
  CHECK(a.oversubscribe);
  CHECK(a.working_directory == "/w");
  CHECK(a.network_interfaces == "eth0");
  CHECK(a.ssh_port == 2222);
  CHECK(a.ssh_identity_file == "key");
  CHECK(a.ssh_args == Words{"-4", "-o", "A b"});
  CHECK(a.remote_hvdrun == "/r");
  CHECK(a.environment == Words{"A=1", "B= 2 "});
  CHECK(a.start_timeout_seconds == 2.5);
  CHECK(a.start_timeout_given);
  CHECK(a.grace_seconds == 0);
  CHECK(a.output_directory == "out");
  CHECK(a.timestamps);
  CHECK(a.verbose);
  CHECK(a.dry_run);

  Arguments defaults = parse({"-np", "1", "cmd"});
  CHECK(defaults.start_timeout_seconds == 30);
  CHECK(!defaults.start_timeout_given);
  CHECK(defaults.grace_seconds == 5);
}

TEST_CASE("values may begin with a dash") {
  CHECK(parse({"-np", "1", "-x", "A=-b", "--ssh-args", "-4", "c"}).ssh_args == Words{"-4"});
  CHECK(parse({"-np", "1", "-x", "-A=b", "c"}).environment == Words{"-A=b"});
  CHECK(parse({"-np", "1", "--wdir", "--odd", "c"}).working_directory == "--odd");
}

TEST_CASE("the command line wins over the environment") {
  Environment environment;
  environment.set("HVDRUN_NUM_PROC", "5");
  environment.set("HVDRUN_HOSTS", "a:3,b:2");
  environment.set("HVDRUN_VERBOSE", "1");
  environment.set("HVDRUN_GRACE_SECS", "");
  Arguments a = parse({"cmd"}, environment);
  CHECK(a.num_proc == 5);
  CHECK(a.hosts == Words{"a:3,b:2"});
  CHECK(a.verbose);
  CHECK(a.grace_seconds == 5);
  CHECK(parse({"-np", "2", "cmd"}, environment).num_proc == 2);
  CHECK(parse({"-H", "c", "cmd"}, environment).hosts == Words{"c"});
  environment.set("HVDRUN_NUM_PROC", "many");
  CHECK_THAT(refusal({"cmd"}, environment), Catch::Contains("many"));
}

TEST_CASE("-x takes values from here") {
  Environment environment;
  environment.set("A", "1=2 3");
  Arguments a = parse({"-np", "1", "-x", "A", "-x", "MISSING", "c"}, environment);
  CHECK(a.environment == Words{"A=1=2 3"});
  REQUIRE(a.warnings.size() == 1);
  CHECK_THAT(a.warnings[0], Catch::Contains("MISSING"));
  CHECK_THAT(refusal({"-np", "1", "-x", "=1", "c"}), Catch::Contains("-x =1"));
}

TEST_CASE("spellings without meaning here do no harm") {
  Arguments a = parse({"-np", "2", "--allow-run-as-root", "-bind-to", "none", "-map-by", "slot",
                       "--gloo", "--mpi", "-mca", "btl", "^openib", "--mca", "pml", "ob1", "c"});
  CHECK(a.command == Words{"c"});
  CHECK_THAT(refusal({"-np", "1", "-bind-to", "core", "c"}), Catch::Contains("--bind-to core"));
  CHECK_THAT(refusal({"-np", "1", "-map-by", "node", "c"}), Catch::Contains("--map-by node"));
}

TEST_CASE("refusals") {
  CHECK_THAT(refusal({}), Catch::Contains("no command"));
  CHECK_THAT(refusal({"-np", "2"}), Catch::Contains("no command"));
  CHECK_THAT(refusal({"-np"}), Catch::Contains("needs a value"));
  CHECK_THAT(refusal({"--mca", "a"}), Catch::Contains("needs another value"));
  CHECK_THAT(refusal({"--nope", "c"}), Catch::Contains("--nope"));
  CHECK_THAT(refusal({"-q", "c"}), Catch::Contains("-q"));
  CHECK_THAT(refusal({"--verbose=1", "c"}), Catch::Contains("takes no value"));
  for (const char* bad : {"0", "-1", "1.5", "x", "", "99999999999"})
    CHECK_THAT(refusal({"-np", bad, "c"}), Catch::Contains("num-proc"));
  CHECK_THAT(refusal({"-np", "1", "-p", "65536", "c"}), Catch::Contains("ssh-port"));
  CHECK_THAT(refusal({"-np", "1", "--grace-secs", "-1", "c"}), Catch::Contains("grace-secs"));
}

TEST_CASE("help and version") {
  CHECK_THAT(parse_arguments({"--help"}, {})->print->text, Catch::Contains("--num-proc"));
  CHECK_THAT(parse_arguments({"--version"}, {})->print->text, Catch::StartsWith("hvdrun "));
  CHECK_THAT(options_table(), Catch::Contains("`HVDRUN_NUM_PROC`"));
}

TEST_CASE("the documentation has the table of the options") {
  std::ifstream file("docs/launching.md");
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text.find("a test compares. -->\n" + options_table() + "<!-- End") != std::string::npos);
}

TEST_CASE("words as a shell splits them") {
  CHECK(*split_words("") == Words{});
  CHECK(*split_words("  a  b\tc\n") == Words{"a", "b", "c"});
  CHECK(*split_words("'a b' \"c 'd\" e\\ f ''") == Words{"a b", "c 'd", "e f", ""});
  CHECK(*split_words("\"a\\\"b\" 'a\\b' $HOME") == Words{"a\"b", "a\\b", "$HOME"});
  CHECK(!split_words("'a").ok());
  CHECK(!split_words("a \"b").ok());
}

}  // namespace
}  // namespace allring
