// A plugin that adds something and then fails.
#include "attention/plugin/plugin.hpp"

namespace {

void register_plugin(attnbench::Registry& registry) {
  auto copy = registry.entry("softmax").implementation("composite");
  copy.name = "left_behind";
  registry.add_implementation("softmax", copy);
  throw std::runtime_error("the tables are missing");
}

}  // namespace

ATTNBENCH_PLUGIN(register_plugin)
