#include "core/manifest.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/output_file.hpp"
#include "core/text/printable.hpp"

namespace attnbench {
namespace {

namespace fs = std::filesystem;

constexpr int manifest_schema = 1;
constexpr std::size_t max_named = 8;

/// A name that leads out of the folder is not one that we wrote.
bool stays_inside(const std::string& name) {
  const fs::path path = name;
  return !name.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

std::string hash_or_nothing(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  try {
    return hash_file(file);
  } catch (const std::exception&) {
    return {};
  }
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(file, ignored));
}

/// Names of all files below `folder`.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      names.push_back(entry.path().lexically_relative(folder).generic_string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Manifest::Manifest(fs::path folder, std::string writer)
    : folder_(std::move(folder)), writer_(std::move(writer)) {
  if (!is_there(folder_ / file_name)) return;
  try {
    const Json document = parse_json_file(folder_ / file_name, "the list of attnbench's files");
    for (const auto& [whose, files] : document.at("files").items()) {
      for (const auto& [name, hashes] : files.items()) {
        if (!stays_inside(name)) continue;
        for (const Json& hash : hashes) hashes_[whose][name].insert(hash.get<std::string>());
      }
    }
  } catch (const std::exception&) {
    hashes_.clear();  // an unreadable manifest lists no files
  }
}

bool Manifest::is_ours(const std::string& name) const {
  const std::string hash = hash_or_nothing(folder_ / name);
  return std::any_of(hashes_.begin(), hashes_.end(), [&](const auto& one) {
    const auto found = one.second.find(name);
    return found != one.second.end() && found->second.count(hash) != 0;
  });
}

std::vector<std::string> Manifest::foreign(const std::vector<std::string>& names) const {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (is_there(folder_ / name) && !is_ours(name)) found.push_back(name);
  }
  return found;
}

void Manifest::expect_ours(const std::vector<std::string>& names) const {
  const std::vector<std::string> found = foreign(names);
  if (found.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < std::min(found.size(), max_named); ++i) {
    list += (i == 0 ? "" : ", ") + text::quotable(found[i], 100);
  }
  if (found.size() > max_named) list += ", … (" + std::to_string(found.size()) + " in all)";
  throw UsageFailure(text::quotable(folder_.string()) + ": would replace " + list +
                     ", which attnbench did not write or somebody changed since; choose another "
                     "folder with --out, move them away, or pass --force to replace them");
}

void Manifest::announce(const std::string& name, const std::string& hash) {
  hashes_[writer_][name].insert(hash);
  announced_[name] = hash;
}

void Manifest::confirm() {
  for (const auto& [name, hash] : announced_) hashes_[writer_][name] = {hash};
  announced_.clear();
}

void Manifest::settle() {
  for (const auto& [name, hashes] : hashes_[writer_]) {
    std::error_code ignored;
    if (announced_.count(name) == 0 && is_ours(name)) fs::remove(folder_ / name, ignored);
  }
  hashes_[writer_].clear();
  confirm();
}

void Manifest::save() const {
  Json files = Json::object();
  for (const auto& [whose, names] : hashes_) files[whose] = names;
  const Json document = {
      {"schema", manifest_schema},
      {"what", "files that attnbench wrote here, with hashes: it replaces no others"},
      {"files", files}};
  write_atomically(folder_ / file_name,
                   document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void claim(const fs::path& folder, const std::string& writer) {
  Manifest manifest(folder, writer);
  for (const std::string& name : files_below(folder)) {
    manifest.announce(name, hash_file(folder / name));
  }
  manifest.settle();
  manifest.save();
}

void publish(const fs::path& staging, const fs::path& folder, Manifest& manifest,
             const std::string& last) {
  try {
    std::vector<std::string> names = files_below(staging);
    std::stable_partition(names.begin(), names.end(),
                          [&](const std::string& name) { return name != last; });
    for (const std::string& name : names) manifest.announce(name, hash_file(staging / name));
    // Saved first, so that an interrupted run leaves no file that the manifest does not list.
    manifest.save();
    for (const std::string& name : names) {
      fs::create_directories((folder / name).parent_path());
      move_over(staging / name, folder / name);
    }
    manifest.settle();
    manifest.save();
  } catch (const fs::filesystem_error& error) {
    throw EnvironmentFailure("cannot write to " + text::quotable(folder.string()) + ": " +
                             error.code().message() +
                             "; free space there or choose another folder with --out");
  }
}

}  // namespace attnbench
