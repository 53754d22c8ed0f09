#include "runtime/rendezvous/fields.h"

#include <cstdint>

namespace allring {

void append_field(std::string* record, std::string_view field) {
  const auto length = static_cast<std::uint32_t>(field.size());
  for (int shift = 0; shift < 32; shift += 8)
    record->push_back(static_cast<char>(length >> shift & 0xff));
  record->append(field);
}

bool take_field(std::string_view* record, std::string* field) {
  if (record->size() < 4) return false;
  std::uint32_t length = 0;
  for (int i = 0; i < 4; ++i)
    length |= std::uint32_t{static_cast<unsigned char>((*record)[i])} << (8 * i);
  if (length > record->size() - 4) return false;
  *field = record->substr(4, length);
  record->remove_prefix(4 + length);
  return true;
}

}  // namespace allring
