#include "runtime/negotiation/decider.h"

#include <algorithm>
#include <utility>

#include "collectives/base/check.h"
#include "runtime/negotiation/consistency.h"
#include "runtime/request/request_text.h"
#include "runtime/request/validate.h"

namespace allring {

namespace {

std::string pending_text(const PendingTensor& tensor) {
  return std::string(collective_kind_name(tensor.kind)) + " \"" + tensor.name + "\"";
}

}  // namespace

Decider::Decider(Settings settings)
    : settings_(std::move(settings)),
      size_(static_cast<int>(settings_.members.size())),
      readiness_(size_),
      ids_(settings_.cache_capacity),
      stalls_(settings_.stall),
      seen_(settings_.members.size()) {}

Status Decider::announce(const Announcement& announcement, TimePoint now) {
  const Rank rank = announcement.rank;
  if (rank < 0 || rank >= size_ || announcement.seen < seen_[rank] || announcement.seen > sequence_)
    return Status::internal("an announcement of rank " + std::to_string(rank) +
                            " is out of order (it has seen decision " +
                            std::to_string(announcement.seen) + " of " + std::to_string(sequence_) +
                            ")");
  seen_[rank] = announcement.seen;
  forget_retired();
  for (CacheId id : announcement.cached)
    ALLRING_RETURN_IF_ERROR(announce_cached(rank, id, announcement.seen, now));
  for (const Request& request : announcement.requests)
    ALLRING_RETURN_IF_ERROR(announce_full(rank, request, now));
  return {};
}

Status Decider::announce_cached(Rank rank, CacheId id, std::uint64_t seen, TimePoint now) {
  // The first reuse of the number that this rank has not seen ended the meaning that it had in
  // mind.
  for (const Retired& retired : retired_)
    if (retired.id == id && retired.sequence > seen)
      return announce_full(rank, remembered_request(retired.entry, rank, size_), now);
  const ResponseCache::Entry* entry = cache_.at(id);
  if (entry == nullptr)
    return Status::internal(settings_.descriptions[rank] + " announced cached tensor " +
                            std::to_string(id) + ", which nobody remembers");
  const std::string& name = entry->request.name;
  if (came_too_late(rank, name)) return {};
  PendingTensor* tensor = readiness_.announce(rank, id, *entry, now);
  if (tensor != nullptr && tensor->id && tensor->announced.count() == 1) {
    ids_.touch(id);
    ids_.pin(id);
    stalls_.started_waiting(now);
  }
  return after_announcement(tensor, rank, name);
}

Status Decider::announce_full(Rank rank, const Request& request, TimePoint now) {
  if (Status valid = validate(request, size_); !valid.ok())
    return Status::internal(settings_.descriptions[rank] +
                            " announced nonsense: " + valid.message());
  if (came_too_late(rank, request.name)) return {};
  const PendingTensor* waiting = readiness_.find(request.name);
  const std::optional<CacheId> id = waiting != nullptr ? waiting->id : std::nullopt;
  PendingTensor* tensor = readiness_.announce(rank, request, cache_.find(request.name), now);
  if (tensor == nullptr) return after_announcement(tensor, rank, request.name);
  if (id && !tensor->id) ids_.unpin(*id);
  if (tensor->announced.count() == 1) stalls_.started_waiting(now);
  return after_announcement(tensor, rank, request.name);
}

bool Decider::came_too_late(Rank rank, const std::string& name) {
  if (overdue_.empty()) return false;
  const auto found = overdue_.find(name);
  if (found == overdue_.end() || !found->second.missing.erase(rank)) return false;
  ready_.push_back(Rejection{found->second.code, found->second.message, {name}, {rank}});
  if (found->second.missing.empty()) overdue_.erase(found);
  return true;
}

Status Decider::after_announcement(PendingTensor* tensor, Rank rank, const std::string& name) {
  if (tensor == nullptr)
    return Status::internal(settings_.descriptions[rank] + " announced \"" + name + "\" twice");
  if (tensor->announced.full()) settle(*tensor);
  return {};
}

void Decider::settle(PendingTensor& tensor) {
  const std::vector<PendingTensor*> settled = readiness_.settle(tensor);
  if (tensor.factions.size() > 1) {
    std::vector<Faction> factions = tensor.factions;
    std::sort(factions.begin(), factions.end(), [](const Faction& one, const Faction& other) {
      return one.ranks.front() < other.ranks.front();
    });
    reject(settled, StatusCode::kMismatch, mismatch_text(factions, settings_.members));
    return;
  }
  for (PendingTensor* member : settled) accept(*member);
}

void Decider::accept(PendingTensor& tensor) {
  ready_bytes_ += tensor.bytes;
  const std::unique_ptr<PendingTensor> taken = readiness_.take(tensor);
  if (taken->id) {
    ready_.push_back(*taken->id);  // stays pinned until it is decided
  } else {
    ready_.push_back(ReadyResponse{taken->name, std::move(taken->factions.front().request),
                                   std::move(taken->sizes)});
  }
}

void Decider::reject(const std::vector<PendingTensor*>& tensors, StatusCode code,
                     const std::string& message) {
  Rejection to_all{code, message, {}, {}};
  for (PendingTensor* tensor : tensors) {
    // What a number that was pinned for it means does not change by this.
    if (tensor->id) ids_.unpin(*tensor->id);
    const std::unique_ptr<PendingTensor> taken = readiness_.take(*tensor);
    if (taken->announced.full()) {
      to_all.names.push_back(taken->name);
      continue;
    }
    // Only who has announced it fails now. Whoever comes later fails then, and cannot be confused
    // with a second attempt of the others.
    ready_.push_back(Rejection{code, message, {taken->name}, taken->announced.ranks()});
    Overdue overdue{code, message, RankSet(size_)};
    for (Rank rank : taken->announced.missing()) overdue.missing.insert(rank);
    overdue_.insert_or_assign(taken->name, std::move(overdue));
  }
  if (!to_all.names.empty()) ready_.push_back(std::move(to_all));
}

Decision Decider::decide() {
  ALLRING_CHECK(has_ready(), "there is nothing to decide");
  Decision decision;
  decision.sequence = ++sequence_;
  if (std::exchange(fusion_changed_, false)) decision.limits = settings_.fusion;
  for (Ready& ready : ready_) {
    if (const CacheId* id = std::get_if<CacheId>(&ready)) {
      auto* run =
          decision.entries.empty() ? nullptr : std::get_if<CachedRun>(&decision.entries.back());
      if (run == nullptr) run = &std::get<CachedRun>(decision.entries.emplace_back(CachedRun()));
      run->push_back(*id);
    } else if (auto* response = std::get_if<ReadyResponse>(&ready)) {
      write_response(*response, &decision);
    } else {
      decision.entries.emplace_back(std::get<Rejection>(std::move(ready)));
    }
  }
  // Not before all entries are written: a number given up by this decision must not be one that it
  // runs.
  for (const DecisionEntry& entry : decision.entries)
    if (const auto* run = std::get_if<CachedRun>(&entry))
      for (CacheId id : *run) ids_.unpin(id);
  ready_.clear();
  ready_bytes_ = 0;
  return decision;
}

void Decider::write_response(ReadyResponse& ready, Decision* decision) {
  Response response{ready.name, std::nullopt, ready.sizes};
  if (!ready.request.unnamed) {
    CacheId id = 0;
    if (cache_.find(ready.name, &id) != nullptr) {
      response.remember = id;  // as it is now
      ids_.touch(id);
    } else {
      response.remember = ids_.choose();
    }
    if (response.remember) {
      if (const auto* given_up = cache_.at(*response.remember);
          given_up != nullptr && given_up->request.name != ready.name)
        retired_.push_back({*response.remember, sequence_, *given_up});
      cache_.remember(*response.remember, std::move(ready.request), std::move(ready.sizes));
    }
  }
  decision->entries.emplace_back(std::move(response));
}

void Decider::set_fusion(FusionLimits limits) {
  fusion_changed_ = fusion_changed_ || limits != settings_.fusion;
  settings_.fusion = limits;
}

std::vector<std::string> Decider::check_stalls(TimePoint now) {
  if (now < next_check()) return {};
  const std::vector<PendingTensor*> pending = readiness_.pending();
  std::vector<std::string> texts;
  std::vector<StallInspector::Waiting> waiting;
  texts.reserve(pending.size());
  for (PendingTensor* tensor : pending) {
    texts.push_back(pending_text(*tensor));
    waiting.push_back({texts.back(), tensor->since, tensor->announced.ranks(),
                       tensor->announced.missing(), &tensor->warned});
  }
  const StallInspector::Verdict verdict =
      stalls_.inspect(waiting, now, settings_.members, settings_.descriptions);
  std::vector<const PendingTensor*> gone;
  for (std::size_t i : verdict.expired) {
    if (std::find(gone.begin(), gone.end(), pending[i]) != gone.end()) continue;
    const std::vector<PendingTensor*> fate = readiness_.fate_of(*pending[i]);
    gone.insert(gone.end(), fate.begin(), fate.end());
    reject(fate, StatusCode::kTimedOut,
           stalls_.error_text(waiting[i], now, settings_.members, settings_.descriptions));
  }
  return verdict.warnings;
}

void Decider::forget_retired() {
  if (retired_.empty()) return;
  const std::uint64_t seen_by_all = *std::min_element(seen_.begin(), seen_.end());
  while (!retired_.empty() && retired_.front().sequence <= seen_by_all) retired_.pop_front();
}

}  // namespace allring
