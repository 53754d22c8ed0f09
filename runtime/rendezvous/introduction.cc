#include "runtime/rendezvous/introduction.h"

#include <algorithm>
#include <iomanip>
#include <random>
#include <sstream>
#include <utility>

#include "allring_version.h"
#include "runtime/rendezvous/fields.h"

namespace allring {

namespace {

// Options that rule how data is cut, who waits for whom, and how often ranks are heard of.
constexpr std::string_view kSettings[] = {"FUSION_THRESHOLD",
                                          "FUSION_TENSOR_BYTES",
                                          "CACHE_CAPACITY",
                                          "LANES",
                                          "ALGORITHM",
                                          "ARENA_BYTES",
                                          "DETERMINISTIC",
                                          "SHARED_MEMORY_SLOT_BYTES",
                                          "HEARTBEAT_TIMEOUT_SECONDS"};
constexpr std::size_t kRanksNamed = 16;
// Ranks that started before rank 0 give it this much longer to say who is missing.
constexpr seconds kGrace(5);

constexpr char kPeersKey[] = "peers";

std::string peer_key(Rank rank) { return "peer/" + std::to_string(rank); }

std::string joined_key(Rank rank) { return "joined/" + std::to_string(rank); }

std::string welcome_key(Rank rank, const std::string& number) {
  return "welcome/" + std::to_string(rank) + "/" + number;
}

std::string draw_number() {
  std::random_device device;
  std::ostringstream text;
  text << std::hex << device() << '-' << device();
  return text.str();
}

/// What rank 0 reads under "peer/<rank>".
struct Arrival {
  std::string settings;
  std::string number;
  PeerInfo info;

  std::string encode() const {
    std::string record;
    append_field(&record, settings);
    append_field(&record, number);
    info.append_to(&record);
    return record;
  }

