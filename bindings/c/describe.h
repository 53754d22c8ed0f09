#pragma once

#include <string>

#include "collectives/base/status.h"
#include "runtime/core/runtime.h"

namespace allring {

/// JSON of what was built and chosen, see allring_describe().
/// @param runtime null: not initialized; then the options are those that the environment gives now.
/// @return kInvalidArgument if the environment gives none.
Result<std::string> describe(const Runtime* runtime);

}  // namespace allring
