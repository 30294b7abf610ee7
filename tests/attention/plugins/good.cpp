// A plugin that adds a mechanism, an alias, and an implementation of softmax.
#include "attention/plugin/plugin.hpp"

namespace {

using namespace attnbench;

/// Every query gets the mean of all values.
class Mean : public Mechanism {
 public:
  using Mechanism::Mechanism;
  std::vector<Role> roles() const override {
    return {{"value", Source::key_tokens, problem.value_dim}};
  }
};

Implementation composite() {
  Implementation implementation;
  implementation.name = "composite";
  implementation.title = "one tensor operation";
  implementation.supports = [](const Options&, const Problem&) { return Support{}; };
  implementation.cost = [](const Options&, const Problem&) { return Cost{}; };
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State*) {
    const auto& v = inputs["value"];
    const auto length = mechanism.problem.length;
    return Mixed{v.mean(2, true).expand({v.size(0), v.size(1), length, v.size(3)}), {}};
  };
  return implementation;
}

Entry mean() {
  Entry entry;
  entry.name = "mean";
  entry.title = "The mean of all values";
  entry.citation = "none";
  entry.patterns = {Pattern::bidirectional};
  entry.supports = [](const Options&, const Problem&) { return Support{}; };
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = [](const Options& options, const Problem& problem) {
    return std::make_shared<Mean>("mean", options, problem);
  };
  entry.implementations = {composite()};
  entry.aliases = {{"average", "mean", "auto", {}, "another word for it"}};
  return entry;
}

std::vector<double> mean_rows(const Options&, const Problem&,
                              const reference::ReferenceInputs& inputs,
                              const std::vector<reference::RowIndex>& rows) {
  const auto& v = inputs.roles.at("value");
  std::vector<double> out;
  for (const auto& row : rows) {
    for (std::int64_t d = 0; d < v.shape[3]; ++d) {
      double sum = 0;
      for (std::int64_t s = 0; s < v.shape[2]; ++s) sum += v.row(row.b, row.h, s)[d];
      out.push_back(sum / static_cast<double>(v.shape[2]));
    }
  }
  return out;
}

void register_plugin(Registry& registry) {
  registry.add(mean(), mean_rows);
  Implementation twice = registry.entry("softmax").implementation("composite");
  twice.name = "from_plugin";
  twice.rank = -1;
  registry.add_implementation("softmax", twice);
}

}  // namespace

ATTNBENCH_PLUGIN(register_plugin)
