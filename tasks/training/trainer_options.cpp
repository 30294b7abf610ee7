#include "tasks/training/trainer_options.hpp"

#include "core/random.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr Names<Keep, 2> keep_names = {{"last", Keep::last},
                                       {"best_validation", Keep::best_validation}};

}  // namespace

const char* to_string(Keep keep) { return name_of(keep_names, keep); }

std::vector<Option> trainer_settings() {
  return {
      number_setting("learning_rate", 1e-3, "the greatest value of the schedule"),
      text_setting("schedule", "cosine", "of the learning rate after the warm-up",
                   schedule_names()),
      integer_setting("drop_after", 3000,
                      "steps after which the schedule drop continues at a tenth", 0),
      integer_setting("warm_up_steps", 0, "steps of linear growth of the learning rate", 0),
      integer_setting("epochs", 10, "passes over the training examples, unless steps are said"),
      integer_setting("steps", 0, "training steps; 0 = those of all epochs", 0),
      integer_setting("evaluate_every", 0,
                      "steps between two evaluations of the validation split; 0 = after each epoch",
                      0),
      boolean_setting("test_each", false, "score the test split at each evaluation, too"),
      text_setting("keep", "last",
                   "the weights that are scored: of the last step, or of the best validation",
                   all_names(keep_names)),
      number_setting("stop_above", 0, "validation accuracy above which training ends; 0 = never", 0,
                     1),
      number_setting("weight_decay", 0.1, "AdamW's"),
      boolean_setting("decay_all", false,
                      "weight decay on biases, norms and embeddings too, as in Zoology"),
      number_setting("beta_1", 0.9, "AdamW's; the schedule one_cycle has its own", 0, 0.999999),
      number_setting("beta_2", 0.999, "AdamW's", 0, 0.9999999),
      number_setting("adam_epsilon", 1e-8, "AdamW's"),
      number_setting("clip", 1, "greatest norm over all gradients; 0 = no clipping"),
      number_setting("clip_value", 0,
                     "greatest size of a gradient's numbers, before clip; 0 = no clipping"),
      text_setting(
          "order", "shuffled",
          "shuffled: examples and batches, anew in each epoch; numbered: the same order in every "
          "epoch, "
          "segment after segment, as in Zoology since 2024; fresh: new examples in each epoch",
          {"shuffled", "numbered", "fresh"}),
      integer_setting("data_seed", 0, "seed of the examples, their order and dropout", 0),
      number_setting("checkpoint_seconds", 30, "between two checkpoints; 0 = after every step")};
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
  options.optimiser.clip_value = settings.number("clip_value");
  options.schedule = schedule_from(settings.text("schedule"));
  options.warm_up_steps = settings.integer("warm_up_steps");
  options.drop_after = settings.integer("drop_after");
  options.batch = settings.integer("batch");
  options.epochs = settings.integer("epochs");
  options.steps = settings.integer("steps");
  options.evaluate_every = settings.integer("evaluate_every");
  options.test_each = settings.boolean("test_each");
  options.keep = value_named("keep", keep_names, settings.text("keep"));
  options.shuffled = settings.text("order") != "numbered";
  options.fresh = settings.text("order") == "fresh";
  options.stop_above = settings.number("stop_above");
  options.embedding_dropout = settings.number("embedding_dropout");
  options.dropout = settings.number("dropout");
  options.data_seed = key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
  options.checkpoint_seconds = settings.number("checkpoint_seconds");
  return options;
}

}  // namespace attnbench::tasks::training
