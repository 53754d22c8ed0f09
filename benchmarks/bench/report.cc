#include "benchmarks/bench/report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace allring::bench {

namespace {

void print_columns(const Measurement& m, int size) {
  std::printf("  %10.2f  %7.2f  %7.2f  ", m.time.median_us, m.algbw_gbps(), m.busbw_gbps(size));
  if (m.wrong < 0) {
    std::printf("%6s", "N/A");
  } else {
    std::printf("%6lld", static_cast<long long>(m.wrong));
  }
}

Status cannot_write(const std::string& file) {
  return Status::invalid_argument("cannot write " + file + ": " + std::strerror(errno) +
                                  "; name another file");
}

}  // namespace

Table::Table(const Arguments& arguments, int size, int hosts)
    : arguments_(arguments), size_(size), hosts_(hosts) {}

void Table::print_head() const {
  std::printf("# hvdbench %s: %d ranks on %d host%s, layer %s%s%s, %d warm-up and %d timed calls\n",
              std::string(collective_kind_name(arguments_.collective)).c_str(), size_, hosts_,
              hosts_ == 1 ? "" : "s", arguments_.layer.c_str(),
              arguments_.algorithm.empty() ? "" : ", algorithm ", arguments_.algorithm.c_str(),
              arguments_.warmup_iterations, arguments_.iterations);
  std::printf(
      "# time: median over calls of the slowest rank; inputs are rewritten before each call "
      "from 16 KiB up\n");
  std::printf("#%68s%s\n", "out-of-place            ",
              has_in_place(arguments_.collective) ? "             in-place" : "");
  std::printf("#%12s %12s %9s %7s  %10s  %7s  %7s  %6s", "size", "count", "type", "redop", "time",
              "algbw", "busbw", "#wrong");
  if (has_in_place(arguments_.collective))
    std::printf("  %10s  %7s  %7s  %6s", "time", "algbw", "busbw", "#wrong");
  std::printf("\n#%12s %12s %9s %7s  %10s  %7s  %7s\n", "(B)", "(elements)", "", "", "(us)",
              "(GB/s)", "(GB/s)");
  std::fflush(stdout);
}

void Table::print_row(const Measurement& out_of_place, const Measurement* in_place) const {
  const bool reduces = out_of_place.collective == CollectiveKind::kAllreduce ||
                       out_of_place.collective == CollectiveKind::kReduceScatter;
  std::printf(" %12zu %12zu %9s %7s", out_of_place.bytes, out_of_place.count,
              std::string(data_type_name(out_of_place.dtype)).c_str(),
              reduces ? std::string(reduce_op_name(out_of_place.op)).c_str() : "none");
  print_columns(out_of_place, size_);
  if (in_place != nullptr) print_columns(*in_place, size_);
  std::printf("\n");
  std::fflush(stdout);
}

Status write_json(const std::string& file, int size, int hosts,
                  const std::vector<Measurement>& results) {
  nlohmann::ordered_json document = {
      {"np", size}, {"hosts", hosts}, {"results", nlohmann::ordered_json::array()}};
  for (const Measurement& m : results) {
    document["results"].push_back(
        {{"impl", "allring"},
         {"collective", std::string(collective_kind_name(m.collective))},
         {"layer", m.layer},
         {"algorithm", m.algorithm},
         {"buffers", "private"},
         {"dtype", std::string(data_type_name(m.dtype))},
         {"op", std::string(reduce_op_name(m.op))},
         {"inplace", m.in_place},
         {"bytes", m.bytes},
         {"time_us",
          {{"min", m.time.min_us}, {"median", m.time.median_us}, {"max", m.time.max_us}}},
         {"algbw_GBps", m.algbw_gbps()},
         {"busbw_GBps", m.busbw_gbps(size)},
         {"wrong", m.wrong}});
  }
  std::ofstream stream(file);
  stream << document.dump(1) << '\n';
  stream.close();
  return stream ? Status() : cannot_write(file);
}

Status write_csv(const std::string& file, int size, const std::vector<Measurement>& results) {
  std::ofstream stream(file);
  stream << "collective,layer,algorithm,dtype,op,inplace,bytes,min_us,median_us,max_us,algbw_GBps,"
            "busbw_GBps,wrong\n";
  for (const Measurement& m : results) {
    stream << collective_kind_name(m.collective) << ',' << m.layer << ',' << m.algorithm << ','
           << data_type_name(m.dtype) << ',' << reduce_op_name(m.op) << ',' << m.in_place << ','
           << m.bytes << ',' << m.time.min_us << ',' << m.time.median_us << ',' << m.time.max_us
           << ',' << m.algbw_gbps() << ',' << m.busbw_gbps(size) << ',' << m.wrong << '\n';
  }
  stream.close();
  return stream ? Status() : cannot_write(file);
}

}  // namespace allring::bench
