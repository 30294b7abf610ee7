// The exceptions of everything that runs inside the worker. The worker maps each to a status in one
// place (harness/worker/status.cpp).
#pragma once

#include <stdexcept>
#include <string>

namespace attnbench {

/// Base of all of them: `what()` is one sentence a user can act on.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something outside said a thing that makes no sense: an unknown name, a value out of range.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// The mechanism or implementation is not defined for this problem; the reason is `what()`.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// A plugin could not be taken: no stamp, another build, a name clash, an exception of its own.
class PluginError : public Error {
 public:
  using Error::Error;
};

}  // namespace attnbench
