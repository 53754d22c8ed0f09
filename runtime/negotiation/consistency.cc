#include "runtime/negotiation/consistency.h"

#include <algorithm>
#include <charconv>

#include "collectives/base/check.h"
#include "runtime/negotiation/rank_set.h"
#include "runtime/request/request_text.h"

namespace allring {

namespace {

bool rows_may_differ(CollectiveKind kind) {
  return kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAlltoall;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kReduceScatter;
}

bool shapes_agree(const Request& one, const Request& other) {
  if (!rows_may_differ(one.kind)) return one.shape == other.shape;
  return one.shape.size() == other.shape.size() && !one.shape.empty() &&
         std::equal(one.shape.begin() + 1, one.shape.end(), other.shape.begin() + 1);
}

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

std::string shape_pattern(const Request& request) {
  if (!rows_may_differ(request.kind) || request.shape.empty()) return shape_text(request.shape);
  std::string text = shape_text(request.shape);
  return "[*" + text.substr(std::min(text.find_first_of(",]"), text.size()));
}

// What of a request is worth saying, given how the factions differ.
struct Differences {
  bool kind = false;
  bool op = false;
  bool prescale = false;
  bool postscale = false;
  bool root = false;
  bool device = false;
  bool group = false;
  bool group_size = false;
};

Differences differences(std::span<const Faction> factions, std::span<const Rank> members) {
  Differences result;
  const Request& first = factions.front().request;
  for (const Faction& faction : factions.subspan(1)) {
    const Request& other = faction.request;
    result.kind |= other.kind != first.kind;
    result.op |= other.op != first.op;
    result.prescale |= other.prescale != first.prescale;
    result.postscale |= other.postscale != first.postscale;
    result.root |= other.root != first.root && first.kind == CollectiveKind::kBroadcast &&
                   static_cast<std::size_t>(std::max(first.root, other.root)) < members.size();
    result.device |= (other.device < 0) != (first.device < 0);
    result.group |= other.group != first.group;
    result.group_size |= other.group_size != first.group_size && other.group == first.group;
  }
  return result;
}

std::string faction_text(const Request& request, const Differences& differ,
                         std::span<const Rank> members) {
  std::string text;
  if (differ.kind) text += std::string(collective_kind_name(request.kind)) + " ";
  text += std::string(data_type_name(request.dtype)) + " " + shape_pattern(request);
  if (differ.op && reduces(request.kind)) text += " " + std::string(reduce_op_name(request.op));
  if (differ.prescale) text += " prescale " + number_text(request.prescale);
  if (differ.postscale) text += " postscale " + number_text(request.postscale);
  if (differ.root) text += " root " + std::to_string(members[request.root]);
  if (differ.device)
    text += request.device < 0 ? " in host memory" : " on device " + std::to_string(request.device);
  if (differ.group)
    text += request.group.empty() ? " in no group" : " in group \"" + request.group + "\"";
  if (differ.group_size) text += " in a group of " + std::to_string(request.group_size);
  return text;
}

}  // namespace

bool agree(const Request& one, const Request& other) {
  if (one.kind != other.kind || one.group != other.group || one.group_size != other.group_size)
    return false;
  if (one.kind == CollectiveKind::kBarrier) return true;
  if (one.dtype != other.dtype || (one.device < 0) != (other.device < 0) ||
      !shapes_agree(one, other))
    return false;
  if (reduces(one.kind) &&
      (one.op != other.op || one.prescale != other.prescale || one.postscale != other.postscale))
    return false;
  return one.kind != CollectiveKind::kBroadcast || one.root == other.root;
}

std::string mismatch_text(std::span<const Faction> factions, std::span<const Rank> members) {
  ALLRING_CHECK(factions.size() >= 2, "a mismatch has two sides");
  const Differences differ = differences(factions, members);
  const Request& first = factions.front().request;
  std::string text = differ.kind ? "tensor \"" + first.name + "\"" : tensor_text(first);
  for (std::size_t i = 0; i < factions.size(); ++i) {
    text += i == 0 ? ": " : ", ";
    text += rank_list_text(factions[i].ranks, members);
    text += i == 0 ? " submitted " : " ";
    text += faction_text(factions[i].request, differ, members);
  }
  return text;
}

}  // namespace allring
