// The exceptions of all code that runs in the worker. harness/worker/status.cpp maps each to a
// status.
#pragma once

#include <stdexcept>
#include <string>

namespace attnbench {

/// The base class: `what()` is one sentence that a user can act on.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Invalid input: an unknown name, a value out of range.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// The mechanism or implementation does not support this problem; `what()` is the reason.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// A plugin cannot be used: no stamp, another build, a name clash, an exception of its own.
class PluginError : public Error {
 public:
  using Error::Error;
};

/// The name of a mechanism, an implementation or a task is there already.
class NameTaken : public PluginError {
 public:
  using PluginError::PluginError;
};

}  // namespace attnbench
