// Plugins: shared objects that add mechanisms and implementations to a registry.
//
// A plugin exports two C symbols:
//   extern "C" const attnbench::PluginStamp attnbench_plugin_stamp;
//   extern "C" void attnbench_plugin_register(attnbench::Registry&);
// ATTNBENCH_PLUGIN(register_function) defines both. The stamp is plain data, read from the file
// before the plugin is loaded: a plugin built for another attnbench, LibTorch or compiler is
// refused before any of its code runs. tasks/plugin.hpp adds a third symbol, for tasks.
#pragma once

#include <string>

#include "attention/plugin/plugin_stamp.hpp"
#include "attention/registry.hpp"

namespace attnbench {

/// A loaded plugin. It stays loaded after this object is destroyed, since what it registered, or
/// one of its exceptions, may still exist.
class PluginLibrary {
 public:
  /// Throws PluginError with the file, the cause and what to rebuild: the errors of read_stamp and
  /// stamp_refusal, or an undefined symbol. The caller must contain crashes: load it in a child
  /// process first.
  explicit PluginLibrary(const std::string& path);

  /// The address of an exported symbol, or null.
  void* find(const char* symbol) const;
  /// Registers the plugin in a copy of `registry`, which replaces it on success: a plugin that
  /// throws or clashes changes nothing. Invalidates references into `registry`. False if the plugin
  /// has no register function. Throws PluginError.
  bool register_into(Registry& registry) const;
  /// Calls `registration` and converts its exceptions to a PluginError that names the plugin.
  void guarded(const std::function<void()>& registration) const;
  /// Throws PluginError: the plugin has no function of that name.
  [[noreturn]] void refuse_without(const std::string& symbol) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace attnbench

/// Defines only the stamp, for a plugin without mechanisms; in one of its files.
#define ATTNBENCH_PLUGIN_STAMP                                                      \
  extern "C" {                                                                      \
  extern const attnbench::PluginStamp attnbench_plugin_stamp                        \
      __attribute__((visibility("default")));                                       \
  const attnbench::PluginStamp attnbench_plugin_stamp = attnbench::current_stamp(); \
  }

/// Defines a plugin; `register_function` takes an attnbench::Registry&.
#define ATTNBENCH_PLUGIN(register_function)                                         \
  ATTNBENCH_PLUGIN_STAMP                                                            \
  extern "C" __attribute__((visibility("default"))) void attnbench_plugin_register( \
      attnbench::Registry& registry) {                                              \
    register_function(registry);                                                    \
  }
