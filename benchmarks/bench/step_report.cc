#include "benchmarks/bench/step_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace allring::bench {

std::vector<StepRatio> step_ratios(std::span<const StepResult> results) {
  std::vector<StepRatio> found;
  if (results.size() < 2) return found;
  const StepResult& ours = results.front();
  for (const StepResult& peer : results.subspan(1))
    found.push_back({ours.buffers, peer.impl, peer.mode, ratio_of_medians(peer.time, ours.time)});
  const auto best = std::min_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  found.push_back({best->buffers, best->against, "best", best->ratio});
  return found;
}

void print_step_table(const Model& model, const Setting& setting,
                      std::span<const StepResult> results) {
  std::printf("# hvdbench step: %s, %zu tensors, %.1f MB, %d ranks on %d host%s\n",
              model.name.c_str(), model.counts.size(), static_cast<double>(model.bytes()) / 1e6,
              setting.size, setting.hosts, setting.hosts == 1 ? "" : "s");
  if (!setting.peer.empty())
    std::printf("# against %s, in turns on the same ranks; ratio: its median over ours\n",
                setting.peer.c_str());
  if (setting.peer_memory_gbps > 0)
    std::printf("# memory that another rank has just written is read at %.1f GB/s in this run\n",
                setting.peer_memory_gbps);
  print_load(setting);
  std::printf("#%9s %-20s %8s %10s %10s %10s %7s %7s\n", "impl", "mode", "buffers", "min", "median",
              "max (ms)", "#wrong", "ratio");
  const std::vector<StepRatio> ratios = step_ratios(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const StepResult& r = results[i];
    std::printf(" %9s %-20s %8s %10.3f %10.3f %10.3f %7lld", r.impl.c_str(), r.mode.c_str(),
                r.buffers.c_str(), r.time.min_us / 1e3, r.time.median_us / 1e3, r.time.max_us / 1e3,
                static_cast<long long>(r.wrong));
    if (i > 0) std::printf(" %7.2f", ratios[i - 1].ratio);
    std::printf("\n");
  }
  if (!ratios.empty())
    std::printf("# the best of %s's modes over ours: %.2f\n", ratios.back().against.c_str(),
                ratios.back().ratio);
  std::fflush(stdout);
}

std::string step_json(const Model& model, const Setting& setting,
                      std::span<const StepResult> results) {
  using Json = nlohmann::ordered_json;
  Json document = {{"np", setting.size},     {"hosts", setting.hosts},
                   {"model", model.name},    {"tensors", model.counts.size()},
                   {"bytes", model.bytes()}, {"results", Json::array()},
                   {"ratios", Json::array()}};
  if (!setting.peer.empty()) document["peer"] = setting.peer;
  if (setting.peer_memory_gbps > 0) document["peer_memory_GBps"] = setting.peer_memory_gbps;
  if (setting.load >= 0) document["load"] = setting.load;
  for (const StepResult& r : results)
    document["results"].push_back(
        {{"impl", r.impl},
         {"mode", r.mode},
         {"buffers", r.buffers},
         {"time_us",
          {{"min", r.time.min_us}, {"median", r.time.median_us}, {"max", r.time.max_us}}},
         {"wrong", r.wrong}});
  for (const StepRatio& r : step_ratios(results))
    document["ratios"].push_back({{"model", model.name},
                                  {"buffers", r.buffers},
                                  {"against", r.against},
                                  {"mode", r.mode},
                                  {"ratio", r.ratio}});
  return document.dump(1) + "\n";
}

}  // namespace allring::bench
