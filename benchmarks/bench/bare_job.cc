#include "benchmarks/bench/bare_job.h"

#include <numeric>
#include <vector>

#include "runtime/rendezvous/job.h"

namespace allring::bench {

Result<BareJob> BareJob::join() {
  BareJob bare;
  ALLRING_ASSIGN_OR_RETURN(bare.options, Options::from_environment());
  ALLRING_ASSIGN_OR_RETURN(JobDescription job, describe_job(lookup_environment));
  ALLRING_ASSIGN_OR_RETURN(bare.session, Session::join(bare.options, job));
  std::vector<Rank> everyone(static_cast<std::size_t>(bare.session->job().size));
  std::iota(everyone.begin(), everyone.end(), 0);
  ALLRING_ASSIGN_OR_RETURN(bare.lane,
                           bare.session->lane(0, 0, everyone, deadline_after(seconds(60))));
  return bare;
}

}  // namespace allring::bench
