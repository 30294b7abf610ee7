// p(l | t) of a trained language model: what a record holds of it, and when it holds nothing.
#include "tasks/lm/latents.hpp"

#include <algorithm>
#include <cmath>

#include "tasks/training/data.hpp"
#include "tests/support/catch.hpp"
#include "tests/tasks/lm/prepared_text.hpp"
#include "tests/tasks/run_cell.hpp"
#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using tasks::lm::latent_probabilities;

namespace {

/// Two blocks in double, so that a loop can be held against it.
std::shared_ptr<tasks::training::Model> latent_model(const char* name,
                                                     std::map<std::string, OptionValue> said = {
                                                         {"latents_per_head", n(5)}}) {
  tasks::training::ModelOptions options;
  options.layers = 2;
  return attnbench::test::small_model(name, options, Dtype::float64, said);
}

/// softmax over the last dimension of logits [1, H, T, L], by plain loops.
std::vector<double> softmax_of(const at::Tensor& logits, std::int64_t head, std::int64_t token,
                               double scale) {
  std::vector<double> row;
  double sum = 0;
  for (std::int64_t l = 0; l < logits.size(3); ++l) {
    row.push_back(std::exp(scale * logits[0][head][token][l].item<double>()));
    sum += row.back();
  }
  for (double& one : row) one /= sum;
  return row;
}

/// The share of states in use, by plain loops.
double in_use_of(tasks::training::Model& model, const at::Tensor& tokens, double scale) {
  double used = 0;
  double all = 0;
  for (std::size_t i = 0; i < model.mixes(); ++i) {
    const at::NoGradGuard no_grad;
    const at::Tensor logits = model.mix_inputs(i, tokens)["query_logits"];
    const auto states = static_cast<std::size_t>(logits.size(3));
    for (std::int64_t head = 0; head < logits.size(1); ++head) {
      std::vector<double> sums(states, 0);
      for (std::int64_t t = 0; t < logits.size(2); ++t) {
        const std::vector<double> row = softmax_of(logits, head, t, scale);
        for (std::size_t l = 0; l < states; ++l) sums[l] += row[l];
      }
      for (const double sum : sums) {
        used += sum / static_cast<double>(logits.size(2)) > 0.5 / static_cast<double>(states);
        ++all;
      }
    }
  }
  return used / all;
}

void check_against_loops(tasks::training::Model& model, double scale, std::int64_t states) {
  const RecallData data = small_data();
  const at::Tensor tokens = data.questions(tasks::training::Split::test, 0, {0}).tokens;
  const auto found = latent_probabilities(model, data, 9);
  REQUIRE(found.has_value());
  CHECK(found->states == states);
  CHECK(found->block == 2);
  CHECK(found->blocks == 2);
  CHECK(found->head == 1);
  CHECK(found->heads == 2);
  CHECK(found->length == 16);
  CHECK(found->tokens.size() == 9);
  REQUIRE(found->probabilities.size() == 9);
  const at::NoGradGuard no_grad;
  const at::Tensor logits = model.mix_inputs(1, tokens)["query_logits"];
  for (std::size_t t = 0; t < 9; ++t) {
    const std::vector<double> row = softmax_of(logits, 0, static_cast<std::int64_t>(t), scale);
    const auto shown = static_cast<std::size_t>(std::min<std::int64_t>(states, 17));
    REQUIRE(found->probabilities[t].size() == shown);
    double sum = 0;
    for (std::size_t l = 0; l < shown; ++l) {
      CHECK(found->probabilities[t][l] == Approx(row[l]).epsilon(1e-12));
      sum += found->probabilities[t][l];
    }
    if (states <= 17) CHECK(sum == Approx(1).epsilon(1e-12));
  }
  CHECK(found->in_use == Approx(in_use_of(model, tokens, scale)).epsilon(1e-12));
}

Settings few_latent_steps() {
  return {{"length", n(16)}, {"batch", n(4)},         {"heads", n(2)},
          {"width", n(16)},  {"steps", n(4)},         {"evaluate_every", n(2)},
          {"layers", n(1)},  {"learning_rate", 0.01}, {"segments", s("1")}};
}

Json training_of(const char* mechanism, const Settings& settings, const Settings& options = {}) {
  return run_cell(registry(), "lm", make_cell("lm", mechanism, "auto", settings, options))
      .sections["training"];
}

}  // namespace

