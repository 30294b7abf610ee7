#include "reports/claims/claim.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"

namespace attnbench::reports::claims {
namespace {

namespace fs = std::filesystem;

constexpr const char* bounds_form = "[LOW, HIGH], numbers or null, not both null";
constexpr const char* file_form = "a file of claims: {\"paper\": …, \"claims\": [ … ]}";
constexpr std::size_t largest_file = 4 * mebibyte;

std::optional<double> bound_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  if (!json.is_number()) refuse_value(bounds_form, json);
  return json.get<double>();
}

/// What a predicate must keep beside the types of its members. Throws SchemaError.
void validate(const Predicate& predicate, const Json& json) {
  const std::array<bool, 7> forms{!predicate.less.empty(),       !predicate.ratio.empty(),
                                  !predicate.difference.empty(), !predicate.crossing.empty(),
                                  predicate.slope.has_value(),   !predicate.all.empty(),
                                  predicate.value.has_value()};
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) refuse_value(expected, json);
  };
  expect(std::count(forms.begin(), forms.end(), true) == 1,
         "exactly one of less, ratio, difference, crossing, value, slope and all");
  for (const auto* pair : {&predicate.ratio, &predicate.difference, &predicate.crossing}) {
    expect(pair->empty() || pair->size() == 2, "two quantities");
  }
  expect(predicate.less.empty() || predicate.less.size() > 1, "two quantities or more in less");
  const bool bounded = !predicate.ratio.empty() || !predicate.difference.empty() ||
                       predicate.value || predicate.slope;
  expect(!bounded || predicate.within.has_value(), "bounds, in \"within\"");
  const bool unbounded = !predicate.less.empty() || !predicate.all.empty();
  expect(!unbounded || !predicate.within, "no \"within\" beside less or all");
  const bool on_a_line = !predicate.crossing.empty() || predicate.slope.has_value();
  expect(!on_a_line || !predicate.along.empty(), "the setting of the line, in \"along\"");
  expect(predicate.all.empty() || predicate.along.empty(), "\"along\" in the parts of all");
  expect(!predicate.value || predicate.along.empty(), "no \"along\" beside value");
}

/// What a claim must keep beside the types of its members. Throws SchemaError.
void validate(const PaperClaim& claim, const Json& json) {
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) refuse_value(expected, json);
  };
  expect(!claim.name.empty() && !claim.claim.empty() && !claim.place.empty(),
         "a name, a sentence in \"claim\" and its place");
  expect(claim.predicate.has_value() == claim.not_run.empty(),
         "a predicate, or else the reason in \"not_run\"");
  expect(!claim.predicate || !claim.suite.empty(), "the suite that the predicate is about");
  expect(!claim.published || (!claim.published->value.empty() && !claim.published->source.empty()),
         "a published value with its source");
}

struct ClaimFile {
  std::string paper;
  std::vector<PaperClaim> claims;
};

ATTNBENCH_JSON_READER(ClaimFile) { JSON_AT(paper, claims); }

std::vector<PaperClaim> read_file_of_claims(const fs::path& file) {
  expect_regular_file(file, file_form, largest_file);
  const Json json = parse_json_file(file, file_form);
  ClaimFile read;
  try {
    detail::read_value(json, read);
    std::set<std::string> names;
    for (std::size_t i = 0; i < read.claims.size(); ++i) {
      read.claims[i].paper = read.paper;
      if (names.insert(read.claims[i].name).second) continue;
      throw SchemaError("/claims/" + std::to_string(i) + "/name",
                        "expected a name of its own, found \"" + read.claims[i].name + "\" again");
    }
  } catch (const SchemaError& error) {
    throw UsageFailure(file.string() + ": " + text::quotable(error.what(), 400));
  }
  return read.claims;
}

}  // namespace

void to_json(Json& json, const Bounds& bounds) {
  const auto bound = [](const std::optional<double>& one) { return one ? Json(*one) : Json(); };
  json = Json::array({bound(bounds.low), bound(bounds.high)});
}

void from_json(const Json& json, Bounds& bounds) {
  if (!json.is_array() || json.size() != 2) refuse_value(bounds_form, json);
  bounds = {bound_of(json[0]), bound_of(json[1])};
  const bool crossed = bounds.low && bounds.high && *bounds.low > *bounds.high;
  if ((!bounds.low && !bounds.high) || crossed) refuse_value(bounds_form, json);
}

ATTNBENCH_JSON_CODEC(ClaimedQuantity) {
  JSON_AT(of, label);
  JSON_MAYBE(segment);
  json.rest(value.settings);
}

static void predicate_fields(auto& json, OrConst<Predicate> auto& value) {
  JSON_MAYBE(less, ratio, difference, crossing);
  json.maybe("value", value.value);
  JSON_MAYBE(slope, all, along, within);
}

void to_json(Json& json, const Predicate& value) {
  json = Json::object();
  JsonWriter writer(json);
  predicate_fields(writer, value);
}

void from_json(const Json& json, Predicate& value) {
  value = {};
  JsonReader reader(json);
  predicate_fields(reader, value);
  reader.finish();
  validate(value, json);
}

ATTNBENCH_JSON_CODEC(PublishedValue) { JSON_AT(value, source); }

static void claim_fields(auto& json, OrConst<PaperClaim> auto& value) {
  JSON_AT(name, claim, place);
  JSON_MAYBE(published, suite, predicate, not_run, size);
}

void to_json(Json& json, const PaperClaim& value) {
  json = {{"paper", value.paper}};
  JsonWriter writer(json);
  claim_fields(writer, value);
}

void from_json(const Json& json, PaperClaim& value) {
  value = {};
  JsonReader reader(json);
  claim_fields(reader, value);
  reader.finish();
  validate(value, json);
}

std::vector<PaperClaim> read_claims(const fs::path& folder) {
  std::set<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") files.insert(entry.path());
  }
  std::vector<PaperClaim> all;
  for (const fs::path& file : files) {
    for (PaperClaim& claim : read_file_of_claims(file)) all.push_back(std::move(claim));
  }
  return all;
}

}  // namespace attnbench::reports::claims
