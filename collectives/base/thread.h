#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace allring {

/// Starts a thread that shows as `name` (15 bytes at most) in ps and gdb. Signals are blocked in
/// it, so the program's own threads handle them. The caller joins it.
std::thread start_thread(const std::string& name, std::function<void()> body);

/// The same, but empty where the system allows no further thread; start_thread() ends the program.
std::optional<std::thread> try_start_thread(const std::string& name, std::function<void()> body);

}  // namespace allring
