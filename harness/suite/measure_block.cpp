#include "harness/suite/measure_block.hpp"

#include "harness/suite/schema_check.hpp"

namespace attnbench::suite {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

const Json& default_measure() {
  static const Json defaults = {{"rounds", 5},        {"relative_interval", 0.01},
                                {"min_samples", 10},  {"max_samples", 2000},
                                {"max_seconds", 1.0}, {"cell_timeout_seconds", 300.0}};
  return defaults;
}

Json measure_block(const ProfiledSuite& suite, const std::vector<SetFlag>& flags,
                   Problems& problems) {
  Json measure = default_measure();
  const Ordered said = suite.value().value("measure", Ordered::object());
  for (const auto& [key, value] : said.items()) measure[key] = value;
  for (const SetFlag& flag : flags) {
    if (!default_measure().contains(flag.key)) continue;
    if (flag.values.size() != 1) {
      problems.add(flag.place, "is a list; expected one value, as \"" + flag.key + "\" is no axis");
      continue;
    }
    const Ordered probe = {
        {"name", "probe"}, {"mechanisms", {"probe"}}, {"measure", {{flag.key, flag.values[0]}}}};
    check_form(
        probe, [&](const std::string&) { return flag.place; }, problems);
    measure[flag.key] = flag.values[0];
  }
  if (measure["min_samples"].is_number() && measure["max_samples"].is_number() &&
      measure["min_samples"] > measure["max_samples"]) {
    problems.add(suite.place("/measure"), "min_samples is greater than max_samples, " +
                                              measure["max_samples"].dump() +
                                              "; expected it to be no greater");
  }
  return measure;
}

}  // namespace attnbench::suite
