#include "tasks/verdict.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace attnbench::tasks {

Json found_wrong(const std::string& reason) {
  return {{"verdict", "wrong"}, {"reason", reason}, {"rows", 0}};
}

void mark_wrong(Json& section, const std::string& reason) {
  section["verdict"] = "wrong";
  section["reason"] = reason;
}

bool is_right(const Json& section) { return section.at("verdict") == "ok"; }

Json worse_of(Json a, Json b) {
  const auto use_of = [](const Json& section) {
    return section.value("error", 0.0) / section.value("tolerance", 1.0);
  };
  if (is_right(a) != is_right(b)) return is_right(a) ? b : a;
  return use_of(a) >= use_of(b) ? a : b;
}

}  // namespace attnbench::tasks
