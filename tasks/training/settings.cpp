#include "tasks/training/settings.hpp"

#include "tasks/training/draws.hpp"
#include "tasks/sizes.hpp"

namespace attnbench::tasks::learning {
namespace {

Option count(const char* name, std::int64_t fallback, const char* meaning, double least = 1) {
  return {name, OptionType::integer, fallback, meaning, least, {}, {}};
}

Option number(const char* name, double fallback, const char* meaning, double least = 0,
              std::optional<double> most = {}) {
  return {name, OptionType::number, fallback, meaning, least, most, {}};
}

Option word(const char* name, const char* fallback, const char* meaning,
            std::vector<std::string> choices) {
  return {name, OptionType::text, std::string(fallback), meaning, {}, {}, std::move(choices)};
}

Option yes_or_no(const char* name, bool fallback, const char* meaning) {
  return {name, OptionType::boolean, fallback, meaning, {}, {}, {}};
}

/// Those of every task, with defaults that suit training.
std::vector<Option> sizes() {
  std::vector<Option> kept;
  for (Option& size : size_settings()) {
    if (size.name == "input_scale") continue;
    if (size.name == "batch") {
      size.fallback = std::int64_t{64};
      size.meaning = "examples in a step";
    }
    if (size.name == "heads") size.fallback = std::int64_t{1};
    if (size.name == "dtype") {
      size.meaning = "type of weights, and of activations without autocast";
      size.choices = {"float32", "float64"};
    }
    kept.push_back(std::move(size));
  }
  return kept;
}

void append(std::vector<Option>& all, std::vector<Option> more) {
  for (Option& one : more) all.push_back(std::move(one));
}

std::vector<Option> model_settings() {
  return {
      count("layers", 2, "blocks"),
      word("layout", "mechanism",
           "mechanism: in every block; convolution_first: a gated short convolution and the "
           "mechanism take turns",
           {"mechanism", "convolution_first"}),
      count("short_convolution_taps", 3, "tokens that the short convolution of the layout sees"),
      word("positions", "none",
           "learned or sinusoidal: added to the embedding; rotary: queries and keys are turned, "
           "where a mechanism has both",
           {"none", "learned", "sinusoidal", "rotary"}),
      word("mlp", "plain",
           "plain: GELU between two products; gated: SiLU; none; identity: x + norm(x), which is "
           "what Zoology's code does by that name",
           {"plain", "gated", "none", "identity"}),
      count("mlp_width", 0, "hidden numbers of the MLP; 0 = 4 * width", 0),
      word("norm", "layer", "layer: LayerNorm; rms: RMSNorm", {"layer", "rms"}),
      yes_or_no("tied_head", true, "logits from the embedding's own weights"),
      word("autocast", "off",
           "bfloat16: projections, mix, MLP and head in bfloat16, for weights, norms, logits and "
           "loss in float32",
           {"off", "bfloat16"}),
      number("initial_deviation", 0,
             "standard deviation of first projections, outputs less by sqrt(2 * layers); 0 = 1 / "
             "sqrt(inputs)"),
      number("embedding_dropout", 0, "share of the embedding's numbers that a step zeroes", 0,
             0.99),
      count("model_seed", 0, "of the first weights", 0)};
}

std::vector<Option> optimiser_settings() {
  return {
      number("learning_rate", 1e-3, "the greatest of the schedule"),
      word("schedule", "cosine", "of the learning rate, after the warm-up", schedule_words()),
      count("drop_after", 3000, "steps after which the schedule drop goes on at a tenth", 0),
      count("warm_up_steps", 0, "steps in which the learning rate grows linearly", 0),
      count("epochs", 10, "times that each training example is seen"),
      number("stop_above", 0, "validation accuracy above which training ends; 0 = after all epochs",
             0, 1),
      number("weight_decay", 0.1, "AdamW's"),
      yes_or_no("decay_all", false,
                "weight decay on biases, norms and embeddings too, as in Zoology"),
      number("beta_1", 0.9, "AdamW's", 0, 0.999999),
      number("beta_2", 0.999, "AdamW's", 0, 0.9999999),
      number("adam_epsilon", 1e-8, "AdamW's"),
      number("clip", 1, "greatest norm of all gradients together; 0 = no clipping"),
      word("order", "shuffled",
           "shuffled: examples and batches anew in each epoch; numbered: the same in every epoch, "
           "segment after segment, as in Zoology since 2024; fresh: other examples in each epoch, "
           "none "
           "is seen twice",
           {"shuffled", "numbered", "fresh"}),
      count("data_seed", 0, "of the examples, their order, and dropout", 0),
      number("checkpoint_seconds", 30, "between two checkpoints; 0 = after every step")};
}

}  // namespace

std::vector<Option> learning_settings() {
  std::vector<Option> all = sizes();
  append(all, model_settings());
  append(all, optimiser_settings());
  return all;
}

ModelOptions model_options_from(const Options& settings) {
  ModelOptions model;
  model.layers = settings.integer("layers");
  model.vocabulary = settings.integer("vocabulary");
  model.mlp = mlp_from(settings.text("mlp"));
  model.mlp_width = settings.integer("mlp_width");
  model.norm = norm_from(settings.text("norm"));
  model.tied_head = settings.boolean("tied_head");
  if (!settings.has("layout")) return model;
  model.layout = layout_from(settings.text("layout"));
  model.positions = positions_from(settings.text("positions"));
  model.taps = settings.integer("short_convolution_taps");
  model.initial_deviation = settings.number("initial_deviation");
  model.autocast = autocast_from(settings.text("autocast"));
  return model;
}

TrainerOptions trainer_options_from(const Options& settings, std::uint64_t run_seed) {
  TrainerOptions options;
  options.optimiser.learning_rate = settings.number("learning_rate");
  options.optimiser.weight_decay = settings.number("weight_decay");
  options.optimiser.decay_all = settings.boolean("decay_all");
  options.optimiser.beta_1 = settings.number("beta_1");
  options.optimiser.beta_2 = settings.number("beta_2");
  options.optimiser.epsilon = settings.number("adam_epsilon");
  options.optimiser.clip = settings.number("clip");
  options.schedule = schedule_from(settings.text("schedule"));
  options.warm_up_steps = settings.integer("warm_up_steps");
  options.drop_after = settings.integer("drop_after");
  options.batch = settings.integer("batch");
  options.epochs = settings.integer("epochs");
  options.shuffled = settings.text("order") != "numbered";
  options.fresh = settings.text("order") == "fresh";
  options.stop_above = settings.number("stop_above");
  options.embedding_dropout = settings.number("embedding_dropout");
  options.data_seed = key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
  options.checkpoint_seconds = settings.number("checkpoint_seconds");
  return options;
}

}  // namespace attnbench::tasks::learning
