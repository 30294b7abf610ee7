#include "attention/plugin.hpp"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <memory>

namespace attnbench {
namespace {

using RegisterFunction = void (*)(Registry&);

struct Unload {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Unload>;

/// A text of a stamp, which need not end within its field if the stamp is broken.
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

Library open(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw PluginError("plugin " + path + ": there is no such file");
  }
  // With a path of its own, or the loader would search its folders for the name.
  const std::string absolute = std::filesystem::absolute(path).string();
  Library library(dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library) return library;
  const char* cause = dlerror();
  throw PluginError("plugin " + path + " cannot be loaded: " +
                    (cause != nullptr ? cause : "the loader gives no reason") +
                    "; link it with attnbench_attention and rebuild it against this attnbench");
}

template <class Symbol>
Symbol symbol_of(const Library& library, const std::string& path, const char* name) {
  void* const address = dlsym(library.get(), name);
  if (address == nullptr) {
    throw PluginError("plugin " + path + " has no symbol " + name +
                      ": write ATTNBENCH_PLUGIN(function) in one of its files and rebuild it");
  }
  return reinterpret_cast<Symbol>(address);
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
  return "";
}

void load_plugin(const std::string& path, Registry& registry) {
  Library library = open(path);
  const auto* stamp = symbol_of<const PluginStamp*>(library, path, "attnbench_plugin_stamp");
  if (const std::string refusal = stamp_refusal(*stamp); !refusal.empty()) {
    throw PluginError("plugin " + path + " is refused: " + refusal);
  }
  const auto add = symbol_of<RegisterFunction>(library, path, "attnbench_plugin_register");
  // From here on code of the plugin may live on, in what it registered or in an exception.
  library.release();
  Registry extended = registry;
  std::string cause;
  try {
    add(extended);
  } catch (const std::exception& error) {
    cause = error.what();
  } catch (...) {
    cause = "an exception that is no std::exception";
  }
  if (!cause.empty()) {
    throw PluginError("plugin " + path + " failed while registering: " + cause +
                      "; nothing of it was taken");
  }
  registry = std::move(extended);
}

}  // namespace attnbench
