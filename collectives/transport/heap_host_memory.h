#pragma once

#include <memory>
#include <vector>

#include "collectives/transport/host_memory.h"

namespace allring {

/// HostMemory for ranks that are threads of one process: element r is rank r's view, all over one
/// block of the heap that lives as long as any of them.
std::vector<std::unique_ptr<HostMemory>> make_heap_host_memory(HostMemory::Shape shape,
                                                               WaitPolicy policy);

}  // namespace allring
