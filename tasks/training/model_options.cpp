#include "tasks/training/model_options.hpp"

#include "tasks/settings.hpp"
#include "tasks/stack.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr Names<Mlp, 4> mlp_names = {
    {"plain", Mlp::plain}, {"gated", Mlp::gated}, {"none", Mlp::none}, {"identity", Mlp::identity}};
constexpr Names<Norm, 2> norm_names = {{"layer", Norm::layer}, {"rms", Norm::rms}};
constexpr Names<Layout, 2> layout_names = {{"mechanism", Layout::mechanism},
                                           {"convolution_first", Layout::convolution_first}};
constexpr Names<Positions, 4> position_names = {{"none", Positions::none},
                                                {"learned", Positions::learned},
                                                {"sinusoidal", Positions::sinusoidal},
                                                {"rotary", Positions::rotary}};
constexpr Names<Autocast, 2> autocast_names = {{"off", Autocast::off},
                                               {"bfloat16", Autocast::bfloat16}};
constexpr Names<ModelInput, 2> input_names = {{"tokens", ModelInput::tokens},
                                              {"values", ModelInput::values}};

std::int64_t mlp_weights(const ModelOptions& options, const Problem& problem) {
  const std::int64_t width = problem.width();
  const std::int64_t hidden = mlp_width(options, problem);
  if (options.mlp == Mlp::gated) return 3 * width * hidden;
  if (options.mlp == Mlp::plain) return 2 * width * hidden + hidden + width;
  return 0;
}

}  // namespace

const char* to_string(Mlp mlp) { return name_of(mlp_names, mlp); }
const char* to_string(Norm norm) { return name_of(norm_names, norm); }
const char* to_string(Layout layout) { return name_of(layout_names, layout); }
const char* to_string(Positions positions) { return name_of(position_names, positions); }
const char* to_string(Autocast autocast) { return name_of(autocast_names, autocast); }
Mlp mlp_from(const std::string& name) { return value_named("mlp", mlp_names, name); }
Norm norm_from(const std::string& name) { return value_named("norm", norm_names, name); }
Layout layout_from(const std::string& name) { return value_named("layout", layout_names, name); }
Positions positions_from(const std::string& name) {
  return value_named("positions", position_names, name);
}
Autocast autocast_from(const std::string& name) {
  return value_named("autocast", autocast_names, name);
}
ModelInput model_input_from(const std::string& name) {
  return value_named("input", input_names, name);
}

std::vector<Option> model_settings() {
  return {
      integer_setting("layers", 2, "blocks"),
      stack_setting(),
      text_setting(
          "layout", "mechanism",
          "mechanism: in every block; convolution_first: a gated short convolution and the "
          "mechanism alternate",
          all_names(layout_names)),
      integer_setting("short_convolution_taps", 3,
                      "taps of the short convolution of the layout convolution_first"),
      text_setting(
          "positions", "none",
          "learned or sinusoidal: added to the embedding; rotary: queries and keys are rotated, "
          "where a mechanism has both",
          all_names(position_names)),
      text_setting(
          "mlp", "plain",
          "plain: GELU between two products; gated: SiLU; none; identity: x + norm(x), as in "
          "Zoology's code",
          all_names(mlp_names)),
      integer_setting("mlp_width", 0, "hidden numbers of the MLP; 0 = 4 * width", 0),
      text_setting("norm", "layer", "layer: LayerNorm; rms: RMSNorm", all_names(norm_names)),
      boolean_setting("final_norm", true, "a norm after the last block"),
      boolean_setting("projection_bias", false,
                      "biases on the projections of a mechanism's inputs and output"),
      boolean_setting("tied_head", true,
                      "logits from the embedding's own weights, where tokens are the answers"),
      text_setting(
          "autocast", "off",
          "bfloat16: projections, mix, MLP and head in bfloat16; weights, norms, logits and "
          "loss in float32",
          all_names(autocast_names)),
      number_setting(
          "initial_deviation", 0,
          "standard deviation of initial projections, of outputs divided by sqrt(2 * layers); "
          "0 = 1 / sqrt(inputs)"),
      number_setting("embedding_dropout", 0,
                     "share of the embedding's numbers that each step sets to zero", 0, 0.99),
      number_setting(
          "dropout", 0,
          "share of the outputs of each mix and MLP that each step sets to zero; weights "
          "of attention are never dropped",
          0, 0.99),
      integer_setting("model_seed", 0, "seed of the initial weights", 0)};
}

