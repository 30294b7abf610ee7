// Records of trainings for tests.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace attnbench::test {

using Json = nlohmann::json;

/// One training at a learning rate and seed, with its accuracy on validation and test.
inline Json training_cell(const std::string& label, double rate, int seed, double validation,
                          double test, Json settings = Json::object()) {
  settings.update({{"learning_rate", rate}, {"model_seed", seed}});
  if (!settings.contains("length")) settings["length"] = 64;
  const Json segment = {{"segment", "64x8"},
                        {"length", 64},
                        {"examples", 100},
                        {"questions", 800},
                        {"accuracy", test},
                        {"loss", 1.0},
                        {"wrong_from_context", (1 - test) * 0.75},
                        {"wrong_from_elsewhere", (1 - test) * 0.25}};
  Json curve = Json::array();
  for (int epoch = 1; epoch <= 4; ++epoch) {
    curve.push_back({{"epoch", epoch},
                     {"step", 10 * epoch},
                     {"learning_rate", rate},
                     {"loss", 2.0 / epoch},
                     {"train_accuracy", validation * epoch / 4},
                     {"validation_loss", 2.0 / epoch},
                     {"validation_accuracy", validation * epoch / 4}});
  }
  return {
      {"id", label + settings.dump()},
      {"label", label},
      {"task", "mqar"},
      {"task_label", "mqar"},
      {"mechanism", label},
      {"implementation", "auto"},
      {"settings", settings},
      {"options", Json::object()},
      {"status", "ok"},
      {"metrics",
       {{"accuracy", test},
        {"validation_accuracy", validation},
        {"train_accuracy", 1.0},
        {"state_bytes", label == "softmax" ? 32768 : 16384},
        {"examples_per_second", 1000.0}}},
      {"training",
       {{"curve", curve},
        {"test", {segment}},
        {"converged", validation > 0.5},
        {"guess", 0.125},
        {"chance", 0.004},
        {"look_back",
         {{"distances", {3, 4, 17}}, {"questions", {100, 300, 400}}, {"right", {100, 150, 40}}}}}}};
}

/// A training that classified 100 examples of two classes: accuracy on the test by the last weights
/// and by those of the best validation, which are kept.
inline Json class_cell(const std::string& label, int seed, double last, double best) {
  Json cell = training_cell(label, 0.1, seed, best, best);
  Json& training = cell["training"];
  training.erase("look_back");
  training["test"][0].erase("wrong_from_context");
  training["test"][0].erase("wrong_from_elsewhere");
  training["guess"] = 0.52;
  training["chance"] = 0.5;
  const int right = static_cast<int>(50 * best);
  training["confusion"] = {{right, 50 - right}, {50 - right, right}};
  training["selection"] = {
      {"keep", "best_validation"},
      {"step", 30},
      {"last", {{"step", 40}, {"validation_accuracy", last}, {"test_accuracy", last}}},
      {"best_validation", {{"step", 30}, {"validation_accuracy", best}, {"test_accuracy", best}}}};
  return cell;
}

/// A training of a language model: bits per byte of validation and test, and of the test at twice
/// the training length.
inline Json text_cell(const std::string& label, double rate, int seed, double validation,
                      double test, double longer, Json settings = Json::object()) {
  constexpr double nats = 0.6931471805599453;
  if (!settings.contains("length")) settings["length"] = 256;
  Json cell = training_cell(label, rate, seed, 0.4, 0.4, std::move(settings));
  cell["task"] = cell["task_label"] = "lm";
  cell["metrics"].update({{"bits_per_byte", test},
                          {"perplexity", std::exp2(test)},
                          {"validation_bits_per_byte", validation},
                          {"train_bits_per_byte", test - 0.1}});
  Json& training = cell["training"];
  for (const char* key : {"look_back", "guess", "chance"}) training.erase(key);
  training["judged_by"] = "loss";
  training["levels"] = {{{"context", 0}, {"bits_per_byte", 4.6}},
                        {{"context", 1}, {"bits_per_byte", 3.5}},
                        {{"context", 2}, {"bits_per_byte", 2.7}}};
  for (std::size_t i = 0; i < training["curve"].size(); ++i) {
    training["curve"][i]["validation_loss"] = nats * (validation + 1.0 - 0.25 * double(i + 1));
  }
  training["test"] = Json::array();
  for (const auto& [name, length, bits] :
       {std::tuple("1x", 256, test), std::tuple("2x", 512, longer)}) {
    training["test"].push_back({{"segment", name},
                                {"length", length},
                                {"examples", 10},
                                {"questions", 2560},
                                {"accuracy", 0.4},
                                {"loss", nats * bits}});
  }
  return cell;
}

inline Json diverged_cell(const std::string& label, double rate, int seed) {
  Json cell = training_cell(label, rate, seed, 0, 0);
  cell.erase("training");
  cell.erase("metrics");
  cell["status"] = "error";
  cell["reason"] = "the loss is not a finite number at step 3 of 40";
  return cell;
}

inline Json trainings(std::vector<Json> cells) {
  return {{"context", Json::object()},
          {"benchmarks", Json::array()},
          {"attnbench",
           {{"schema", 1},
            {"suite", {{"tasks", {{"mqar", {{"task", "mqar"}, {"axis", "length"}}}}}}},
            {"run", Json::object()},
            {"machine", Json::object()},
            {"ceilings", Json::object()},
            {"provenance", Json::object()},
            {"cells", std::move(cells)}}}};
}

/// A result of language models.
inline Json language_models(std::vector<Json> cells) {
  Json result = trainings(std::move(cells));
  result["attnbench"]["suite"]["tasks"] = {{"lm", {{"task", "lm"}, {"axis", "length"}}}};
  return result;
}

}  // namespace attnbench::test
