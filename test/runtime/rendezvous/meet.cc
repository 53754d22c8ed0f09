// A rank of a job: finds the others as its environment says, round after round, talks with them,
// and checks that nothing is left behind. Prints one line per rank; a failure goes to stderr.
//   meet [rounds]
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/rendezvous/session.h"
#include "test/harness/thread_count.h"

namespace allring {
namespace {

Deadline soon() { return deadline_after(seconds(60)); }

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

std::vector<Rank> all(int size) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

// Everyone tells rank 0 its number, and rank 0 everyone the sum.
Status sum_over_control(ControlChannel& channel) {
  int sum = channel.rank();
  const int size = channel.size();
  const auto receive = [&](int* value) -> Status {
    const ControlEvent event = channel.receive(soon());
    if (event.kind == ControlEvent::Kind::kPeerLost) return event.reason;
    if (event.kind != ControlEvent::Kind::kMessage || event.bytes.size() != sizeof(*value))
      return Status::internal("no message on the control channel");
    std::memcpy(value, event.bytes.data(), sizeof(*value));
    return {};
  };
  if (channel.rank() == 0) {
    for (int i = 1; i < size; ++i) {
      int value = 0;
      ALLRING_RETURN_IF_ERROR(receive(&value));
      sum += value;
    }
    for (Rank peer = 1; peer < size; ++peer) channel.send(peer, std::as_bytes(std::span(&sum, 1)));
  } else {
    channel.send(0, std::as_bytes(std::span(&sum, 1)));
    ALLRING_RETURN_IF_ERROR(receive(&sum));
  }
  if (sum != size * (size - 1) / 2) return Status::internal("wrong sum");
  return {};
}

// Everyone passes its number to the right.
Status pass_around(Group& group) {
  const int size = group.size();
  if (size == 1) return {};
  const int mine = group.rank();
  const Rank left = (mine + size - 1) % size;
  int got = -1;
  const Tag tag = group.next_tag();
  Transport& transport = group.transport();
  ALLRING_ASSIGN_OR_RETURN(
      const Ticket sent,
      transport.post_send((mine + 1) % size, tag, std::as_bytes(std::span(&mine, 1))));
  ALLRING_ASSIGN_OR_RETURN(
      const Ticket received,
      transport.post_recv(left, tag, std::as_writable_bytes(std::span(&got, 1))));
  ALLRING_RETURN_IF_ERROR(transport.wait(sent, soon()));
  ALLRING_RETURN_IF_ERROR(transport.wait(received, soon()));
  return got == left ? Status() : Status::internal("wrong neighbour");
}

Status run_round(const Options& options, const JobDescription& job, std::string* line) {
  ALLRING_ASSIGN_OR_RETURN(const auto session, Session::join(options, job));
  const std::vector<Rank> members = all(job.size);
  ALLRING_ASSIGN_OR_RETURN(const auto control, session->control(0, members, soon()));
  ALLRING_ASSIGN_OR_RETURN(const auto lane, session->lane(0, 0, members, soon()));
  ALLRING_RETURN_IF_ERROR(sum_over_control(*control));
  ALLRING_RETURN_IF_ERROR(pass_around(lane->group()));
  // Nobody leaves before all have what they need.
  ALLRING_RETURN_IF_ERROR(sum_over_control(*control));
  const JobDescription& seen = session->job();
  std::ostringstream text;
  text << "rank " << seen.rank << " of " << seen.size << ", local " << seen.local_rank << " of "
       << seen.local_size << ", cross " << seen.cross_rank << " of " << seen.cross_size
       << ", started by " << job_source_name(seen.source)
       << (lane->group().host_memory() != nullptr ? ", shared memory" : "") << "\n";
  *line = text.str();
  return {};
}

Status run(int rounds) {
  ALLRING_ASSIGN_OR_RETURN(const Options options, Options::from_environment());
  ALLRING_ASSIGN_OR_RETURN(const JobDescription job, describe_job(lookup_environment));
  std::string line;
  std::ptrdiff_t descriptors = 0;
  int threads = 0;
  for (int round = 0; round < rounds; ++round) {
    ALLRING_RETURN_IF_ERROR(run_round(options, job, &line));
    // What libraries keep, they have by the end of the first round.
    if (round == 0) {
      descriptors = entries("/proc/self/fd");
      threads = test::count_threads();
    }
  }
  if (entries("/proc/self/fd") != descriptors) return Status::internal("descriptors leak");
  if (!test::threads_fall_to(threads)) return Status::internal("threads leak");
  // One write, so that lines of several ranks stay whole.
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return Status::internal("no stdout");
  return {};
}

}  // namespace
}  // namespace allring

int main(int argc, char** argv) {
  const allring::Status status = allring::run(argc > 1 ? std::atoi(argv[1]) : 1);
  if (status.ok()) return 0;
  const std::string line = status.to_string() + "\n";
  return write(STDERR_FILENO, line.data(), line.size()) < 0 ? 2 : 1;
}