TEST_CASE("probabilities of states are the softmax of the query's logits", "[lm]") {
  check_against_loops(*latent_model("latte"), 1, 5);
  check_against_loops(*latent_model("macchiato"), 1, 6);
  check_against_loops(*latent_model("latte", {{"latents_per_head", n(20)}}), 1, 20);
  check_against_loops(*latent_model("latte", {{"latents_per_head", n(5)}, {"logit_scale", 30.0}}),
                      30, 5);
}

TEST_CASE("states that no token chooses are not in use", "[lm]") {
  const auto model = latent_model("latte");
  const RecallData data = small_data();
  for (auto& item : model->named_parameters()) {
    if (item.key().find("weight_query_logits") == std::string::npos) continue;
    const at::NoGradGuard no_grad;
    item.value().zero_();
  }
  // Logits of 0: every state has the uniform probability, and is used.
  const auto uniform = latent_probabilities(*model, data, 1);
  REQUIRE(uniform.has_value());
  CHECK(uniform->in_use == 1);
  CHECK(uniform->probabilities[0] == std::vector<double>(5, 0.2));
  // Sharp logits: a token chooses one state, and some states are next to never chosen.
  const auto sharp = latent_model("latte", {{"latents_per_head", n(64)}, {"logit_scale", 1e4}});
  CHECK(latent_probabilities(*sharp, data, 1)->in_use < 0.5);
}

TEST_CASE("state 0 is the window where there is one; other mechanisms have no states", "[lm]") {
  const RecallData data = small_data();
  CHECK(latent_probabilities(*latent_model("macchiato"), data, 1)->first_state == "window");
  CHECK(latent_probabilities(*latent_model("latte"), data, 1)->first_state == "latent");
  CHECK_FALSE(latent_probabilities(*latent_model("softmax", {}), data, 1).has_value());
  CHECK_FALSE(latent_probabilities(*latent_model("latte"), data, 0).has_value());
}

TEST_CASE("bytes of a text are shown in ASCII", "[lm]") {
  using tasks::lm::byte_text;
  CHECK(byte_text('a') == "a");
  CHECK(byte_text(' ') == " ");
  CHECK(byte_text('"') == "\"");
  CHECK(byte_text('\\') == "\\\\");
  CHECK(byte_text('\n') == "\\n");
  CHECK(byte_text('\t') == "\\t");
  CHECK(byte_text(0) == "\\x00");
  CHECK(byte_text(0x7F) == "\\x7f");
  CHECK(byte_text(0xC3) == "\\xc3");
}

TEST_CASE("a training writes the probabilities of states where it is asked to", "[lm]") {
  const std::string text = regular_text(4000);
  const PreparedText prepared(text);
  const Settings asked = with(few_latent_steps(), {{"latent_probabilities", n(10)}});
  const Json training = training_of("macchiato", asked, {{"latents_per_head", n(4)}});
  REQUIRE(training.contains("latent_probabilities"));
  const Json& found = training["latent_probabilities"];
  CHECK(found["states"] == 5);
  CHECK(found["heads"] == 2);
  CHECK(found["length"] == 16);
  CHECK(found["first_state"] == "window");
  CHECK(found["in_use"].get<double>() > 0);
  CHECK(found["in_use"].get<double>() <= 1);
  std::string tokens;
  for (const Json& token : found["tokens"]) tokens += token.get<std::string>();
  CHECK(tokens == text.substr(3800, 10));
  REQUIRE(found["probabilities"].size() == 10);
  for (const Json& row : found["probabilities"]) {
    REQUIRE(row.size() == 5);
    double sum = 0;
    for (const Json& one : row) sum += one.get<double>();
    CHECK(sum == Approx(1).epsilon(1e-12));
  }
  CHECK_FALSE(training_of("latte", few_latent_steps()).contains("latent_probabilities"));
  CHECK_FALSE(training_of("softmax", asked).contains("latent_probabilities"));
}

TEST_CASE("more tokens than a sequence has are refused, and fewer than none", "[lm]") {
  const PreparedText prepared(regular_text(4000));
  const auto forecast = [](std::int64_t tokens) {
    const Settings asked = with(few_latent_steps(), {{"latent_probabilities", n(tokens)}});
    return tasks::find_task("lm").forecast(registry(), make_cell("lm", "latte", "auto", asked));
  };
  CHECK(forecast(16).support);
  CHECK_THROWS_WITH(forecast(17), Contains("latent_probabilities is 17") &&
                                      Contains("has 16 tokens") && Contains("greater length"));
  CHECK_THROWS_WITH(forecast(-1), Contains("latent_probabilities"));
}
