#include "harness/suite/suite.hpp"

#include <algorithm>
#include <cctype>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "harness/suite/schema_check.hpp"
#include "harness/suite/problems.hpp"

namespace attnbench::suite {

using Ordered = nlohmann::ordered_json;

constexpr std::size_t most_published_bytes = 4 * result::mebibyte;  // as reports read it

Document load(const std::filesystem::path& file) {
  Document document = read_document(file);
  Problems problems;
  check_form(
      document.value, [&](const std::string& at) { return document.place(at); }, problems);
  if (document.value.is_object() && document.value.contains("published") &&
      document.value["published"].is_string()) {
    const std::string name = document.value["published"];
    try {
      result::expect_regular_file(file.parent_path() / name,
                                  "the name of a CSV file beside the suite", most_published_bytes);
    } catch (const UsageFailure& failure) {
      problems.add(document.place("/published"), failure.what());
    }
  }
  problems.throw_if_any();
  return document;
}

Document from_command_line(const std::vector<std::string>& mechanisms) {
  std::string name = "adhoc";
  for (const std::string& mechanism : mechanisms) {
    if (name.size() + mechanism.size() > 60) break;
    name += "-" + mechanism;
  }
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.'; },
      '-');
  Document document;
  document.name = "command line";
  document.value = {
      {"name", name},
      {"task", "kernel"},
      {"mechanisms", mechanisms},
      {"profiles", {{"quick", {{"measure", {{"rounds", 3}, {"max_seconds", 0.3}}}}}}}};
  document.hash = result::hash_text(document.value.dump());
  return document;
}

Document pair_from_command_line(const std::string& base, const std::string& changed,
                                const std::string& control) {
  Document document = from_command_line({base, changed});
  const std::string name = document.value["name"];
  document.value["name"] = "ab" + name.substr(name.find('-'));
  document.value["mechanisms"] = {
      {base, {{"use", base}}}, {changed, {{"use", changed}}}, {control, {{"use", base}}}};
  // An interval that leaves out the extremes at some sizes needs as many rounds (statistics.hpp).
  document.value["measure"] = {{"rounds", 12}, {"max_seconds", 0.3}};
  document.value.erase("profiles");
  document.hash = result::hash_text(document.value.dump());
  return document;
}

}  // namespace attnbench::suite
