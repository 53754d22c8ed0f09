#pragma once

#include <string>

#include "collectives/algorithm/catalog.h"

namespace allring::bench {

/// `hvdbench explain -b 1M`: which row of the catalog would run, what the others are estimated to
/// take, and why some cannot. In a job for its ranks, or with --hosts for hosts that need not
/// exist. @return the exit status.
int run_explain(int argc, char** argv);

/// The rows of a collective, best first, one line each; those that cannot run come last with the
/// reason.
std::string explanation(const CollectiveArgs& args, Group& group, const ForcedAlgorithms& forced);

}  // namespace allring::bench
