#include "runtime/rendezvous/store_access.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "collectives/transport/peer_info.h"
#include "runtime/rendezvous/fields.h"
#include "runtime/rendezvous/job_secret.h"
#include "runtime/rendezvous/mpi_library.h"
#include "runtime/rendezvous/store_address.h"

namespace allring {

namespace {

constexpr milliseconds kServePause(50);
constexpr std::size_t kSecretBytes = 32;
constexpr char kMpi[] = "mpi:";
// Rank 0's addresses must fit into one broadcast.
constexpr std::size_t kMostAddresses = 64;

Result<std::string> draw_secret() {
  std::string secret(kSecretBytes, '\0');
  // So few bytes come whole.
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return Status::from_errno("cannot draw a secret", errno);
  return secret;
}

/// What travels by MPI: a failure, or the secret and where the store is.
struct Invitation {
  std::string failure;
  std::string secret;
  std::vector<std::string> candidates;

  std::string encode() const {
    std::string record;
    append_field(&record, failure);
    append_field(&record, secret);
    for (const std::string& candidate : candidates) append_field(&record, candidate);
    return record;
  }

  static Result<Invitation> parse(std::string_view record) {
    Invitation invitation;
    if (!take_field(&record, &invitation.failure) || !take_field(&record, &invitation.secret))
      return Status::internal("rank 0's invitation by MPI is broken");
    for (std::string candidate; take_field(&record, &candidate);)
      invitation.candidates.push_back(std::move(candidate));
    return invitation;
  }
};

Status prepare_invitation(const Options& options, const JobDescription& job, Deadline deadline,
                          std::unique_ptr<ServedStore>* served, Invitation* invitation) {
  invitation->secret = job.secret;
  if (invitation->secret.empty()) {
    ALLRING_ASSIGN_OR_RETURN(invitation->secret, draw_secret());
  }
  ALLRING_ASSIGN_OR_RETURN(*served, ServedStore::serve({"tcp::0"}, invitation->secret, deadline));
  ALLRING_ASSIGN_OR_RETURN(StoreAddress address, StoreAddress::parse((*served)->address()));
  ALLRING_ASSIGN_OR_RETURN(auto interfaces, interface_addresses(options.network_interfaces, false));
  for (const PeerInfo::Address& each : interfaces) {
    address.host = each.tcp.ip;
    if (invitation->candidates.size() < kMostAddresses)
      invitation->candidates.push_back(address.to_string());
  }
  return {};
}

Result<StoreAccess> open_through_mpi(const Options& options, JobDescription* job,
                                     Deadline deadline) {
  ALLRING_ASSIGN_OR_RETURN(MpiLibrary mpi, MpiLibrary::load(options.mpi_library));
  ALLRING_RETURN_IF_ERROR(mpi.open(job->rank, job->size));
  StoreAccess access;
  access.for_one_meeting = true;
  Invitation invitation;
  Status failure;
  if (job->rank == 0) {
    failure = prepare_invitation(options, *job, deadline, &access.served, &invitation);
    // The others learn of it too.
    invitation.failure = failure.message().substr(0, 1000);
  }
  ALLRING_ASSIGN_OR_RETURN(const std::string record, mpi.broadcast(invitation.encode(), deadline));
  ALLRING_RETURN_IF_ERROR(failure);
  ALLRING_ASSIGN_OR_RETURN(invitation, Invitation::parse(record));
  if (!invitation.failure.empty())
    return Status::aborted("rank 0 cannot serve the job's store: " + invitation.failure);
  job->secret = access.secret = invitation.secret;
  access.candidates = invitation.candidates;
  return access;
}

}  // namespace

Result<std::unique_ptr<ServedStore>> ServedStore::serve(const std::vector<std::string>& candidates,
                                                        const std::string& secret,
                                                        Deadline deadline) {
  auto served = std::make_unique<ServedStore>();
  for (;;) {
    std::string outcomes;
    for (const std::string& candidate : candidates) {
      ALLRING_ASSIGN_OR_RETURN(StoreAddress address, StoreAddress::parse(candidate));
      address.host.clear();
      auto server = StoreServer::listen(address.to_string(), secret, served->map_);
      if (server.ok()) {
        served->server_ = std::move(server).value();
        return served;
      }
      if (server.status().code() == StatusCode::kOutOfMemory) return server.status();
      outcomes += (outcomes.empty() ? "" : "; ") + server.status().message();
    }
    const TimePoint next = Clock::real().now() + kServePause;
    if (next >= deadline)
      return Status::timed_out("rank 0 cannot serve the job's store: " + outcomes);
    Clock::real().sleep_until(next);
  }
}

Result<StoreAccess> StoreAccess::open(const Options& options, JobDescription* job,
                                      Deadline deadline) {
  if (job->store_candidates == std::vector<std::string>{kMpi})
    return open_through_mpi(options, job, deadline);
  StoreAccess access;
  access.candidates = job->store_candidates;
  const bool all_unix =
      std::all_of(access.candidates.begin(), access.candidates.end(),
                  [](const std::string& candidate) { return candidate.starts_with("unix:"); });
  access.secret = all_unix ? job->secret : network_secret(job->secret, job->job_id);
  access.for_one_meeting = job->source != JobDescription::Source::kHvdrun;
  if (job->serves_store) {
    ALLRING_ASSIGN_OR_RETURN(access.served,
                             ServedStore::serve(access.candidates, access.secret, deadline));
  }
  return access;
}

Result<std::unique_ptr<StoreClient>> StoreAccess::connect(Rank rank, Deadline deadline) const {
  StoreClient::Settings settings;
  settings.candidates = candidates;
  settings.secret = secret;
  settings.rank = rank;
  if (served) {
    ALLRING_ASSIGN_OR_RETURN(StoreAddress address, StoreAddress::parse(served->address()));
    if (!address.is_unix) address.host = "127.0.0.1";
    settings.candidates = {address.to_string()};
  }
  return StoreClient::connect(settings, deadline);
}

}  // namespace allring
