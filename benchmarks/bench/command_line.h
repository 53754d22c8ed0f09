#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "collectives/base/status.h"

namespace allring::bench {

/// "8", "64K", "1M", "2G" (powers of 1024). False for anything else.
bool parse_bytes(const std::string& text, std::size_t* bytes);

/// A CLI11 check that turns "64K" into bytes.
CLI::Validator bytes_validator();

/// Adds --buffers and --against.
void add_contest_options(CLI::App& app, std::string* buffers, std::string* against);

/// Parses, or for --help, --version and mistakes prints and gives the exit status (0 or 2).
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

/// Prints it to standard error, unless it has no message: then another rank has said why.
/// @return the exit status: 2 where the command line was wrong, else 1.
int exit_status(const Status& failure);

}  // namespace allring::bench
