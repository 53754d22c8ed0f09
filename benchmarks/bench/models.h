#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace allring::bench {

/// The gradients of one training step, in the order of the model's parameters; a backward pass
/// makes them the other way round.
struct Model {
  std::string name;
  std::vector<std::size_t> counts;  ///< elements of each tensor, all float32

  std::size_t bytes() const;
  std::size_t elements() const;
};

/// - resnet50: He et al., Deep Residual Learning (2015), table 1, with biases in the last layer
/// only
///   and two parameters per batch normalisation: 161 tensors, 25,557,032 values.
/// - bert-large: Devlin et al., BERT (2018), L=24, H=1024, with a vocabulary of 30,522 and both
///   heads of its pre-training: 398 tensors, 336,226,108 values.
/// - many-small: 1000 tensors of 4 KiB.
/// @return an empty model for another name.
Model make_model(std::string_view name);

std::vector<std::string> model_names();

}  // namespace allring::bench
