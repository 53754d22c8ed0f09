#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "hierarchical": reduce-scatter within the host, allreduce of each local rank's slice with those
/// of equal local rank on the other hosts, allgather within the host, as a pipeline over segments:
/// while one segment is between the hosts, the next is reduced and the last one gathered. Jia et
/// al., "Highly scalable deep learning training system with mixed-precision", arXiv:1807.11205
/// (2018), section 3.3 (hierarchical allreduce); the exchange between hosts is pairwise.
///
/// With h hosts of l ranks each host sends 2 S (h - 1) / h bytes, every rank the l-th part of it.
/// Needs the same number of ranks on all hosts, two at least. Sums and products of 16-bit floats
/// must not round on the host and again between the hosts, so their partial sums travel as float32:
/// 3 S (h - 1) / h bytes of each host, three quarters of what the same elements take as float32.
extern const Algorithm kHierarchicalAllreduce;

}  // namespace allring
