#pragma once

#include <string>
#include <string_view>

namespace allring {

// A record of strings: each one is its u32 length, little endian, and its bytes.

void append_field(std::string* record, std::string_view field);

/// Takes a field off the front of *record. @return false if it is cut short.
bool take_field(std::string_view* record, std::string* field);

}  // namespace allring
