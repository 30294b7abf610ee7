// PythonHost: the process that mechanisms in Python are measured from. It is a second worker, in
// which Python has imported PyTorch, so that its children begin a second sooner than the worker's
// own would. Whatever is not in Python is measured from the worker: PyTorch's autograd engine
// becomes Python's where that is loaded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cell.hpp"
#include "harness/worker/child.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

class PythonHost {
 public:
  /// Forks it, with what this process has loaded.
  PythonHost(const Loaded& loaded, int threads);

  // Each of these throws ChannelError where the process has ended.

  /// As python_plugins.
  std::vector<PythonPlugin> declarations(const std::vector<std::string>& words,
                                         double limit_seconds,
                                         const std::function<void(const std::string&)>& on_step);
  /// Loads as load_all does, in place of what it has.
  void load(const std::vector<std::string>& paths, const std::vector<PythonPlugin>& in_python);
  std::vector<Forecast> plan(const std::vector<Cell>& cells);

  /// For requests that children do: the supervisor's go to it, its answers to the supervisor.
  Child& process() { return process_; }

 private:
  using OnMessage = std::function<void(const Json& message)>;
  Json answer(const Json& request, const OnMessage& on_other = {});

  Child process_;
};

}  // namespace attnbench::worker
