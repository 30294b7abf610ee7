// A plugin of another LibTorch.
#include "attention/plugin/plugin.hpp"

namespace {

constexpr attnbench::PluginStamp stamp_of_another_torch() {
  auto stamp = attnbench::current_stamp();
  attnbench::detail::copy_text(stamp.torch, "9.9.9 libtorch_cpu.so.9 1");
  return stamp;
}

}  // namespace

extern "C" {
extern const attnbench::PluginStamp attnbench_plugin_stamp __attribute__((visibility("default")));
const attnbench::PluginStamp attnbench_plugin_stamp = stamp_of_another_torch();
__attribute__((visibility("default"))) void attnbench_plugin_register(attnbench::Registry&) {
  __builtin_trap();
}
}
