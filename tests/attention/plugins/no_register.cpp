// A plugin that forgot its register function.
#include "attention/plugin/plugin.hpp"

extern "C" {
extern const attnbench::PluginStamp attnbench_plugin_stamp __attribute__((visibility("default")));
const attnbench::PluginStamp attnbench_plugin_stamp = attnbench::current_stamp();
}
