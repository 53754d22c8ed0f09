#include "launcher/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

namespace allring {

namespace {

struct OptionWord {
  const CLI::Option* option;
  std::string name;                  ///< as CLI11 spells it
  std::optional<std::string> value;  ///< given in the same word
};

/// Reads "--name", "--name=value", "-name", "-n", "-nvalue"; nullopt if no option is spelled so.
std::optional<OptionWord> read_option(const CLI::App& app, const std::string& word) {
  const std::size_t equals = word.find('=');
  std::string name = word.substr(0, equals);
  std::optional<std::string> value;
  if (equals != std::string::npos) value = word.substr(equals + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  const std::string long_name = name.starts_with("--") ? name : "-" + name;
  if (long_name.size() > 3) {
    if (const CLI::Option* option = app.get_option_no_throw(long_name))
      return OptionWord{option, long_name, value};
  }
  if (word.starts_with("--")) return std::nullopt;
  const std::string short_name = word.substr(0, 2);
  const CLI::Option* option = app.get_option_no_throw(short_name);
  if (option == nullptr) return std::nullopt;
  if (word.size() == 2) return OptionWord{option, short_name, std::nullopt};
  if (option->get_items_expected_min() == 0) return std::nullopt;  // flags are not run together
  return OptionWord{option, short_name, word.substr(word[2] == '=' ? 3 : 2)};
}

}  // namespace

Result<SplitCommandLine> split_command_line(const CLI::App& app,
                                            const std::vector<std::string>& words) {
  SplitCommandLine split;
  std::size_t i = 0;
  while (i < words.size()) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const std::optional<OptionWord> read = read_option(app, word);
    if (!read)
      return Status::invalid_argument("unknown option " + word +
                                      "; hvdrun --help lists the options, and options of the "
                                      "command belong after it");
    ++i;
    split.options.push_back(read->name);
    split.given.insert(read->option);
    int missing = read->option->get_items_expected_min();
    if (read->value) {
      if (missing == 0) return Status::invalid_argument("option " + read->name + " takes no value");
      // One word, so that CLI11 cannot take a value that begins with a dash for an option.
      split.options.back() += (read->name.starts_with("--") ? "=" : "") + *read->value;
      --missing;
    } else if (missing == 1) {
      if (i == words.size()) return Status::invalid_argument("option " + word + " needs a value");
      split.options.back() += (read->name.starts_with("--") ? "=" : "") + words[i++];
      missing = 0;
    }
    for (; missing > 0; --missing) {
      if (i == words.size())
        return Status::invalid_argument("option " + word + " needs another value");
      split.options.push_back(words[i++]);
    }
  }
  split.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return split;
}

Result<std::vector<std::string>> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool more = i + 1 < text.size();
    if (quote == '\'' || quote == '"') {
      if (c == quote) {
        quote = '\0';
      } else if (quote == '"' && c == '\\' && more && (text[i + 1] == '"' || text[i + 1] == '\\')) {
        *word += text[++i];
      } else {
        *word += c;
      }
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      if (!word) word.emplace();
      if (c == '\'' || c == '"') {
        quote = c;
      } else {
        *word += c == '\\' && more ? text[++i] : c;
      }
    }
  }
  if (quote != '\0')
    return Status::invalid_argument(std::string("a quotation ") + quote + " in \"" + text +
                                    "\" has no end");
  if (word) words.push_back(*word);
  return words;
}

}  // namespace allring
