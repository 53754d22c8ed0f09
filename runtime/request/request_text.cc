#include "runtime/request/request_text.h"

#include <algorithm>

namespace allring {

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::int64_t extent : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(extent);
  }
  return text + ']';
}

std::string tensor_text(const Request& request) {
  return std::string(collective_kind_name(request.kind)) + " \"" + request.name + "\"";
}

std::string tensor_list_text(std::span<const std::string> tensors) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), kShown); ++i) {
    if (i > 0) text += i + 1 == tensors.size() ? " and " : ", ";
    text += tensors[i];
  }
  if (tensors.size() > kShown) text += " and " + std::to_string(tensors.size() - kShown) + " more";
  return text;
}

}  // namespace allring
