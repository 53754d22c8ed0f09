#include "benchmarks/bench/models.h"

#include <array>
#include <numeric>

namespace allring::bench {

namespace {

using Counts = std::vector<std::size_t>;

void append(Counts& counts, std::initializer_list<std::size_t> more) {
  counts.insert(counts.end(), more);
}

/// A convolution without bias, and its batch normalisation.
void convolution(Counts& counts, std::size_t in, std::size_t out, std::size_t kernel) {
  append(counts, {out * in * kernel * kernel, out, out});
}

/// A weight matrix and its bias.
void dense(Counts& counts, std::size_t in, std::size_t out) { append(counts, {in * out, out}); }

void layer_norm(Counts& counts, std::size_t width) { append(counts, {width, width}); }

Counts resnet50() {
  struct Stage {
    std::size_t width;
    int blocks;
  };
  constexpr std::array<Stage, 4> kStages = {{{64, 3}, {128, 4}, {256, 6}, {512, 3}}};
  constexpr std::size_t kExpansion = 4;
  Counts counts;
  convolution(counts, 3, 64, 7);
  std::size_t in = 64;
  for (const Stage& stage : kStages) {
    const std::size_t out = stage.width * kExpansion;
    for (int block = 0; block < stage.blocks; ++block) {
      convolution(counts, in, stage.width, 1);
      convolution(counts, stage.width, stage.width, 3);
      convolution(counts, stage.width, out, 1);
      if (block == 0) convolution(counts, in, out, 1);  // the shortcut
      in = out;
    }
  }
  dense(counts, in, 1000);
  return counts;
}

Counts bert_large() {
  constexpr std::size_t kVocabulary = 30522;
  constexpr std::size_t kPositions = 512;
  constexpr std::size_t kWidth = 1024;
  constexpr int kLayers = 24;
  Counts counts;
  append(counts, {kVocabulary * kWidth, kPositions * kWidth, 2 * kWidth});
  layer_norm(counts, kWidth);
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int i = 0; i < 4; ++i) dense(counts, kWidth, kWidth);  // query, key, value, output
    layer_norm(counts, kWidth);
    dense(counts, kWidth, 4 * kWidth);
    dense(counts, 4 * kWidth, kWidth);
    layer_norm(counts, kWidth);
  }
  dense(counts, kWidth, kWidth);  // pooler
  append(counts, {kVocabulary});  // masked words: the bias; the matrix is that of the embedding
  dense(counts, kWidth, kWidth);
  layer_norm(counts, kWidth);
  dense(counts, kWidth, 2);  // next sentence
  return counts;
}

}  // namespace

std::size_t Model::elements() const {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t Model::bytes() const { return elements() * sizeof(float); }

std::vector<std::string> model_names() { return {"resnet50", "bert-large", "many-small"}; }

Model make_model(std::string_view name) {
  Model model;
  model.name = name;
  if (name == "resnet50") model.counts = resnet50();
  if (name == "bert-large") model.counts = bert_large();
  if (name == "many-small") model.counts = Counts(1000, 1024);
  return model;
}

}  // namespace allring::bench
