// A plugin that needs a function that no library has.
#include "attention/plugin/plugin.hpp"

void function_of_another_version(attnbench::Registry& registry);

ATTNBENCH_PLUGIN(function_of_another_version)
