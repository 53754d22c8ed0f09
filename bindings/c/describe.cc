#include "bindings/c/describe.h"

#include <charconv>
#include <string_view>

#include "allring_version.h"
#include "bindings/c/allring.h"
#include "collectives/algorithm/catalog.h"
#include "collectives/kernels/reduce.h"

namespace allring {

namespace {

std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += "\\u00";
      result += kHex[c >> 4];
      result += kHex[c & 15];
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string_view simd_name(Simd simd) {
  switch (simd) {
    case Simd::kScalar:
      return "scalar";
    case Simd::kAvx2:
      return "avx2";
    case Simd::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::string option_value(const Options& options, const OptionRow& row) {
  if (const auto* field = std::get_if<std::int64_t Options::*>(&row.field))
    return std::to_string(options.**field);
  if (const auto* field = std::get_if<double Options::*>(&row.field))
    return number(options.**field);
  if (const auto* field = std::get_if<bool Options::*>(&row.field))
    return options.**field ? "true" : "false";
  return quoted(options.*std::get<std::string Options::*>(row.field));
}

std::string options_object(const Options& options) {
  std::string text = "{";
  for (const OptionRow& row : option_table()) {
    if (text.size() > 1) text += ", ";
    text += quoted(row.name) + ": " + option_value(options, row);
  }
  return text + "}";
}

std::string algorithms_object() {
  std::string text = "{";
  for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kBarrier); ++kind) {
    if (kind > 0) text += ", ";
    text += quoted(collective_kind_name(static_cast<CollectiveKind>(kind))) + ": [";
    bool first = true;
    for (const Algorithm& algorithm : algorithms(static_cast<CollectiveKind>(kind))) {
      if (!first) text += ", ";
      text += quoted(algorithm.name);
      first = false;
    }
    text += "]";
  }
  return text + "}";
}

std::string place_object(const Runtime& runtime) {
  const Runtime::Place& place = runtime.place();
  return "{\"rank\": " + std::to_string(place.rank) + ", \"size\": " + std::to_string(place.size) +
         ", \"local_rank\": " + std::to_string(place.local_rank) +
         ", \"local_size\": " + std::to_string(place.local_size) +
         ", \"cross_rank\": " + std::to_string(place.cross_rank) +
         ", \"cross_size\": " + std::to_string(place.cross_size) +
         ", \"description\": " + quoted(runtime.description()) + ", \"shared_memory\": " +
         (runtime.process_set(0).value()->shared_memory() ? "true" : "false") + "}";
}

}  // namespace

Result<std::string> describe(const Runtime* runtime) {
  Options options;
  if (runtime != nullptr) {
    options = runtime->options();
  } else {
    ALLRING_ASSIGN_OR_RETURN(options, Options::from_environment());
  }
  return "{\"version\": " + quoted(kVersion) +
         ", \"abi_version\": " + std::to_string(ALLRING_ABI_VERSION) +
         ", \"simd\": " + quoted(simd_name(current_simd())) +
         ", \"transports\": [\"shared_memory\", \"tcp\"]" +
         ", \"algorithms\": " + algorithms_object() +
         ", \"lanes\": " + std::to_string(options.lanes) +
         ", \"place\": " + (runtime != nullptr ? place_object(*runtime) : "null") +
         ", \"options\": " + options_object(options) + "}";
}

}  // namespace allring
