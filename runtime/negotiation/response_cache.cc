#include "runtime/negotiation/response_cache.h"

#include <numeric>
#include <utility>

namespace allring {

const ResponseCache::Entry* ResponseCache::find(std::string_view name, CacheId* id) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  if (id != nullptr) *id = found->second;
  return &*slots_[found->second];
}

const ResponseCache::Entry* ResponseCache::at(CacheId id) const {
  return id < slots_.size() && slots_[id] ? &*slots_[id] : nullptr;
}

void ResponseCache::remember(CacheId id, Request request, std::vector<std::int64_t> sizes) {
  if (id >= slots_.size()) slots_.resize(id + 1);
  if (slots_[id]) by_name_.erase(slots_[id]->request.name);
  if (const auto former = by_name_.find(request.name); former != by_name_.end()) {
    slots_[former->second].reset();
    by_name_.erase(former);
  }
  by_name_.emplace(request.name, id);
  slots_[id] = Entry{std::move(request), std::move(sizes)};
}

Request remembered_request(const ResponseCache::Entry& entry, Rank rank, int size) {
  Request request = entry.request;
  if (request.kind == CollectiveKind::kAllgather) {
    request.shape[0] = entry.sizes[rank];
  } else if (request.kind == CollectiveKind::kAlltoall) {
    const auto row = entry.sizes.begin() + static_cast<std::ptrdiff_t>(rank) * size;
    request.splits.assign(row, row + size);
    request.shape[0] = std::accumulate(row, row + size, std::int64_t{0});
  }
  return request;
}

std::optional<CacheId> CacheIds::choose() {
  if (slots_.size() < capacity_) {
    const auto id = static_cast<CacheId>(slots_.size());
    slots_.push_back({by_use_.insert(by_use_.end(), id), 0});
    return id;
  }
  for (CacheId id : by_use_) {
    if (slots_[id].pins > 0) continue;
    touch(id);
    return id;
  }
  return std::nullopt;
}

void CacheIds::touch(CacheId id) { by_use_.splice(by_use_.end(), by_use_, slots_[id].place); }

}  // namespace allring
