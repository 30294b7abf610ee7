// The interpreter of this process: its start, its lock, its exceptions and the glue in Python.
#pragma once

// Python's header wants to be the first.
#include "attention/torch/python.hpp"
//
#include <string>

#include "attention/torch/torch.hpp"
#include "core/problem.hpp"

namespace attnbench::python {

namespace py = pybind11;

/// The module glue.py. The caller holds the lock.
py::object glue(const char* function);

/// Holds Python's lock, and makes Python's exceptions those of Instance (bridge.hpp): see
/// `guarded`.
[[noreturn]] void rethrow(const py::error_already_set& error);

/// Runs `work` with Python's lock.
template <class Work>
auto guarded(const Work& work) {
  const py::gil_scoped_acquire lock;
  try {
    return work();
  } catch (const py::error_already_set& error) {
    rethrow(error);
  }
}

/// What a call must leave as it was: whatever in PyTorch decides how others are computed.
class Surroundings {
 public:
  /// Records them as they are now, with the state of the CPU's default generator where `generator`
  /// says so: that costs too much for a call. Those of CUDA are not kept, since asking for them
  /// makes a context on each card; whoever draws seeds all of them (at::manual_seed).
  explicit Surroundings(bool generator = false);
  /// What has changed since, in words; empty where nothing has.
  std::string changes() const;
  /// Puts back all of these, the working folder and the handlers of signals.
  void restore() const;

 private:
  int threads_;
  at::ScalarType dtype_;
  bool gradients_;
  bool deterministic_, warns_only_, cudnn_deterministic_, cudnn_benchmark_;
  at::Float32MatmulPrecision precision_;
  c10::impl::LocalDispatchKeySet modes_;  ///< autocast, inference and others of this thread
  at::Tensor generator_;                  ///< undefined where it is not kept
};

/// Starts Python and imports PyTorch; the lock is this thread's afterwards, as children that are
/// forked then expect it. Throws UnsupportedError, with what to do.
void preload_interpreter();
/// Starts Python, or goes on with the one that the parent process has preloaded; the lock is free
/// afterwards. Throws as `preload_interpreter` does.
void start_interpreter();

/// Ends a copy of this process that a call has forked and returned from: its answer is the
/// original's to give.
void end_if_forked();

}  // namespace attnbench::python
