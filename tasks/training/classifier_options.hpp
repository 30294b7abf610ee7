// What follows the blocks of a model that classifies whole examples, as settings choose it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/option.hpp"

namespace attnbench::tasks::training {

/// How the features of a sequence become one vector. mean: over its real tokens (Latte, S4).
/// mean_padded: the sum over its real tokens, divided by the padded length (Skyformer). first,
/// last: those of its first or last real token. cls: those of a learned token before the first one.
enum class Pooling { mean, mean_padded, first, last, cls };

/// The features of two sequences x and y: [x, y] (Long Range Arena's released code), or
/// [x, y, x * y, x - y] (its paper, Skyformer, Latte).
enum class TowerFeatures { concat, concat_difference_product };

enum class HeadActivation { relu, gelu };

/// classes 0 = no classifier: the model has a token head.
struct ClassifierOptions {
  std::int64_t classes = 0;
  std::int64_t towers = 1;  ///< sequences of an example, through the same weights: 1 or 2
  Pooling pooling = Pooling::mean;
  TowerFeatures features = TowerFeatures::concat_difference_product;
  /// Numbers between the products of the head: 0 = one product; otherwise `layers` products, each
  /// hidden width half of the one before.
  std::int64_t width = 0;
  std::int64_t layers = 2;
  HeadActivation activation = HeadActivation::relu;
  /// Whether the data mask tokens before or between real ones; else padding follows these.
  bool masks_between = false;

  bool has_cls() const { return classes > 0 && pooling == Pooling::cls; }
};

const char* to_string(Pooling pooling);
/// Throw UsageError that lists the names.
Pooling pooling_from(const std::string& name);
TowerFeatures tower_features_from(const std::string& name);
HeadActivation head_activation_from(const std::string& name);

/// pattern, pooling, head_width, head_layers, head_activation, tower_features.
std::vector<Option> classifier_settings();

/// The setting `input`, tokens or values, of tasks whose data can be either. It is one of the data.
Option input_setting();

/// Reads those above except pattern; classes and towers follow from the data.
ClassifierOptions classifier_options_from(const Options& settings);

/// The numbers between the head's products, the pooled features first and the classes last.
std::vector<std::int64_t> head_widths(const ClassifierOptions& options, std::int64_t width);

/// Number of weights: the head's, with biases, and the cls vector.
std::int64_t classifier_weights(const ClassifierOptions& options, std::int64_t width);

}  // namespace attnbench::tasks::training
