#include "collectives/base/options.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <vector>

namespace allring {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Options> parse(const Variables& variables) {
  return Options::from_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string text_of(double value) {
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

// The field's value as text.
std::string field_text(const OptionRow& row, const Options& options) {
  return std::visit(
      [&](auto field) -> std::string {
        const auto& value = options.*field;
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return value;
        } else {
          return text_of(static_cast<double>(value));
        }
      },
      row.field);
}

bool is_number(const OptionRow& row) {
  return std::holds_alternative<std::int64_t Options::*>(row.field) ||
         std::holds_alternative<double Options::*>(row.field);
}
bool is_whole(const OptionRow& row) {
  return std::holds_alternative<std::int64_t Options::*>(row.field);
}
bool is_switch(const OptionRow& row) { return std::holds_alternative<bool Options::*>(row.field); }

std::vector<std::string> words(std::string_view choices) {
  std::vector<std::string> result;
  std::istringstream stream{std::string(choices)};
  for (std::string word; std::getline(stream, word, '|');) result.push_back(word);
  return result;
}

std::vector<std::string> good_values(const OptionRow& row) {
  if (is_number(row)) {
    // The largest may not be exact once it is a double; the rows' are.
    return {text_of(row.minimum), text_of(row.maximum), text_of(std::floor(row.maximum / 2) + 1)};
  }
  if (is_switch(row)) return {"0", "1"};
  if (!row.choices.empty()) return words(row.choices);
  return {"", "anything,goes=here"};
}

std::vector<std::string> bad_values(const OptionRow& row) {
  if (is_number(row)) {
    std::vector<std::string> values = {
        "", "many", "1x", "1 2", "nan", "inf", text_of(row.minimum - 1), text_of(row.maximum * 2)};
    if (is_whole(row)) values.push_back(text_of(row.minimum + 0.5));
    return values;
  }
  if (is_switch(row)) return {"2", "maybe"};
  if (!row.choices.empty()) return {"", "no-such-word", std::string(row.choices)};
  return {};
}

void expect_refused(const std::string& variable, const std::string& value) {
  const Result<Options> options = parse({{variable, value}});
  CAPTURE(variable, value);
  REQUIRE_FALSE(options.ok());
  REQUIRE(options.status().code() == StatusCode::kInvalidArgument);
  // Names the variable and what it was, and says what is accepted.
  REQUIRE(options.status().message().find(variable + "=\"" + value + "\"") == 0);
  REQUIRE(options.status().message().find("expected") != std::string::npos);
}

TEST_CASE("rows have names, sentences and distinct fields") {
  std::set<std::string_view> names;
  for (const OptionRow& row : option_table()) {
    CAPTURE(row.name);
    REQUIRE(names.insert(row.name).second);
    REQUIRE_FALSE(row.sentence.empty());
    if (!row.horovod.empty()) {
      REQUIRE(row.horovod.starts_with("HOROVOD_"));
      REQUIRE(names.insert(row.horovod).second);
    }
    for (const OptionRow& other : option_table()) {
      if (&row != &other) REQUIRE(row.field != other.field);
    }
  }
}

TEST_CASE("an empty environment gives the defaults, which the rows accept") {
  const Options options = parse({}).value();
  for (const OptionRow& row : option_table()) {
    CAPTURE(row.name);
    const std::string value = field_text(row, options);
    REQUIRE(value == field_text(row, Options()));
    const Result<Options> again = parse({{"ALLRING_" + std::string(row.name), value}});
    REQUIRE(again.ok());
    REQUIRE(field_text(row, *again) == value);
  }
}

TEST_CASE("every row takes its good values, by either name") {
  for (const OptionRow& row : option_table()) {
    for (const std::string& value : good_values(row)) {
      for (const std::string& variable :
           {"ALLRING_" + std::string(row.name), std::string(row.horovod)}) {
        if (variable.empty()) continue;
        CAPTURE(variable, value);
        const Result<Options> options = parse({{variable, value}});
        REQUIRE(options.ok());
        REQUIRE(field_text(row, *options) == value);
        // And changes no other field.
        for (const OptionRow& other : option_table()) {
          if (&other != &row) REQUIRE(field_text(other, *options) == field_text(other, Options()));
        }
      }
    }
  }
}

TEST_CASE("every row refuses what it cannot mean, and names the variable") {
  for (const OptionRow& row : option_table()) {
    for (const std::string& value : bad_values(row)) {
      expect_refused("ALLRING_" + std::string(row.name), value);
      if (!row.horovod.empty()) expect_refused(std::string(row.horovod), value);
    }
  }
}

TEST_CASE("our own name wins over Horovod's, even when Horovod's is wrong") {
  const Options options =
      parse({{"ALLRING_FUSION_THRESHOLD", "1024"}, {"HOROVOD_FUSION_THRESHOLD", "rubbish"}})
          .value();
  REQUIRE(options.fusion_threshold_bytes == 1024);
}

TEST_CASE("switches and words are taken in any case") {
  for (const char* on : {"1", "true", "YES", "On"}) {
    REQUIRE(parse({{"ALLRING_LOG_HIDE_TIME", on}}).value().log_hide_time);
  }
  for (const char* off : {"0", "False", "no", "OFF", ""}) {
    REQUIRE_FALSE(parse({{"ALLRING_SHARED_MEMORY", off}}).value().shared_memory);
  }
  REQUIRE(parse({{"ALLRING_WAIT", "Spin"}}).value().wait == "spin");
  REQUIRE(parse({{"HOROVOD_LOG_LEVEL", "DEBUG"}}).value().log_level == "debug");
}

TEST_CASE("the process's environment is looked up") {
  REQUIRE(setenv("ALLRING_LANES", "3", 1) == 0);
  REQUIRE(lookup_environment("ALLRING_LANES") == "3");
  REQUIRE(Options::from_environment().value().lanes == 3);
  REQUIRE(unsetenv("ALLRING_LANES") == 0);
  REQUIRE(lookup_environment("ALLRING_LANES") == std::nullopt);
}

}  // namespace
}  // namespace allring
