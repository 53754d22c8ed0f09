#pragma once

#include <string>

#include "collectives/base/status.h"

namespace allring::bench {

/// Whether --plot can draw here: Python 3 with matplotlib, looked for beside hvdbench and then on
/// PATH. @return kUnsupported with one line that says what is missing.
Status can_plot();

/// Draws to_json()'s text into an SVG file. @return kUnsupported with Python's last line.
Status plot(const std::string& json, const std::string& file);

}  // namespace allring::bench
