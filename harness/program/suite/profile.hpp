// What is applied to a suite file: a profile, presets, --set, and defaults of its measure block.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/json_object.hpp"
#include "harness/program/suite/document.hpp"

namespace attnbench::suite {

/// What lists of suites show of one.
struct SuiteHead {
  std::string title;
  std::string source;
  std::string figure;                 ///< of a paper; may be empty
  std::vector<std::string> profiles;  ///< in the file's order
};
/// Throws nlohmann::json::exception for values of other kinds; a suite that was loaded has none.
SuiteHead suite_head(const nlohmann::ordered_json& suite);
/// Whether the value is meant as a suite: an object with mechanisms.
bool is_suite(const nlohmann::ordered_json& value);

/// `document` with a profile merged in. The document must outlive it.
class ProfiledSuite {
 public:
  /// `profile` empty = the document as it is. Throws UsageFailure for one that is not there.
  ProfiledSuite(const Document& document, const std::string& profile);

  const nlohmann::ordered_json& value() const { return value_; }
  /// Adds a mechanism by its name; false where the suite has that label already.
  bool add_mechanism(const std::string& name);
  /// The place as Document::place gives it; values from the profile have their place in the
  /// profile.
  std::string place(const std::string& pointer) const;

 private:
  void merge(nlohmann::ordered_json& target, const nlohmann::ordered_json& patch,
             const std::string& pointer, const std::string& source);

  const Document& document_;
  nlohmann::ordered_json value_;
  std::map<std::string, std::string>
      origin_;  ///< pointer in the document, by pointer in the merged suite
};

/// Published protocols, {NAME: {title, source, set, tasks?}}, from suites/form/presets.json;
/// `tasks` holds what single tasks add to `set` or replace in it, {TASK: {…}}.
const nlohmann::ordered_json& presets();

std::vector<std::string> preset_names();

struct Preset {
  std::string title;
  std::string source;  ///< "none" where it follows no publication
  Values set;          ///< settings by name
};
void from_json(const nlohmann::json& json, Preset& preset);
/// The preset with one of preset_names().
Preset preset_named(const std::string& name);

/// A parsed --set; it has at least one value.
struct SetFlag {
  std::string key;
  nlohmann::ordered_json values;  ///< a list
  std::string place;              ///< "--set length=1..4: ", the start of messages
};

/// Parses a flag such as "length=1024", "length=1024,2048", "length=256..8192" (doubling),
/// "length=1000..5000:1000" (steps), "pattern=causal", "window={"left":3,"right":0}". Throws
/// UsageFailure.
SetFlag parse_set_flag(const std::string& text);

/// The measure block that suites start from: {rounds, further_rounds, relative_interval,
/// min_samples, max_samples, max_seconds, cell_timeout_seconds}
const nlohmann::json& default_measure();

/// How long and how often each cell is measured: the defaults, replaced by the suite's values and
/// those of --set, which are checked against the schema.
nlohmann::json measure_block(const ProfiledSuite& suite, const std::vector<SetFlag>& flags,
                             Problems& problems);

}  // namespace attnbench::suite
