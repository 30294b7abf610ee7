// A plugin of another interface: nothing of it may run, or it would crash.
#include "attention/plugin/plugin.hpp"

namespace {

constexpr attnbench::PluginStamp stamp_of_another_interface() {
  auto stamp = attnbench::current_stamp();
  stamp.abi += 1;
  return stamp;
}

__attribute__((constructor)) void crash() { __builtin_trap(); }

}  // namespace

extern "C" {
extern const attnbench::PluginStamp attnbench_plugin_stamp __attribute__((visibility("default")));
const attnbench::PluginStamp attnbench_plugin_stamp = stamp_of_another_interface();
__attribute__((visibility("default"))) void attnbench_plugin_register(attnbench::Registry&) {
  __builtin_trap();
}
}
