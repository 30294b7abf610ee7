#include "harness/commands/known_suites.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "harness/suite/suite.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

/// Told from any other folder of that name by its schema.
bool is_suites_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "form" / "suite.schema.json", ignored);
}

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

}  // namespace

std::vector<KnownSuite> known_suites() {
  std::vector<KnownSuite> suites;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(suites_folder(), ignored)) {
    if (entry.path().extension() != ".json") continue;
    try {
      const suite::Document document = suite::load(entry.path());
      KnownSuite known{
          entry.path(), document.value.value("title", ""), document.value.value("source", ""), {}};
      if (document.value.contains("profiles")) {
        for (const auto& [name, patch] : document.value["profiles"].items()) {
          known.profiles.push_back(name);
        }
      }
      suites.push_back(known);
    } catch (const UsageFailure&) {
      continue;
    }
  }
  std::sort(suites.begin(), suites.end(),
            [](const KnownSuite& a, const KnownSuite& b) { return a.file < b.file; });
  return suites;
}

fs::path find_suite(const std::string& name) {
  const fs::path file = name;
  std::error_code ignored;
  if (fs::exists(file, ignored) || file.is_absolute()) return file;
  const fs::path folder = file.parent_path();
  const fs::path ours = suites_folder();
  if ((!folder.empty() && folder != "suites") || ours.empty()) return file;
  const fs::path found = ours / file.filename();
  return fs::exists(found, ignored) ? found : file;
}

}  // namespace attnbench::commands
