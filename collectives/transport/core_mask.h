#pragma once

#include <span>
#include <string>
#include <string_view>

namespace allring {

/// The cores that this process may run on: bit i of byte i / 8, without trailing zero bytes. Empty
/// if the system does not tell.
std::string this_core_mask();

/// How many cores are in at least one of the masks.
int count_cores(std::span<const std::string_view> masks);

}  // namespace allring
