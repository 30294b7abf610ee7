// What a paper says, as data: a sentence, its place, and a predicate over the cells of a suite. The
// files are suites/claims/PAPER.json; docs/suites.md has their form.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::reports::claims {

/// A number of one cell, of the seeds of one training, or of the cells along a line.
struct ClaimedQuantity {
  /// "time" (that cells are ranked by), "time.PART", "memory.NAME", "metrics.NAME", "accuracy",
  /// "bits_per_byte" or "states_in_use".
  std::string of;
  std::string label;
  std::string segment;  ///< of a training's test, such as "4x"; empty: the metric of the whole test
  /// Settings or options by name. "least" and "greatest" choose among the values of the label's
  /// cells.
  Values settings;
};

/// Bounds of which either may be absent.
struct Bounds {
  std::optional<double> low;
  std::optional<double> high;
};

/// Exactly one of the forms is there.
struct Predicate {
  std::vector<ClaimedQuantity> less;        ///< each is less than the next
  std::vector<ClaimedQuantity> ratio;       ///< the first over the second is within bounds
  std::vector<ClaimedQuantity> difference;  ///< the first minus the second is within bounds
  std::vector<ClaimedQuantity>
      crossing;  ///< the first becomes less than the second, along a setting
  std::optional<ClaimedQuantity> value;  ///< it is within bounds
  std::optional<ClaimedQuantity>
      slope;                   ///< the exponent of growth along a setting is within bounds
  std::vector<Predicate> all;  ///< each of them holds
  std::string along;           ///< the setting; the other forms then hold at each of its values
  std::optional<Bounds> within;
};

struct PublishedValue {
  std::string value;
  std::string source;
};

struct PaperClaim {
  std::string paper;
  std::string name;   ///< unique in its paper
  std::string claim;  ///< the sentence
  std::string place;  ///< "Figure 2, section 5.1"
  std::optional<PublishedValue> published;
  std::string suite;
  std::optional<Predicate> predicate;
  std::string not_run;  ///< why nothing shows it; without a predicate
  /// Settings, or metrics such as parameters, at the paper's size.
  std::map<std::string, double> size;

  std::string id() const { return paper + "." + name; }
};

// to_json writes a part as the files have it; from_json throws SchemaError.
ATTNBENCH_JSON(ClaimedQuantity);
ATTNBENCH_JSON(Bounds);
ATTNBENCH_JSON(Predicate);
ATTNBENCH_JSON(PublishedValue);
ATTNBENCH_JSON(PaperClaim);

/// The claims of all FOLDER/*.json, papers by name and within one as its file has them. Throws
/// UsageFailure: a file that cannot be read or is of another form, a name that is there twice.
std::vector<PaperClaim> read_claims(const std::filesystem::path& folder);

}  // namespace attnbench::reports::claims
