#include "attention/plugin/plugin_stamp.hpp"

#include <cstring>

namespace attnbench {
namespace {

/// A text of a stamp, which need not end within its field if the stamp is broken.
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

}  // namespace

std::string stamp_refusal(const PluginStamp& stamp) {
  const PluginStamp ours = current_stamp();
  if (std::memcmp(stamp.magic, ours.magic, sizeof ours.magic) != 0) {
    return "its stamp is not one of attnbench: rebuild the plugin with ATTNBENCH_PLUGIN";
  }
  const std::string theirs = text_of(stamp.attnbench);
  if (stamp.abi != ours.abi) {
    const bool older = stamp.abi < ours.abi;
    return "it was built for interface " + std::to_string(stamp.abi) + " (attnbench " + theirs +
           "), this attnbench has interface " + std::to_string(ours.abi) + ": rebuild " +
           (older ? "the plugin" : "attnbench from the plugin's newer sources");
  }
  if (text_of(stamp.torch) != text_of(ours.torch)) {
    return "it was built against LibTorch " + text_of(stamp.torch) + ", this attnbench against " +
           text_of(ours.torch) + ": rebuild the plugin against the latter";
  }
  if (text_of(stamp.compiler) != text_of(ours.compiler)) {
    return "it was compiled by " + text_of(stamp.compiler) + ", this attnbench by " +
           text_of(ours.compiler) + ": rebuild the plugin with the latter";
  }
  if (text_of(stamp.interface) != text_of(ours.interface)) {
    return "it was built with other headers of attnbench " + theirs +
           " than this one's: rebuild the plugin with the headers of this attnbench";
  }
  return "";
}

}  // namespace attnbench
