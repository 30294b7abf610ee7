// A plugin that crashes while registering: the worker loads it in a child first.
#include <csignal>

#include "attention/plugin/plugin.hpp"

namespace {

void register_plugin(attnbench::Registry&) { std::raise(SIGSEGV); }

}  // namespace

ATTNBENCH_PLUGIN(register_plugin)
