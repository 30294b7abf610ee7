// The weights of Latte v2's seven variants (its Table 1), counted without training: here at the
// sizes of the paper's Table 6, and at larger ones that its printed numbers fit.
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "attention/layer.hpp"
#include "core/option_json.hpp"
#include "tasks/task.hpp"
#include "tests/support/files.hpp"
#include "tests/tasks/training/model_of.hpp"

using namespace attnbench;
using namespace attnbench::test;
using SuiteJson = nlohmann::json;

namespace {

constexpr std::int64_t kBytePairs = 50'257;  // of GPT-2's tokenizer; the suite itself has bytes

std::string source_text(const std::string& file) {
  return read_file(test::source_folder() + "/" + file);
}

SuiteJson suite_json(const std::string& file) {
  return SuiteJson::parse(source_text("suites/" + file));
}

/// The paper profile's preset and the suite's own values: settings of the task and options of the
/// mechanisms together.
SuiteJson sizes_of_suite(const SuiteJson& suite) {
  SuiteJson sizes =
      suite_json("form/presets.json").at(suite.at("preset").get<std::string>()).at("set");
  sizes.update(suite.at("set"));
  return sizes;
}

/// The names in `values` that are declared, without axes.
OptionValues declared_among(const std::vector<Option>& declared, const SuiteJson& values) {
  OptionValues said;
  for (const Option& option : declared) {
    if (!values.contains(option.name) || values[option.name].is_array()) continue;
    const SuiteJson& value = values[option.name];
    said[option.name] = option.type == OptionType::window && value.is_number_integer()
                            ? OptionValue(Window{value.get<std::int64_t>() - 1, 0})
                            : value_from(value, option.name);
  }
  return said;
}

/// Weights of one variant, an entry of the suite, at these sizes.
std::int64_t weights_of_variant(const SuiteJson& entry, SuiteJson sizes) {
  sizes.update(entry);
  const std::int64_t heads = sizes.at("heads");
  sizes["latents_per_head"] = sizes.at("latents_total").get<std::int64_t>() / heads;
  Problem problem;
  problem.heads = problem.kv_heads = heads;
  problem.length = problem.key_length = sizes.at("length");
  problem.head_dim = problem.value_dim = sizes.at("width").get<std::int64_t>() / heads;
  const std::vector<Option> settings = tasks::find_task("lm").settings();
  ModelOptions options =
      model_options_from(Options::resolve(settings, declared_among(settings, sizes)));
  options.vocabulary = kBytePairs;
  REQUIRE(options.layout == Layout::mechanism);
  REQUIRE_FALSE(options.projection_bias);

  const Entry& mechanism = registry().entry(entry.at("use").get<std::string>());
  const Options chosen = mechanism.derive(
      Options::resolve(mechanism.options, declared_among(mechanism.options, sizes)), problem);
  const Layer layer(mechanism.make(chosen, problem), mechanism.implementations.front(),
                    Scope::layer, 1);
  return weights_around(options, problem) + options.layers * weights_in(layer);
}

std::string millions(std::int64_t weights) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.1f", static_cast<double>(weights) / 1e6);
  return text.data();
}

/// Millions of weights by variant, as the paper prints them.
std::map<std::string, std::int64_t> printed_weights() {
  std::map<std::string, std::int64_t> printed;
  std::istringstream lines(source_text("suites/latte_v2_table_1.csv"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream columns(line);
    std::string label, text, length, weights;
    std::getline(columns, label, ',');
    if (label.empty() || label[0] == '#' || label == "label") continue;
    std::getline(columns, text, ',');
    std::getline(columns, length, ',');
    std::getline(columns, weights, ',');
    printed[label] = std::stoll(weights);
  }
  return printed;
}

}  // namespace

TEST_CASE("the weights of Latte v2's variants are those that the page of the paper tells",
          "[model]") {
  const SuiteJson suite = suite_json("latte_v2_table_1.json");
  const SuiteJson sizes = sizes_of_suite(suite);
  CHECK(sizes.at("layers") == 8);
  CHECK(sizes.at("width") == 512);
  SuiteJson larger = sizes;
  larger.update({{"layers", 12}, {"width", 768}, {"mlp_width", 3072}, {"latents_total", 128}});
  const auto printed = printed_weights();
  REQUIRE(printed.size() == 7);
  REQUIRE(suite.at("mechanisms").size() == 7);
  const std::string page = source_text("docs/papers/latte_v2.md");
  for (const auto& [label, entry] : suite.at("mechanisms").items()) {
    const std::int64_t here = weights_of_variant(entry, sizes);
    const std::int64_t fitted = weights_of_variant(entry, larger);
    const std::string row = "| " + label + " | " + millions(here) + " | " +
                            std::to_string(printed.at(label)) + " | " + millions(fitted) + " |";
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
    // The printed numbers are not those of Table 6's sizes, and are of the larger ones within 3 %.
    const auto paper = static_cast<double>(printed.at(label)) * 1e6;
    CHECK(static_cast<double>(here) < 0.5 * paper);
    CHECK(std::abs(static_cast<double>(fitted) - paper) < 0.03 * paper);
  }
}

TEST_CASE("the weights of Latte at Table 6's sizes are counted by hand", "[model]") {
  const SuiteJson suite = suite_json("latte_v2_table_1.json");
  const SuiteJson sizes = sizes_of_suite(suite);
  const std::int64_t tables = (kBytePairs + 512) * 512;
  const std::int64_t mix = 2 * 512 * 256 + 2 * 512 * 512;
  const std::int64_t mlp = 2 * 512 * 2048 + 2048 + 512;
  CHECK(weights_of_variant(suite["mechanisms"]["Latte"], sizes) ==
        tables + 8 * (mix + mlp + 4 * 512) + 2 * 512);
  const std::int64_t attention = 4 * 512 * 512;
  const std::int64_t gated = 3 * 512 * 2048;
  CHECK(weights_of_variant(suite["mechanisms"]["Transformer++"], sizes) ==
        kBytePairs * 512 + 8 * (attention + gated + 2 * 512) + 512);
}
