#include "runtime/negotiation/readiness.h"

#include <algorithm>
#include <utility>

#include "collectives/base/check.h"
#include "runtime/request/validate.h"

namespace allring {

PendingTensor* Readiness::announce(Rank rank, CacheId id, const ResponseCache::Entry& entry,
                                   TimePoint now) {
  if (id >= by_id_.size()) by_id_.resize(id + 1);
  PendingTensor* tensor = by_id_[id];
  if (tensor == nullptr) tensor = find(entry.request.name);
  if (tensor == nullptr) {
    tensor = &add(entry.request, now);
    tensor->id = id;
    by_id_[id] = tensor;
  }
  if (!tensor->announced.insert(rank)) return nullptr;
  // Somebody announced it in full: then what this rank remembers counts as its request.
  if (!tensor->id) join_faction(*tensor, rank, remembered_request(entry, rank, size_));
  return tensor;
}

PendingTensor* Readiness::announce(Rank rank, const Request& request,
                                   const ResponseCache::Entry* entry, TimePoint now) {
  PendingTensor* tensor = find(request.name);
  if (tensor == nullptr) tensor = &add(request, now);
  if (tensor->announced.contains(rank)) return nullptr;
  if (tensor->id) {
    // It is not as remembered after all; spell out what the others announced by number.
    ALLRING_CHECK(entry != nullptr, "what is announced by number is remembered");
    by_id_[*tensor->id] = nullptr;
    tensor->id.reset();
    for (Rank other : tensor->announced.ranks())
      join_faction(*tensor, other, remembered_request(*entry, other, size_));
  }
  tensor->announced.insert(rank);
  join_faction(*tensor, rank, request);
  return tensor;
}

std::vector<PendingTensor*> Readiness::settle(PendingTensor& tensor) {
  ALLRING_CHECK(tensor.announced.full() && !tensor.ready, "a tensor is settled once");
  tensor.ready = true;
  if (tensor.factions.size() > 1) return fate_of(tensor);
  if (tensor.group.empty()) return {&tensor};
  Group& group = groups_[tensor.group];
  if (++group.ready < tensor.group_size) return {};
  std::vector<PendingTensor*> members = group.members;
  std::erase(members, nullptr);
  return members;
}

std::vector<PendingTensor*> Readiness::fate_of(PendingTensor& tensor) {
  std::vector<PendingTensor*> doomed = {&tensor};
  // Grows while it is walked: a member may belong to further groups in the eyes of other ranks.
  for (std::size_t i = 0; i < doomed.size(); ++i) {
    std::vector<std::string> groups;
    if (!doomed[i]->group.empty()) groups.push_back(doomed[i]->group);
    for (const Faction& faction : doomed[i]->factions)
      if (!faction.request.group.empty()) groups.push_back(faction.request.group);
    for (const std::string& group : groups)
      for (PendingTensor* member : groups_[group].members)
        if (member != nullptr && std::find(doomed.begin(), doomed.end(), member) == doomed.end())
          doomed.push_back(member);
  }
  return doomed;
}

std::unique_ptr<PendingTensor> Readiness::take(PendingTensor& tensor) {
  if (tensor.id) by_id_[*tensor.id] = nullptr;
  if (!tensor.group.empty()) leave_group(tensor, tensor.group);
  for (const Faction& faction : tensor.factions)
    if (!faction.request.group.empty()) leave_group(tensor, faction.request.group);
  return std::move(tensors_.extract(tensor.name).mapped());
}

std::vector<PendingTensor*> Readiness::pending() {
  std::vector<PendingTensor*> all;
  for (const auto& [name, tensor] : tensors_) all.push_back(tensor.get());
  return all;
}

PendingTensor* Readiness::find(std::string_view name) {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.get();
}

PendingTensor& Readiness::add(const Request& first, TimePoint now) {
  auto tensor = std::make_unique<PendingTensor>(size_);
  tensor->name = first.name;
  tensor->kind = first.kind;
  tensor->group = first.group;
  tensor->group_size = first.group_size;
  tensor->since = now;
  // Announced requests were validated, so the count exists.
  if (const auto count = element_count(first.shape, first.dtype); count.ok())
    tensor->bytes = *count * static_cast<std::int64_t>(element_bytes(first.dtype));
  if (!first.group.empty()) groups_[first.group].members.push_back(tensor.get());
  PendingTensor& added = *tensor;
  tensors_.emplace(added.name, std::move(tensor));
  return added;
}

void Readiness::join_faction(PendingTensor& tensor, Rank rank, const Request& request) {
  const auto size = static_cast<std::size_t>(size_);
  const auto place = static_cast<std::size_t>(rank);
  if (request.kind == CollectiveKind::kAllgather && !request.shape.empty()) {
    tensor.sizes.resize(std::max(tensor.sizes.size(), size));
    tensor.sizes[place] = request.shape[0];
  } else if (request.kind == CollectiveKind::kAlltoall && request.splits.size() == size) {
    tensor.sizes.resize(size * size);
    std::copy(request.splits.begin(), request.splits.end(), tensor.sizes.begin() + place * size);
  }
  for (Faction& faction : tensor.factions) {
    if (!agree(faction.request, request)) continue;
    faction.ranks.insert(std::upper_bound(faction.ranks.begin(), faction.ranks.end(), rank), rank);
    return;
  }
  if (!request.group.empty() && request.group != tensor.group) join_group(tensor, request.group);
  tensor.factions.push_back({request, {rank}});
}

// Members mostly leave in the order in which they came, so that looking for one is short.
void Readiness::leave_group(PendingTensor& tensor, const std::string& name) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return;
  Group& group = found->second;
  const auto begin = group.members.begin() + static_cast<std::ptrdiff_t>(group.first);
  const auto place = std::find(begin, group.members.end(), &tensor);
  if (place != group.members.end()) *place = nullptr;
  while (group.first < group.members.size() && group.members[group.first] == nullptr) ++group.first;
  if (group.first == group.members.size()) groups_.erase(found);
}

void Readiness::join_group(PendingTensor& tensor, const std::string& group) {
  std::vector<PendingTensor*>& members = groups_[group].members;
  if (std::find(members.begin(), members.end(), &tensor) == members.end())
    members.push_back(&tensor);
}

}  // namespace allring
