// Plugins: shared objects that add mechanisms and implementations to a registry.
//
// A plugin exports two C symbols:
//   extern "C" const attnbench::PluginStamp attnbench_plugin_stamp;
//   extern "C" void attnbench_plugin_register(attnbench::Registry&);
// ATTNBENCH_PLUGIN(register_function) writes both. The stamp is plain data and is read first: a
// plugin built against another attnbench, another LibTorch or another compiler ABI is refused
// before its register function runs. A plugin should have no static constructors: they run on
// loading, before the stamp can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "attention/registry.hpp"
#include "attention/version.hpp"

namespace attnbench {

constexpr char plugin_magic[16] = "attnbench-stamp";

/// Plain data, zero-terminated texts, so that it can be read whatever the compiler.
struct PluginStamp {
  char magic[16];
  std::uint32_t abi;
  char attnbench[32];
  char torch[64];
  char compiler[64];
};

namespace detail {
template <std::size_t N>
constexpr void copy_text(char (&to)[N], const char* from) {
  std::size_t i = 0;
  for (; i + 1 < N && from[i] != '\0'; ++i) to[i] = from[i];
  for (; i < N; ++i) to[i] = '\0';
}
}  // namespace detail

/// The stamp of the build that includes this header.
constexpr PluginStamp current_stamp() {
  PluginStamp stamp{};
  detail::copy_text(stamp.magic, plugin_magic);
  stamp.abi = ATTNBENCH_ABI;
  detail::copy_text(stamp.attnbench, ATTNBENCH_VERSION);
  detail::copy_text(stamp.torch, ATTNBENCH_TORCH_BUILD);
  detail::copy_text(stamp.compiler, ATTNBENCH_COMPILER_ABI);
  return stamp;
}

/// Why a plugin of this stamp cannot be taken by this build and which side to rebuild; empty = it
/// can.
std::string stamp_refusal(const PluginStamp& stamp);

/// Loads `path` and lets it register into a copy of `registry`, which replaces it only if all went
/// well: a plugin that throws or clashes leaves nothing behind. What was looked up in `registry`
/// before is then no longer valid. Throws PluginError naming the file, the cause and which side to
/// rebuild. A crash in the plugin is the caller's to contain: load in a child first.
void load_plugin(const std::string& path, Registry& registry);

}  // namespace attnbench

/// Makes a shared object a plugin; `register_function` takes an attnbench::Registry&.
#define ATTNBENCH_PLUGIN(register_function)                                         \
  extern "C" {                                                                      \
  extern const attnbench::PluginStamp attnbench_plugin_stamp                        \
      __attribute__((visibility("default")));                                       \
  const attnbench::PluginStamp attnbench_plugin_stamp = attnbench::current_stamp(); \
  __attribute__((visibility("default"))) void attnbench_plugin_register(            \
      attnbench::Registry& registry) {                                              \
    register_function(registry);                                                    \
  }                                                                                 \
  }
