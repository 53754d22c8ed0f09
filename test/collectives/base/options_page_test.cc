// docs/options.md has the table of the knobs as the code has it.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "collectives/base/options.h"

namespace allring {
namespace {

std::string default_of(const OptionRow& row) {
  const Options defaults;
  std::ostringstream text;
  std::visit([&](auto field) { text << defaults.*field; }, row.field);
  return text.str();
}

std::string in_code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

std::string table() {
  std::ostringstream text;
  text << "| variable | also as | default | meaning |\n|---|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    std::string choices(row.choices);
    for (std::size_t at = 0; (at = choices.find('|', at)) != std::string::npos;)
      choices.replace(at, 1, ", ");
    text << "| `ALLRING_" << row.name << "` | " << in_code(std::string(row.horovod)) << " | "
         << in_code(default_of(row)) << " | " << row.sentence
         << (choices.empty() ? "" : " (" + choices + ")") << " |\n";
  }
  return text.str();
}

TEST_CASE("the page of the options has the table of the code") {
  std::ifstream file("docs/options.md");
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  INFO("expected:\n" << table());
  CHECK(text.find("a test compares. -->\n" + table() + "<!-- End") != std::string::npos);
}

}  // namespace
}  // namespace allring