ModelOptions model_options_from(const Options& settings) {
  ModelOptions model;
  model.layers = settings.integer("layers");
  model.vocabulary = settings.integer("vocabulary");
  model.mlp = mlp_from(settings.text("mlp"));
  model.mlp_width = settings.integer("mlp_width");
  model.norm = norm_from(settings.text("norm"));
  model.tied_head = settings.boolean("tied_head");
  model.positions = positions_from(settings.text("positions"));
  if (!settings.has("layout")) return model;
  model.layout = layout_from(settings.text("layout"));
  model.taps = settings.integer("short_convolution_taps");
  model.initial_deviation = settings.number("initial_deviation");
  model.autocast = autocast_from(settings.text("autocast"));
  model.final_norm = settings.boolean("final_norm");
  model.projection_bias = settings.boolean("projection_bias");
  if (settings.has("input")) model.input = model_input_from(settings.text("input"));
  if (settings.has("pooling")) model.classifier = classifier_options_from(settings);
  return model;
}

void require_consistent(const ModelOptions& options, const Problem& problem) {
  if (mechanism_blocks(options) == 0) {
    throw UsageError("one layer of the layout convolution_first holds no mechanism: say 2 or more");
  }
  if (options.autocast != Autocast::off && problem.dtype != Dtype::float32) {
    throw UsageError("autocast narrows products of float32 weights, not of " +
                     std::string(to_string(problem.dtype)) +
                     ": say dtype float32, or autocast off");
  }
  const ClassifierOptions& classifier = options.classifier;
  if (classifier.has_cls() && problem.pattern == Pattern::causal) {
    throw UsageError(
        "pooling cls reads the first token, which sees nothing but itself in a causal model: say "
        "pooling last or mean, or pattern bidirectional");
  }
  if (classifier.classes == 0 && options.input == ModelInput::values) {
    throw UsageError("numbers are the input of models that classify; say input tokens");
  }
  if (classifier.classes > 0) head_widths(classifier, problem.width());
  if (options.tokens_per_position == 1) return;
  if (options.tied_head) {
    throw UsageError(
        "where tokens share a position the embedding is narrower than the head: say tied_head "
        "false");
  }
  if (problem.width() % options.tokens_per_position != 0) {
    throw UsageError("the width " + std::to_string(problem.width()) + " is not divided by the " +
                     std::to_string(options.tokens_per_position) + " tokens that share a position");
  }
}

Dtype mix_dtype(const ModelOptions& options, Dtype weights) {
  return options.autocast == Autocast::off ? weights : Dtype::bfloat16;
}

std::int64_t mlp_width(const ModelOptions& options, const Problem& problem) {
  return options.mlp_width == 0 ? 4 * problem.width() : options.mlp_width;
}

bool is_mechanism_block(const ModelOptions& options, std::int64_t index) {
  return options.layout == Layout::mechanism || index % 2 == 1;
}

std::int64_t mechanism_blocks(const ModelOptions& options) {
  return options.layout == Layout::mechanism ? options.layers : options.layers / 2;
}

std::int64_t mix_length(const ModelOptions& options, std::int64_t length) {
  return length + (options.classifier.has_cls() ? 1 : 0);
}

std::int64_t outputs(const ModelOptions& options) {
  return options.classifier.classes > 0 ? options.classifier.classes : options.vocabulary;
}

std::int64_t weights_around(const ModelOptions& options, const Problem& problem) {
  const std::int64_t width = problem.width();
  const std::int64_t norm = options.norm == Norm::rms ? width : 2 * width;
  const std::int64_t norms = options.mlp == Mlp::none ? 1 : 2;
  const std::int64_t each = mlp_weights(options, problem) + norms * norm;
  const std::int64_t embedding = options.input == ModelInput::values
                                     ? 2 * width
                                     : options.vocabulary * width / options.tokens_per_position;
  const std::int64_t head = options.classifier.classes > 0
                                ? classifier_weights(options.classifier, width)
                            : options.tied_head ? 0
                                                : options.vocabulary * width;
  const std::int64_t last = options.final_norm ? norm : 0;
  const std::int64_t table = options.positions == Positions::learned ? problem.length * width : 0;
  const std::int64_t convolutions = options.layers - mechanism_blocks(options);
  const std::int64_t decoder = options.decoder ? 3 * norm + 2 * (width * width + width) : 0;
  return embedding + head + table + decoder + options.layers * each + last +
         convolutions * (options.taps * width + width * width + 2 * width);
}

}  // namespace attnbench::tasks::training
