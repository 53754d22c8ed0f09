#include "benchmarks/bench/report.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace allring::bench {

namespace {

using Json = nlohmann::ordered_json;

Json result_json(const Measurement& m, int size) {
  return {
      {"impl", m.impl},
      {"collective", std::string(collective_kind_name(m.collective))},
      {"layer", m.layer},
      {"algorithm", m.algorithm},
      {"buffers", m.buffers},
      {"dtype", std::string(data_type_name(m.dtype))},
      {"op", std::string(reduce_op_name(m.op))},
      {"inplace", m.in_place},
      {"bytes", m.bytes},
      {"time_us", {{"min", m.time.min_us}, {"median", m.time.median_us}, {"max", m.time.max_us}}},
      {"algbw_GBps", m.algbw_gbps()},
      {"busbw_GBps", m.busbw_gbps(size)},
      {"wrong", m.wrong}};
}

Json ratio_json(const Ratio& ratio) {
  return {{"collective", std::string(collective_kind_name(ratio.collective))},
          {"bytes", ratio.bytes},
          {"buffers", ratio.buffers},
          {"inplace", ratio.in_place},
          {"against", ratio.against},
          {"ratio", ratio.ratio}};
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kReduceScatter;
}

}  // namespace

std::vector<Ratio> ratios(std::span<const Measurement> results) {
  std::vector<Ratio> found;
  const Measurement* ours = nullptr;
  for (const Measurement& m : results) {
    if (m.impl == "allring") {
      ours = &m;
    } else if (ours != nullptr) {
      found.push_back({m.collective, m.bytes, ours->buffers, m.in_place, m.impl,
                       ratio_of_medians(m.time, ours->time)});
    }
  }
  return found;
}

double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

void print_load(const Setting& setting) {
  if (setting.load >= 0)
    std::printf("# load average %.1f before it began: other load makes whoever spins look slow\n",
                setting.load);
}

Table::Table(const Arguments& arguments, Setting setting)
    : arguments_(arguments), setting_(std::move(setting)) {}

void Table::print_head() const {
  std::printf("# hvdbench %s: %d ranks on %d host%s, layer %s%s%s, %d warm-up and %d timed calls\n",
              std::string(collective_kind_name(arguments_.collective)).c_str(), setting_.size,
              setting_.hosts, setting_.hosts == 1 ? "" : "s", arguments_.layer.c_str(),
              arguments_.algorithm.empty() ? "" : ", algorithm ", arguments_.algorithm.c_str(),
              arguments_.warmup_iterations, arguments_.iterations);
  std::printf(
      "# time: median over calls of the slowest rank; inputs are rewritten before each call "
      "from 16 KiB up\n");
  const bool versus = !setting_.peer.empty();
  if (versus)
    std::printf("# against %s, in turns on the same ranks; ratio: its median over ours\n",
                setting_.peer.c_str());
  if (setting_.peer_memory_gbps > 0)
    std::printf("# memory that another rank has just written is read at %.1f GB/s in this run\n",
                setting_.peer_memory_gbps);
  print_load(setting_);
  const bool in_place = has_in_place(arguments_.collective);
  const std::string more =
      std::string(versus ? "        peer   ratio" : "") + (arguments_.share ? "  %limit" : "");
  const int width = 37 + static_cast<int>(more.size());
  std::printf("#%39s%*s%s%*s\n", "", width, "out-of-place", "", in_place ? width : 0,
              in_place ? "in-place" : "");
  std::printf("#%12s %12s %9s %7s", "size", "count", "type", "redop");
  for (int side = 0; side < (in_place ? 2 : 1); ++side)
    std::printf("  %10s  %7s  %7s  %6s%s", "time", "algbw", "busbw", "#wrong", more.c_str());
  std::printf("\n#%12s %12s %9s %7s", "(B)", "(elements)", "", "");
  for (int side = 0; side < (in_place ? 2 : 1); ++side)
    std::printf("  %10s  %7s  %7s  %6s%s%s", "(us)", "(GB/s)", "(GB/s)", "",
                versus ? "        (us)        " : "", arguments_.share ? "        " : "");
  std::printf("\n");
  std::fflush(stdout);
}

void Table::print_columns(std::span<const Measurement> measured) const {
  const Measurement& m = measured.front();
  std::printf("  %10.2f  %7.2f  %7.2f  ", m.time.median_us, m.algbw_gbps(),
              m.busbw_gbps(setting_.size));
  if (m.wrong < 0) {
    std::printf("%6s", "N/A");
  } else {
    std::printf("%6lld", static_cast<long long>(m.wrong));
  }
  if (measured.size() > 1)
    std::printf("  %10.2f  %6.2f", measured[1].time.median_us,
                ratio_of_medians(measured[1].time, m.time));
  if (arguments_.share && setting_.peer_memory_gbps > 0)
    std::printf("  %5.0f%%", 100 * m.busbw_gbps(setting_.size) / setting_.peer_memory_gbps);
  else if (arguments_.share)
    std::printf("  %6s", "N/A");
}

void Table::print_row(std::span<const Measurement> out_of_place,
                      std::span<const Measurement> in_place) const {
  const Measurement& m = out_of_place.front();
  std::printf(" %12zu %12zu %9s %7s", m.bytes, m.count,
              std::string(data_type_name(m.dtype)).c_str(),
              reduces(m.collective) ? std::string(reduce_op_name(m.op)).c_str() : "none");
  print_columns(out_of_place);
  if (!in_place.empty()) print_columns(in_place);
  std::printf("\n");
  std::fflush(stdout);
}

std::string to_json(const Setting& setting, std::span<const Measurement> results) {
  Json document = {{"np", setting.size},
                   {"hosts", setting.hosts},
                   {"results", Json::array()},
                   {"ratios", Json::array()}};
  if (!setting.peer.empty()) document["peer"] = setting.peer;
  if (setting.peer_memory_gbps > 0) document["peer_memory_GBps"] = setting.peer_memory_gbps;
  if (setting.load >= 0) document["load"] = setting.load;
  for (const Measurement& m : results) document["results"].push_back(result_json(m, setting.size));
  for (const Ratio& ratio : ratios(results)) document["ratios"].push_back(ratio_json(ratio));
  return document.dump(1) + "\n";
}

std::string to_csv(const Setting& setting, std::span<const Measurement> results) {
  std::ostringstream text;
  text << "impl,collective,layer,algorithm,buffers,dtype,op,inplace,bytes,min_us,median_us,max_us,"
          "algbw_GBps,busbw_GBps,wrong\n";
  for (const Measurement& m : results) {
    text << m.impl << ',' << collective_kind_name(m.collective) << ',' << m.layer << ','
         << m.algorithm << ',' << m.buffers << ',' << data_type_name(m.dtype) << ','
         << reduce_op_name(m.op) << ',' << m.in_place << ',' << m.bytes << ',' << m.time.min_us
         << ',' << m.time.median_us << ',' << m.time.max_us << ',' << m.algbw_gbps() << ','
         << m.busbw_gbps(setting.size) << ',' << m.wrong << '\n';
  }
  return text.str();
}

Status write_file(const std::string& file, const std::string& text) {
  errno = 0;
  std::ofstream stream(file);
  stream << text;
  stream.close();
  if (stream) return {};
  return Status::invalid_argument("cannot write " + file + ": " + std::strerror(errno) +
                                  "; name another file");
}

}  // namespace allring::bench
