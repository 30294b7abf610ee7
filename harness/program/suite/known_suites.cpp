#include "harness/program/suite/known_suites.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/shapes.hpp"
#include "harness/program/suite/suite.hpp"

namespace attnbench::suite {
namespace {

namespace fs = std::filesystem;

/// Recognised by its schema.
bool is_suites_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "form" / "suite.schema.json", ignored);
}

}  // namespace

fs::path suites_folder() {
  if (is_suites_folder("suites")) return "suites";
  std::error_code ignored;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    for (const fs::path& candidate :
         {folder / "suites", folder / "share" / "attnbench" / "suites"}) {
      if (is_suites_folder(candidate)) return candidate;
    }
  }
  return {};
}

std::vector<KnownSuite> known_suites() {
  std::vector<KnownSuite> suites;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(suites_folder(), ignored)) {
    if (entry.path().extension() != ".json" || holds_shapes(entry.path())) continue;
    try {
      const Document document = load(entry.path());
      const SuiteHead head = suite_head(document.value);
      suites.push_back({entry.path(), head.title, head.source, head.profiles});
    } catch (const UsageFailure&) {
      continue;
    }
  }
  std::sort(suites.begin(), suites.end(),
            [](const KnownSuite& a, const KnownSuite& b) { return a.file < b.file; });
  return suites;
}

fs::path own_suite(const fs::path& name) {
  const fs::path folder = name.parent_path();
  const fs::path ours = suites_folder();
  if ((!folder.empty() && folder != "suites") || ours.empty() || holds_shapes(name)) return {};
  std::error_code ignored;
  const fs::path found = ours / name.filename();
  return fs::is_regular_file(found, ignored) ? found : fs::path();
}

fs::path find_suite(const std::string& name) {
  const fs::path file = name;
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored) || file.is_absolute()) return file;
  for (const std::string& candidate : {name, name + ".json"}) {
    const fs::path found = own_suite(candidate);
    if (!found.empty()) return found;
  }
  return file;
}

}  // namespace attnbench::suite
