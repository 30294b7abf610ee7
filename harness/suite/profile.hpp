// Profiles: a suite with one of its merge patches applied, every value knowing where it was
// written.
#pragma once

#include <map>
#include <string>

#include "harness/suite/document.hpp"

namespace attnbench::suite {

/// `document` with a profile merged in. Refers to the document, which must outlive it.
class ProfiledSuite {
 public:
  /// `profile` empty = the document as it is. Throws UsageFailure for one that is not there.
  ProfiledSuite(const Document& document, const std::string& profile);

  const nlohmann::ordered_json& value() const { return value_; }
  /// One more entry of `mechanisms`, by its name; false where the suite has that label already.
  bool add_mechanism(const std::string& name);
  /// As Document::place; what came from the profile is placed there.
  std::string place(const std::string& pointer) const;

 private:
  void merge(nlohmann::ordered_json& target, const nlohmann::ordered_json& patch,
             const std::string& pointer, const std::string& source);

  const Document& document_;
  nlohmann::ordered_json value_;
  std::map<std::string, std::string> origin_;  ///< by pointer, where the document has it
};

}  // namespace attnbench::suite
