#include "core/result/document.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/failure.hpp"
#include "core/result/result_file.hpp"
#include "core/schema/result_check.hpp"
#include "core/json_file.hpp"
#include "core/result/rows.hpp"

namespace attnbench::result {
namespace {

constexpr int schema = 1;

Json object_or_empty(const Json& part) { return part.is_object() ? part : Json::object(); }

/// JSON has no NaN, and a library would write null for it: better no file than one that lies.
void refuse_non_finite(const Json& value, const std::string& pointer) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw std::logic_error("result.json: " + pointer + " is not a finite number");
  }
  if (value.is_object()) {
    for (const auto& [key, part] : value.items()) refuse_non_finite(part, pointer + "/" + key);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      refuse_non_finite(value[i], pointer + "/" + std::to_string(i));
    }
  }
}

}  // namespace

Json assemble(const Parts& parts) {
  const Json run = object_or_empty(parts.run);
  const Json machine = object_or_empty(parts.machine);
  Json ours = {{"schema", schema},
               {"suite", object_or_empty(parts.suite)},
               {"run", run},
               {"machine", machine},
               {"ceilings", object_or_empty(parts.ceilings)},
               {"provenance", object_or_empty(parts.provenance)},
               {"cells", parts.cells}};
  return {{"context", benchmark_context(machine, run, parts.executable)},
          {"benchmarks", benchmark_rows(parts.cells, run.value("threads", 1))},
          {"attnbench", std::move(ours)}};
}

void write_result(const std::filesystem::path& file, const Json& result) {
  refuse_non_finite(result, "");
  // Text that came from outside (a log's tail) may not be UTF-8; it must not cost the result.
  write_atomically(file, result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json read_result(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(file_or_folder, ignored);
  const std::filesystem::path file = folder ? file_or_folder / "result.json" : file_or_folder;
  const Json result =
      parse_json_file(file, "a result.json that attnbench wrote, or a run's folder");
  check_form(result, file.string());
  return result;
}

}  // namespace attnbench::result
