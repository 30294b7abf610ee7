// The stamp of a plugin: what it was built with, as plain data that can be read from its file
// without loading it. Does not depend on LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "attention/version.hpp"

namespace attnbench {

constexpr char plugin_magic[16] = "attnbench-stamp";

/// Zero-terminated texts of fixed size, readable with any compiler.
struct PluginStamp {
  char magic[16];
  std::uint32_t abi;
  char attnbench[32];
  char torch[64];
  char compiler[64];
  char interface[32];  ///< a hash of the headers that a plugin sees
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
  detail::copy_text(stamp.interface, ATTNBENCH_INTERFACE);
  return stamp;
}

/// Why this build refuses a plugin with this stamp, and what to rebuild; empty if it does not.
std::string stamp_refusal(const PluginStamp& stamp);

/// The stamp in a plugin's file, which is not loaded. Throws PluginError if the file does not
/// exist, is not a shared object for this machine, is broken, or has no stamp.
PluginStamp read_stamp(const std::string& path);

}  // namespace attnbench
