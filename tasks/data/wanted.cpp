#include "tasks/data/wanted.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/hash.hpp"
#include "core/text/printable.hpp"
#include "tasks/data/data_task.hpp"

namespace attnbench::tasks::data {
namespace {

std::string as_option(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::uint32_t count_of(const SplitCounts& rows, Split split) {
  return split == Split::train        ? rows.train
         : split == Split::validation ? rows.validation
                                      : rows.test;
}

}  // namespace

std::string difference(const DataDescription& description, const Wanted& wanted) {
  if (description.task != wanted.task) {
    return "holds data of " + description.task + ", not of " + wanted.task;
  }
  const DataTask* const task = find_data_task(wanted.task);
  for (const auto& [name, value] : wanted.settings.items()) {
    const auto found = description.settings.find(name);
    if (found == description.settings.end()) {
      // What was prepared before there was the setting has its default.
      if (task != nullptr && task->is_default(name, value)) continue;
      return "says nothing of " + name;
    }
    if (*found != value) {
      return "was prepared with " + name + " " + as_option(*found) + ", not " + as_option(value);
    }
  }
  if (wanted.source_hash && *wanted.source_hash != description.source_hash) {
    return "was prepared from other content: " + description.source + " had the hash " +
           description.source_hash + ", now it is " + *wanted.source_hash;
  }
  return "";
}

std::string difference(const Cache& cache, const Wanted& wanted) {
  const std::string fault = difference(cache.description(), wanted);
  if (!fault.empty()) return fault;
  for (const Split split : every_split) {
    const std::uint64_t rows = cache.facts(split).rows;
    const std::uint64_t least = count_of(wanted.rows, split);
    if (rows < least) {
      return "holds " + std::to_string(rows) + " rows of " + to_string(split) + ", not " +
             std::to_string(least);
    }
  }
  return "";
}

void expect(const Cache& cache, const Wanted& wanted) {
  const std::string fault = difference(cache, wanted);
  if (fault.empty()) return;
  throw MissingData(cache.file().string() + ": " + text::quotable(fault, 400) +
                    "; prepare what is wanted with `" + prepare_command(wanted, "DIR") + "`");
}

std::string prepare_command(const Wanted& wanted, const std::string& folder) {
  std::string command = "attnbench data " + wanted.task;
  const DataTask* task = find_data_task(wanted.task);
  Json settings = wanted.settings;
  const std::string source = settings.value("source", "");
  if (task != nullptr && source == "generated") {
    for (const Split split : every_split) {
      const std::uint32_t least = count_of(wanted.rows, split);
      if (least > 0) settings[std::string(to_string(split)) + "_examples"] = least;
    }
  }
  for (const auto& [name, value] : settings.items()) {
    if (task == nullptr || !task->is_default(name, value)) {
      command += " --set " + name + "=" + as_option(value);
    }
  }
  const std::string from = task == nullptr ? "" : task->wants_from(source);
  return command + (from.empty() ? "" : " --from " + from) + " --out " + folder;
}

void expect_length(const Cache& cache, std::uint64_t length, bool truncate) {
  if (truncate) return;
  for (const Split split : every_split) {
    const std::uint64_t longest = cache.facts(split).longest;
    if (longest > length) {
      throw UsageError(cache.file().string() + ": a row of " + to_string(split) + " has " +
                       std::to_string(longest) + " tokens, length is " + std::to_string(length) +
                       ": set length to at least that, or truncate to true");
    }
  }
}

std::string cache_name(const DataDescription& description) {
  return description.task + "-" + hash_text(description.settings.dump()).substr(0, 8) +
         cache_suffix;
}

std::vector<PreparedFile> caches_in(const std::filesystem::path& folder) {
  std::vector<PreparedFile> found;
  std::error_code fault;
  using Options = std::filesystem::directory_options;
  // Two levels alone are looked at, so that links cannot go round.
  for (std::filesystem::recursive_directory_iterator
           at(folder, Options::skip_permission_denied | Options::follow_directory_symlink, fault),
       end;
       !fault && at != end; at.increment(fault)) {
    // Raw data may lie below, of 100,000 files.
    if (at.depth() >= 1) at.disable_recursion_pending();
    const std::filesystem::path suffix = at->path().extension();
    const bool named = suffix == cache_suffix || suffix == former_cache_suffix;
    if (named && at->is_regular_file()) {
      found.push_back({at->path(), nullptr, ""});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const PreparedFile& a, const PreparedFile& b) { return a.file < b.file; });
  for (PreparedFile& file : found) {
    try {
      file.cache = std::make_shared<Cache>(file.file);
    } catch (const UsageError& error) {
      file.fault = error.what();
    }
  }
  return found;
}

std::filesystem::path data_folder() {
  const char* folder = std::getenv("ATTNBENCH_DATA");
  return folder == nullptr ? "" : folder;
}

std::shared_ptr<const Cache> find_cache(const std::filesystem::path& folder, const Wanted& wanted) {
  if (folder.empty()) {
    throw MissingData("no folder of prepared data is given: prepare them with `" +
                      prepare_command(wanted, "DIR") +
                      "` and give --data DIR or set ATTNBENCH_DATA");
  }
  std::string instead;
  for (const PreparedFile& file : caches_in(folder)) {
    const std::string fault = file.cache ? difference(*file.cache, wanted) : file.fault;
    if (fault.empty()) return file.cache;
    // Data of other tasks are not mentioned.
    if (!file.cache || file.cache->description().task == wanted.task) {
      instead += "; " + (file.cache ? file.file.string() + " " : "") + fault;
    }
  }
  throw MissingData(folder.string() + ": no prepared data of " + wanted.task + " as wanted" +
                    text::quotable(instead, 600) + "; prepare them with `" +
                    prepare_command(wanted, folder.string()) + "`");
}

}  // namespace attnbench::tasks::data
