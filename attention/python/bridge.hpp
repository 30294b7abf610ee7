// The bridge to Python: an interpreter in this process, and what it makes of a mechanism.
//
// Its implementation is a library of its own (attention/python/bridge/), loaded at the first call
// of bridge(): neither the worker nor a plan without mechanisms in Python has libpython in it. Only
// children call bridge(): a process that has used Python does not fork. One that has preloaded it
// does, and its children begin a second sooner.
//
// A word names a mechanism: python:FILE.py:NAME or python:PACKAGE.MODULE:NAME.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench::python {

enum class Which { mechanism, reference };

/// An object, function or class in Python, made for a problem and options. Calls throw
/// UnsupportedError for NotImplementedError and missing packages, std::bad_alloc for MemoryError,
/// else std::runtime_error, whose first line is "FILE:LINE: the exception"; the rest is the
/// traceback, which is written to standard error as well.
class Instance {
 public:
  virtual ~Instance() = default;
  /// Parameters, or else buffers, by names that are valid for a mechanism's. They are the module's
  /// own: what is written to them is seen in Python.
  virtual std::map<std::string, at::Tensor> tensors(bool parameters) const = 0;
  /// The output [B, H, T, Dv] for roles and key mask.
  virtual at::Tensor call(const Inputs& inputs) = 0;
  /// The output from `state`, whose tensors are updated in place. The position is the caller's.
  virtual at::Tensor step(const Inputs& inputs, State& state) = 0;
  virtual std::map<std::string, at::Tensor> empty_state(std::int64_t batch, std::int64_t capacity,
                                                        const at::TensorOptions& tensor) = 0;
  /// Draws parameters and buffers of a class from the seed alone; an object keeps its own.
  virtual void draw(std::uint64_t seed) = 0;
};

/// Observations in this process.
struct Observed {
  std::optional<double> call_seconds;     ///< of an empty Python function, called in the same way
  std::optional<double> compile_seconds;  ///< what the first call took beyond later ones
  std::vector<std::string> notes;
  std::vector<std::string> files;  ///< all that were imported beside libraries
};

class Bridge {
 public:
  virtual ~Bridge() = default;
  /// A Description as JSON. Throws UnsupportedError where it cannot be used here, else
  /// std::runtime_error as Instance's functions do.
  virtual std::string describe(const std::string& word) = 0;
  virtual std::unique_ptr<Instance> make(const std::string& word, Which which,
                                         const Options& options, const Problem& problem) = 0;
  /// The cost by the names of Cost's members.
  virtual std::map<std::string, double> cost(const std::string& word, const Problem& problem) = 0;
  /// Measures the empty call on the mechanism that was called last.
  virtual Observed observed() = 0;
};

/// Starts Python at the first call. Throws UnsupportedError, with the reason and what to do, where
/// this worker was built without it or the Python that is there is not the one it was built with.
Bridge& bridge();
/// Starts Python and imports PyTorch, for the children of this process that call bridge(). Where
/// that fails, bridge() says why.
void preload();
/// The bridge where Python was started in this process; null elsewhere.
Bridge* started_bridge();

}  // namespace attnbench::python
