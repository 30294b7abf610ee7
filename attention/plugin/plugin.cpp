#include "attention/plugin/plugin.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "attention/plugin/floating_point.hpp"

namespace attnbench {
namespace {

using RegisterFunction = void (*)(Registry&);

bool begins_with(const std::string& text, const char* beginning) {
  return text.rfind(beginning, 0) == 0;
}

/// The demangled name in the loader's "FILE: undefined symbol: NAME"; empty for other errors.
std::string undefined_name(const std::string& complaint) {
  const std::string before = "undefined symbol: ";
  const std::size_t begin = complaint.find(before);
  if (begin == std::string::npos) return {};
  std::string name = complaint.substr(begin + before.size());
  name.resize(std::min(name.size(), name.find_first_of(" \t,(")));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? readable.get() : name;
}

/// What to do about a loader's error for a plugin with a matching stamp.
std::string advice(const std::string& complaint) {
  const std::string name = undefined_name(complaint);
  if (name.empty()) return "rebuild the plugin here, with the libraries that it needs";
  if (begins_with(name, "attnbench::")) {
    return "this attnbench does not offer " + name +
           ": rebuild the plugin with what the headers of this attnbench offer";
  }
  for (const char* torch : {"at::", "c10::", "torch::", "caffe2::"}) {
    if (begins_with(name, torch)) {
      return "the LibTorch of this attnbench does not have " + name +
             ": rebuild the plugin against it";
    }
  }
  return "the plugin itself lacks " + name +
         ": add the source or library that defines it, and rebuild the plugin";
}

}  // namespace

PluginLibrary::PluginLibrary(const std::string& path) : path_(path) {
  if (const std::string refusal = stamp_refusal(read_stamp(path)); !refusal.empty()) {
    throw PluginError("plugin " + path + " is refused: " + refusal);
  }
  // An absolute path, since the loader searches its own folders for a bare name.
  const std::string absolute = std::filesystem::absolute(path).string();
  // Code built with -ffast-math enables flush-to-zero while it is loaded.
  const FloatingPointGuard kept;
  handle_ = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return;
  const char* said = dlerror();
  const std::string complaint = said != nullptr ? said : "the loader gives no reason";
  throw PluginError("plugin " + path + " cannot be loaded: " + complaint + "; " +
                    advice(complaint));
}

void* PluginLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

void PluginLibrary::refuse_without(const std::string& symbol) const {
  throw PluginError("plugin " + path_ + " has no symbol " + symbol +
                    ": write ATTNBENCH_PLUGIN(function) in one of its files and rebuild it");
}

void PluginLibrary::guarded(const std::function<void()>& registration) const {
  const auto complaint = [this](const std::string& cause) {
    return "plugin " + path_ + " failed while registering: " + cause + "; nothing was registered";
  };
  const FloatingPointGuard kept;
  try {
    registration();
  } catch (const NameTaken& error) {
    throw NameTaken(complaint(error.what()));
  } catch (const std::exception& error) {
    throw PluginError(complaint(error.what()));
  } catch (...) {
    throw PluginError(complaint("an exception that is not a std::exception"));
  }
}

bool PluginLibrary::register_into(Registry& registry) const {
  const auto add = reinterpret_cast<RegisterFunction>(find("attnbench_plugin_register"));
  if (add == nullptr) return false;
  Registry extended = registry;
  guarded([&] { add(extended); });
  registry = std::move(extended);
  return true;
}

}  // namespace attnbench
