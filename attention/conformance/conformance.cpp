#include "attention/conformance/conformance.hpp"

#include <algorithm>

#include "attention/conformance/subject.hpp"

namespace attnbench::conformance {
namespace {

std::vector<PropertyCheck> all_checks() {
  std::vector<PropertyCheck> all;
  for (auto group : {value_checks, order_checks, size_checks, padding_checks, claim_checks,
                     adversarial_checks, independence_checks, layer_checks}) {
    for (PropertyCheck& check : group()) all.push_back(std::move(check));
  }
  return all;
}

void refuse_unknown(const std::vector<std::string>& only) {
  std::vector<std::string> known;
  for (const Property& property : properties()) known.push_back(property.name);
  for (const std::string& name : only) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError("there is no property " + name + did_you_mean(name, known));
  }
}

Finding found(const PropertyCheck& check, const Subject& subject) {
  Judge judge;
  try {
    check.run(subject, judge);
  } catch (const UnsupportedError& error) {
    // The trial's problem was asked for beforehand: who refuses it now is counted on by every
    // suite.
    judge.fail(std::string("`supports` allows what is then refused: ") + error.what());
  } catch (const std::exception& error) {
    // A c10::Error ends with a backtrace, which is left out.
    const std::string what = error.what();
    judge.fail("it threw: " + what.substr(0, what.find('\n')));
  }
  return judge.finding(check.property.name);
}

}  // namespace

std::vector<Property> properties() {
  std::vector<Property> out;
  for (const PropertyCheck& check : all_checks()) out.push_back(check.property);
  return out;
}

std::vector<Finding> check(const Entry& entry, const reference::Reference& reference,
                           const Implementation& implementation, Pattern pattern, Dtype dtype,
                           const CheckOptions& options) {
  refuse_unknown(options.only);
  const Subject subject(entry, reference, implementation, pattern, dtype, options);
  Judge first;
  const bool possible = subject.prepare(first, "").has_value();
  std::vector<Finding> findings;
  for (const PropertyCheck& each : all_checks()) {
    const auto& only = options.only;
    const bool wanted =
        only.empty() || std::find(only.begin(), only.end(), each.property.name) != only.end();
    if (!wanted) continue;
    findings.push_back(possible ? found(each, subject) : first.finding(each.property.name));
  }
  return findings;
}

bool all_held(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.status == PropertyOutcome::broken;
  });
}

}  // namespace attnbench::conformance
