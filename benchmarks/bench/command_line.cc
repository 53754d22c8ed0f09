#include "benchmarks/bench/command_line.h"

#include <cctype>
#include <cstdio>
#include <limits>

#include "bindings/c/allring.h"

namespace allring::bench {

bool parse_bytes(const std::string& text, std::size_t* bytes) {
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  if (digits == 0 || digits > 12 || text.size() > digits + 1) return false;
  int shift = 0;
  if (text.size() == digits + 1) {
    const auto unit = std::string("KMG").find(
        static_cast<char>(std::toupper(static_cast<unsigned char>(text[digits]))));
    if (unit == std::string::npos) return false;
    shift = 10 * static_cast<int>(unit + 1);
  }
  const std::size_t value = std::stoull(text.substr(0, digits));
  if (value > std::numeric_limits<std::size_t>::max() >> (shift + 1)) return false;
  *bytes = value << shift;
  return true;
}

CLI::Validator bytes_validator() {
  return CLI::Validator(
      [](std::string& text) {
        std::size_t bytes = 0;
        if (!parse_bytes(text, &bytes)) return "\"" + text + "\" is not a size like 8, 64K or 1M";
        text = std::to_string(bytes);
        return std::string();
      },
      "BYTES[K|M|G]");
}

void add_contest_options(CLI::App& app, std::string* buffers, std::string* against) {
  app.add_option(
         "--buffers", *buffers,
         "private: memory of the program's own; arena: memory that the ranks of a host share")
      ->check(CLI::IsMember({"private", "arena"}));
  app.add_option("--against", *against,
                 "Measures a peer in turns with ours, on the same ranks (under mpirun)")
      ->check(CLI::IsMember({"openmpi"}));
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", std::string("hvdbench ") + allring_version());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "hvdbench: %s (%s --help lists the options)\n", error.what(),
                 app.get_name().c_str());
    return 2;
  }
  return std::nullopt;
}

int exit_status(const Status& failure) {
  if (!failure.message().empty())
    std::fprintf(stderr, "hvdbench: %s\n", failure.to_string().c_str());
  return failure.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace allring::bench
