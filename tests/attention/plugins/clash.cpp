// A plugin that takes a name which is taken.
#include "attention/plugin/plugin.hpp"

namespace {

void register_plugin(attnbench::Registry& registry) {
  auto entry = registry.entry("softmax");
  entry.aliases.clear();
  registry.add(entry, registry.reference("softmax"));
}

}  // namespace

ATTNBENCH_PLUGIN(register_plugin)
