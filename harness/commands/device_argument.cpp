#include "harness/commands/device_argument.hpp"

#include "core/failure.hpp"
#include "harness/measure/device.hpp"
#include "harness/suite/overrides.hpp"

namespace attnbench::commands {

void require_device(const std::string& word) {
  const std::string complaint = suite::device_complaint(word);
  if (!complaint.empty()) throw UsageFailure(complaint);
  measure::usable_device(word);
}

}  // namespace attnbench::commands
