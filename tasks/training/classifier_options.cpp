#include "tasks/training/classifier_options.hpp"

#include "tasks/settings.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr Names<Pooling, 5> pooling_names = {{"mean", Pooling::mean},
                                             {"mean_padded", Pooling::mean_padded},
                                             {"first", Pooling::first},
                                             {"last", Pooling::last},
                                             {"cls", Pooling::cls}};
constexpr Names<TowerFeatures, 2> tower_feature_names = {
    {"concat_difference_product", TowerFeatures::concat_difference_product},
    {"concat", TowerFeatures::concat}};
constexpr Names<HeadActivation, 2> activation_names = {{"relu", HeadActivation::relu},
                                                       {"gelu", HeadActivation::gelu}};

}  // namespace

const char* to_string(Pooling pooling) { return name_of(pooling_names, pooling); }
Pooling pooling_from(const std::string& name) {
  return value_named("pooling", pooling_names, name);
}
TowerFeatures tower_features_from(const std::string& name) {
  return value_named("tower_features", tower_feature_names, name);
}
HeadActivation head_activation_from(const std::string& name) {
  return value_named("head_activation", activation_names, name);
}

std::vector<Option> classifier_settings() {
  return {
      text_setting("pattern", "bidirectional", "of every mix", {"bidirectional", "causal"}),
      text_setting(
          "pooling", "mean",
          "mean: over the real tokens; mean_padded: their sum over the padded length, as in "
          "Skyformer; first, last: of the real tokens; cls: of a learned token before them",
          all_names(pooling_names)),
      integer_setting("head_width", 0, "hidden numbers of the classifier's head; 0 = one product",
                      0),
      integer_setting("head_layers", 2,
                      "products of a head with hidden numbers; each hidden width is half of "
                      "the one before"),
      text_setting("head_activation", "relu", "between the head's products",
                   all_names(activation_names)),
      text_setting("tower_features", "concat_difference_product",
                   "of two sequences x and y: [x, y, x * y, x - y], or concat: [x, y], as in the "
                   "released code of Long Range Arena",
                   all_names(tower_feature_names))};
}

Option input_setting() {
  return text_setting("input", "tokens",
                      "tokens: an embedding of each value; values: one number a token, through a "
                      "linear map",
                      {"tokens", "values"});
}

ClassifierOptions classifier_options_from(const Options& settings) {
  ClassifierOptions options;
  options.pooling = pooling_from(settings.text("pooling"));
  options.features = tower_features_from(settings.text("tower_features"));
  options.width = settings.integer("head_width");
  options.layers = settings.integer("head_layers");
  options.activation = head_activation_from(settings.text("head_activation"));
  return options;
}

std::vector<std::int64_t> head_widths(const ClassifierOptions& options, std::int64_t width) {
  const bool four = options.features == TowerFeatures::concat_difference_product;
  std::vector<std::int64_t> widths{options.towers == 1 ? width : (four ? 4 : 2) * width};
  std::int64_t hidden = options.width;
  for (std::int64_t i = 1; options.width > 0 && i < options.layers; ++i) {
    if (hidden == 0) {
      throw UsageError("head_width " + std::to_string(options.width) + " cannot be halved " +
                       std::to_string(options.layers - 2) + " times: say fewer head_layers");
    }
    widths.push_back(hidden);
    hidden /= 2;
  }
  widths.push_back(options.classes);
  return widths;
}

std::int64_t classifier_weights(const ClassifierOptions& options, std::int64_t width) {
  const std::vector<std::int64_t> widths = head_widths(options, width);
  std::int64_t sum = options.has_cls() ? width : 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) sum += (widths[i] + 1) * widths[i + 1];
  return sum;
}

}  // namespace attnbench::tasks::training
