// The entry point of the plugin: what attnbench calls once it has read the stamp.
#include "attention/plugin/plugin.hpp"

namespace attnbench::mechanisms {
Entry example_mechanism();
}
namespace attnbench::reference {
Reference example_mechanism();
}

namespace {

void register_all(attnbench::Registry& registry) {
  registry.add(attnbench::mechanisms::example_mechanism(),
               attnbench::reference::example_mechanism());
}

}  // namespace

ATTNBENCH_PLUGIN(register_all)
