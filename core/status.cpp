#include "core/status.hpp"

#include <algorithm>

#include "core/json_object.hpp"

namespace attnbench {

const std::vector<std::string>& status_words() {
  static const std::vector<std::string> words{"ok",          "wrong",   "disturbed",
                                              "unsupported", "skipped", "out_of_memory",
                                              "timeout",     "crashed", "error"};
  return words;
}

const char* to_string(Status status) {
  return status_words()[static_cast<std::size_t>(status)].c_str();
}

std::optional<Status> status_from(const std::string& word) {
  const auto& words = status_words();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Status>(found - words.begin());
}

void to_json(Json& json, Status status) { json = to_string(status); }

void from_json(const Json& json, Status& status) {
  const auto found = json.is_string() ? status_from(json.get<std::string>()) : std::nullopt;
  if (!found) refuse_value("a status", json);
  status = *found;
}

Json schema_of(const Status*) {
  return {{"type", "string"},
          {"enum", status_words()},
          {"description",
           "disturbed: other processes took the CPU from most rounds; the times are kept, but not "
           "ranked"}};
}

}  // namespace attnbench
