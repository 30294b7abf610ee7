// Plugins: shared objects that add mechanisms and implementations to a registry.
//
// A plugin exports two C symbols:
//   extern "C" const attnbench::PluginStamp attnbench_plugin_stamp;
//   extern "C" void attnbench_plugin_register(attnbench::Registry&);
// ATTNBENCH_PLUGIN(register_function) writes both. The stamp is plain data and is read from the
// file before anything of it is loaded: a plugin built against another attnbench, another LibTorch
// or another compiler is refused before a line of it runs. tasks/plugin.hpp adds a third symbol,
// for tasks.
#pragma once

#include <string>

#include "attention/plugin/plugin_stamp.hpp"
#include "attention/registry.hpp"

namespace attnbench {

/// A plugin's shared object, loaded. It stays loaded when the object goes: what it registered, or
/// an exception of its own, may live on.
class PluginLibrary {
 public:
  /// Throws PluginError naming the file, the cause and which side to rebuild: what read_stamp and
  /// stamp_refusal say, or that it lacks something. A crash is the caller's to contain: load it in
  /// a child first.
  explicit PluginLibrary(const std::string& path);

  /// The address of a symbol that it exports, or null.
  void* find(const char* symbol) const;
  /// Lets it register into a copy of `registry`, which replaces it only if all went well: a plugin
  /// that throws or clashes leaves nothing behind. What was looked up in `registry` before is then
  /// no longer valid. False where the plugin has no such function. Throws PluginError.
  bool register_into(Registry& registry) const;
  /// The same for whatever else can be registered: calls `registration` and turns what it throws
  /// into a PluginError that names the plugin.
  void guarded(const std::function<void()>& registration) const;
  /// Throws PluginError saying that the plugin has no function of that name.
  [[noreturn]] void refuse_without(const std::string& symbol) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace attnbench

/// The stamp alone, for a plugin that has no mechanisms; in one of its files.
#define ATTNBENCH_PLUGIN_STAMP                                                      \
  extern "C" {                                                                      \
  extern const attnbench::PluginStamp attnbench_plugin_stamp                        \
      __attribute__((visibility("default")));                                       \
  const attnbench::PluginStamp attnbench_plugin_stamp = attnbench::current_stamp(); \
  }

/// Makes a shared object a plugin; `register_function` takes an attnbench::Registry&.
#define ATTNBENCH_PLUGIN(register_function)                                         \
  ATTNBENCH_PLUGIN_STAMP                                                            \
  extern "C" __attribute__((visibility("default"))) void attnbench_plugin_register( \
      attnbench::Registry& registry) {                                              \
    register_function(registry);                                                    \
  }
