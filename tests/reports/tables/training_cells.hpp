// Records of trainings for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
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

}  // namespace attnbench::test
