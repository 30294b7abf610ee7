#include "core/process/fingerprint.hpp"
#include "core/output_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/process/python_word.hpp"
#include "core/protocol.hpp"
#include "core/result/document.hpp"

namespace attnbench::process {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t max_files = 256;

/// Worker and library where the build puts them; an installation has the library beside or in lib.
std::vector<fs::path> programs(const fs::path& worker) {
  const fs::path folder = worker.parent_path();
  std::vector<fs::path> found{worker};
  const char* library = "libattnbench_attention.so";
  for (const fs::path& place : {folder / library, folder.parent_path() / "lib" / library}) {
    if (fs::exists(place)) found.push_back(place);
  }
  return found;
}

/// Identifies a file's content without reading it.
std::string appearance(const fs::path& file) {
  struct stat seen {};
  if (stat(file.c_str(), &seen) != 0 || !S_ISREG(seen.st_mode)) return {};
  std::ostringstream text;
  text << seen.st_dev << ' ' << seen.st_ino << ' ' << seen.st_size << ' ' << seen.st_mtim.tv_sec
       << '.' << seen.st_mtim.tv_nsec;
  return text.str();
}

/// The hashes of files by path, each with the appearance that the file had.
class Memo {
 public:
  Memo() : file_(cache_file("hashes.json")) {
    known_ = recalled(file_).value_or(Json::object());
    if (!known_.is_object()) known_ = Json::object();
  }
  ~Memo() {
    if (changed_) remember(file_, known_);
  }
  std::string hash(const fs::path& path) {
    const std::string name = fs::absolute(path).string();
    const std::string now = appearance(path);
    if (now.empty()) return "missing";
    if (const auto known = known_.find(name);
        known != known_.end() && known->is_object() && known->value("appearance", "") == now) {
      return known->value("hash", "");
    }
    const std::string hash = hash_file(path);
    known_[name] = {{"appearance", now}, {"hash", hash}};
    changed_ = true;
    return hash;
  }

 private:
  fs::path file_;
  Json known_;
  bool changed_ = false;
};

/// What follows the first line of a cache file, which is its hash; nothing of another file.
std::optional<std::string> remembered_text(const fs::path& file) {
  const std::string content = read_file(file, "a cache file");
  const std::size_t end = content.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string text = content.substr(end + 1);
  if (content.compare(0, end, hash_text(text)) != 0) return std::nullopt;
  return text;
}

bool is_ours(const fs::path& file) {
  try {
    return remembered_text(file).has_value();
  } catch (const std::exception&) {
    return false;
  }
}

/// Deletes the older half of very many cache files; others in the folder are somebody's.
void drop_oldest(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool ordinary = entry.is_regular_file() && !entry.is_symlink();
    if (ordinary) files.emplace_back(entry.last_write_time(), entry.path());
  }
  if (files.size() <= max_files) return;
  std::erase_if(files, [](const auto& file) { return !is_ours(file.second); });
  if (files.size() <= max_files) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i < files.size() / 2; ++i) fs::remove(files[i].second);
}

/// The files that decide what a plugin declares: the plugin itself, or all that a mechanism in
/// Python depends on, package metadata included.
std::vector<fs::path> files_of(const fs::path& plugin) {
  if (is_python(plugin.string())) return files_of_python(plugin.string());
  return {plugin};
}

}  // namespace

ATTNBENCH_JSON_CODEC(Build) { JSON_MAYBE(plugins, worker); }

std::filesystem::path Build::program() const {
  return worker.empty() ? program_folder() / "attnbench-worker" : fs::path(worker);
}

std::filesystem::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

std::string binary_fingerprint(const Build& build) {
  Memo memo;
  std::string all;
  for (const fs::path& program : programs(build.program())) all += memo.hash(program) + "\n";
  for (const std::string& plugin : build.plugins) {
    for (const fs::path& file : files_of(PluginName(plugin).path)) all += memo.hash(file) + "\n";
  }
  return hash_text(all);
}

std::string joint_fingerprint(const std::vector<Build>& builds) {
  std::string all;
  for (const Build& build : builds) all += binary_fingerprint(build) + "\n";
  return hash_text(all);
}

std::string commit_in(const fs::path& folder) {
  std::string commit;
  std::ifstream built(folder / "attnbench.commit");
  std::getline(built, commit);
  return commit;
}

result::Provenance provenance(const std::string& binary) {
  result::Provenance found;
  found.compiler = ATTNBENCH_BUILD_COMPILER;
  found.flags = ATTNBENCH_BUILD_FLAGS;
  found.binary = binary;
  found.commit = commit_in(program_folder());
  if (found.commit.empty()) return found;
  found.dirty = found.commit.ends_with('+');
  if (*found.dirty) found.commit.pop_back();
  return found;
}

fs::path cache_file(const std::string& name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "attnbench" / name;
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache" / "attnbench" / name;
  return {};
}

void remember(const fs::path& file, const Json& value) {
  if (file.empty()) return;
  try {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    fs::create_directories(file.parent_path());
    drop_oldest(file.parent_path());
    write_atomically(file, hash_text(text) + "\n" + text);
  } catch (const std::exception&) {
    // Without a cache the next answer only takes longer.
  }
}

std::optional<Json> recalled(const fs::path& file) {
  std::error_code ignored;
  if (file.empty() || !fs::exists(fs::symlink_status(file, ignored))) return std::nullopt;
  try {
    const auto text = remembered_text(file);
    if (text) return parse_json(*text, file.string(), "a cache file");
  } catch (const std::exception&) {
    // Damaged in another way.
  }
  fs::remove(file, ignored);
  return std::nullopt;
}

}  // namespace attnbench::process
