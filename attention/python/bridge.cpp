#include "attention/python/bridge.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace attnbench::python {
namespace {

Bridge* started = nullptr;

constexpr const char* remedy =
    ": install python3-torch, libpython3-dev and pybind11-dev (Debian's names), or name a virtual "
    "environment's PyTorch with ATTNBENCH_TORCH, and build again (./attnbench build)";

/// The bridge's library, beside the one that this function is in.
std::filesystem::path library() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&bridge), &here);
  return std::filesystem::path(here.dli_fname).parent_path() / "libattnbench-python.so";
}

Bridge* start(bool preload) {
  const std::string refusal = ATTNBENCH_PYTHON_REFUSAL;
  if (!refusal.empty()) {
    throw UnsupportedError("this worker was built without Python, since " + refusal + remedy);
  }
  const std::filesystem::path file = library();
  // Global: Python's own extension modules look for its symbols there.
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    throw UnsupportedError("the bridge to Python cannot be loaded (" +
                           std::string(why != nullptr ? why : file.string()) + ")" + remedy);
  }
  using Start = Bridge*(bool);
  auto* const entry = reinterpret_cast<Start*>(dlsym(handle, "attnbench_start_python"));
  if (entry == nullptr) {
    throw UnsupportedError(file.string() + " is of another attnbench: build again");
  }
  return entry(preload);
}

}  // namespace

Bridge& bridge() {
  if (started == nullptr) started = start(false);
  return *started;
}

void preload() {
  try {
    start(true);
  } catch (const std::exception&) {
    return;  // bridge() says it again
  }
}

Bridge* started_bridge() { return started; }

}  // namespace attnbench::python