  /// Settings and number are there even if the rest is another version's.
  static Arrival parse(std::string_view record, bool* whole) {
    Arrival arrival;
    *whole = take_field(&record, &arrival.settings) && take_field(&record, &arrival.number);
    Result<PeerInfo> info = PeerInfo::parse(&record);
    *whole = *whole && info.ok() && record.empty();
    if (info.ok()) arrival.info = *std::move(info);
    return arrival;
  }
};

/// Rank 0's answer: empty, or a failure.
std::string encode_answer(const Status& status) {
  std::string record;
  if (status.ok()) return record;
  append_field(&record, std::to_string(static_cast<int>(status.code())));
  append_field(&record, status.message());
  return record;
}

Status parse_answer(std::string_view record) {
  if (record.empty()) return {};
  std::string code;
  std::string message;
  if (!take_field(&record, &code) || !take_field(&record, &message))
    return Status::internal("rank 0 sent a broken answer through the job's store");
  const int number = std::atoi(code.c_str());
  if (number <= 0 || number > static_cast<int>(StatusCode::kInternal))
    return Status::internal(message);
  return Status(static_cast<StatusCode>(number), message);
}

/// The first line that differs: its name and both values.
Status compare(const std::string& mine, const Arrival& other) {
  if (mine == other.settings) return {};
  std::istringstream my_lines(mine);
  std::istringstream other_lines(other.settings);
  std::string my_line;
  std::string other_line;
  while (std::getline(my_lines, my_line) && std::getline(other_lines, other_line) &&
         my_line == other_line) {
  }
  return Status::mismatch(other.info.describe() + " has " + other_line + ", rank 0 has " + my_line +
                          ": they must be equal on all ranks");
}

Status too_late(const std::vector<Rank>& missing, const Introduction& mine) {
  std::ostringstream seconds_text;
  seconds_text << std::chrono::duration<double>(mine.start_timeout).count();
  return Status::timed_out(name_ranks(missing) + " of " + std::to_string(mine.size) +
                           " did not join within " + seconds_text.str() + " s (started by " +
                           mine.starter +
                           "): look at their output, or raise ALLRING_START_TIMEOUT");
}

// @param came ranks that were answered.
Status wait_for_joined(StoreClient& store, const std::vector<Rank>& came, Deadline deadline) {
  std::vector<std::string> keys;
  for (Rank rank : came) keys.push_back(joined_key(rank));
  ALLRING_ASSIGN_OR_RETURN(const auto joined, store.wait_each(keys, deadline));
  std::vector<Rank> missing;
  for (std::size_t i = 0; i < came.size(); ++i)
    if (!joined[i]) missing.push_back(came[i]);
  if (missing.empty()) return {};
  return Status::timed_out(name_ranks(missing) +
                           " introduced themselves but were gone before the job began");
}

Result<std::vector<PeerInfo>> gather(StoreClient& store, const Introduction& mine,
                                     Deadline deadline) {
  std::vector<std::string> keys;
  for (Rank rank = 1; rank < mine.size; ++rank) keys.push_back(peer_key(rank));
  ALLRING_ASSIGN_OR_RETURN(const auto records, store.wait_each(keys, deadline));
  std::vector<PeerInfo> peers = {mine.self};
  std::vector<std::pair<std::string, std::string>> answers;  // the values come last
  std::vector<std::string> taken;
  std::vector<Rank> came;
  std::vector<Rank> missing;
  Status failure;
  for (Rank rank = 1; rank < mine.size; ++rank) {
    const auto& record = records[rank - 1];
    if (!record) {
      missing.push_back(rank);
      continue;
    }
    taken.push_back(keys[rank - 1]);
    came.push_back(rank);
    bool whole = false;
    Arrival arrival = Arrival::parse(*record, &whole);
    answers.emplace_back(welcome_key(rank, arrival.number), "");
    if (failure.ok()) failure = compare(mine.settings, arrival);
    if (failure.ok() && (!whole || arrival.info.rank != rank))
      failure = Status::mismatch("rank " + std::to_string(rank) +
                                 " introduced itself with a broken record");
    peers.push_back(std::move(arrival.info));
  }
  if (!missing.empty()) failure = too_late(missing, mine);
  ALLRING_RETURN_IF_ERROR(store.remove_each(taken));
  if (failure.ok()) {
    std::string list;
    for (const PeerInfo& peer : peers) peer.append_to(&list);
    ALLRING_RETURN_IF_ERROR(store.put(kPeersKey, list));
  }
  for (auto& [key, value] : answers) value = encode_answer(failure);
  ALLRING_RETURN_IF_ERROR(store.put_each(answers));
  Status joined;
  if (mine.store_closes) {
    const Deadline end = failure.ok() ? deadline : deadline_after(kGrace);
    joined = wait_for_joined(store, came, end);
  }
  if (!failure.ok()) return failure;
  if (!joined.ok()) return joined;
  return peers;
}

// The list, or rank 0's reason why there is none.
Result<std::vector<PeerInfo>> read_answer(StoreClient& store, const Introduction& mine,
                                          const std::string& welcome, Deadline deadline) {
  ALLRING_ASSIGN_OR_RETURN(const std::string answer, store.wait(welcome, deadline));
  ALLRING_RETURN_IF_ERROR(parse_answer(answer));
  ALLRING_ASSIGN_OR_RETURN(const std::string list, store.wait(kPeersKey, deadline));
  ALLRING_RETURN_IF_ERROR(store.remove(welcome));
  Result<std::vector<PeerInfo>> peers = parse_peers(list, mine.size);
  if (!peers.ok()) return peers.status().with_prefix("rank 0's list of ranks: ");
  return peers;
}

Result<std::vector<PeerInfo>> arrive(StoreClient& store, const Introduction& mine,
                                     Deadline deadline) {
  const Arrival arrival{mine.settings, draw_number(), mine.self};
  const std::string key = peer_key(mine.self.rank);
  ALLRING_RETURN_IF_ERROR(store.put(key, arrival.encode()));
  const Deadline patient = deadline > kNoDeadline - kGrace ? kNoDeadline : deadline + kGrace;
  Result<std::vector<PeerInfo>> peers =
      read_answer(store, mine, welcome_key(mine.self.rank, arrival.number), patient);
  if (Clock::real().now() >= patient && peers.status().code() == StatusCode::kTimedOut) {
    // So that rank 0 does not take it for a later attempt.
    ALLRING_RETURN_IF_ERROR(store.remove(key));
    return Status::timed_out("rank 0 of " + std::to_string(mine.size) +
                             " did not join (started by " + mine.starter +
                             "): look at its output, or raise ALLRING_START_TIMEOUT");
  }
  if (mine.store_closes) {
    const Status left = store.put(joined_key(mine.self.rank), "");
    if (peers.ok()) ALLRING_RETURN_IF_ERROR(left);
  }
  return peers;
}

}  // namespace

std::string Introduction::settings_of(const Options& options, const CostParameters& costs) {
  std::ostringstream text;
  text << std::setprecision(17) << "Allring version=" << kVersion << '\n';
  for (const OptionRow& row : option_table()) {
    if (std::find(std::begin(kSettings), std::end(kSettings), row.name) == std::end(kSettings))
      continue;
    text << "ALLRING_" << row.name << '=';
    std::visit([&](auto field) { text << options.*field; }, row.field);
    text << '\n';
  }
  // By content: the hosts may keep the file in different places.
  std::istringstream parameters(costs.to_text());
  for (std::string name, value; parameters >> name >> value;)
    text << "ALLRING_TUNING_FILE's " << name << '=' << value << '\n';
  return text.str();
}

Result<std::vector<PeerInfo>> introduce(StoreClient& store, const Introduction& mine,
                                        Deadline deadline) {
  return mine.self.rank == 0 ? gather(store, mine, deadline) : arrive(store, mine, deadline);
}

std::string name_ranks(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == kRanksNamed) return text + ", .. (" + std::to_string(ranks.size()) + " in all)";
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace allring
