// Status: the one place where an exception, or the death of a child, becomes a record's status.
#pragma once

#include <exception>
#include <string>

#include "core/status.hpp"

namespace attnbench::worker {

struct Outcome {
  Status status = Status::ok;
  std::string reason;    ///< one sentence; empty where all is well
  std::string detail;    ///< a longer message, or the end of the log
  bool refused = false;  ///< the request made no sense (UsageError)
};

/// The outcome of an exception: UnsupportedError → unsupported; MissingData → skipped; a refused
/// allocation → out_of_memory; anything else → error.
Outcome outcome_of(std::exception_ptr thrown);

/// The outcome of a child that ended without a message. `out_of_memory`: the kernel's OOM killer
/// ended processes while it ran. `log_tail` becomes the detail.
Outcome outcome_of_death(int wait_status, bool out_of_memory, const std::string& log_tail);

}  // namespace attnbench::worker
