// A plugin that needs what this attnbench does not offer.
#include "attention/plugin/plugin.hpp"

namespace attnbench {
void function_of_tomorrow();
}

namespace {

void register_plugin(attnbench::Registry&) { attnbench::function_of_tomorrow(); }

}  // namespace

ATTNBENCH_PLUGIN(register_plugin)
