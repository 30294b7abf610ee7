// Statuses: the one place where an exception or a death becomes what the record says.
#pragma once

#include <exception>
#include <string>

#include "core/result/record.hpp"

namespace attnbench::worker {

struct Outcome {
  result::Status status = result::Status::ok;
  std::string reason;    ///< one sentence; empty where all is well
  std::string detail;    ///< what else there is to read: a longer message, the end of the log
  bool refused = false;  ///< it was asked for what makes no sense (UsageError)
};

/// UnsupportedError → unsupported; a refused allocation → out_of_memory; anything else → error.
Outcome outcome_of(std::exception_ptr thrown);

/// How a child ended without having said so. `out_of_memory`: the kernel ended processes for want
/// of memory while it ran. `log_tail` becomes the detail.
Outcome outcome_of_death(int wait_status, bool out_of_memory, const std::string& log_tail);

}  // namespace attnbench::worker
