// Prepared data as a task looks for them: which rows, where they may be, and what to do where they
// are not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/data/cache.hpp"

namespace attnbench::tasks::data {

/// What a task wants of prepared data.
struct Wanted {
  std::string task;
  Json settings = Json::object();  ///< settings that must be equal; others may be anything
  std::optional<std::string> source_hash = {};  ///< of the source as it is now, where it is at hand
  SplitCounts rows = {};  ///< at least; a longer cache begins with the rows of a shorter one
};

/// Thrown where prepared data are not there, or are others than wanted. what() names the command
/// that prepares them. A cell that needs them is skipped.
class MissingData : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The difference between what a cache holds and what is wanted, for people; empty if there is
/// none.
std::string difference(const Cache& cache, const Wanted& wanted);
/// The difference without the number of rows.
std::string difference(const DataDescription& description, const Wanted& wanted);

/// Throws MissingData, with the command that prepares them, unless `cache` holds what is wanted.
void expect(const Cache& cache, const Wanted& wanted);

/// The command line that prepares what is wanted, such as
/// "attnbench data lra.pathfinder --set side=64 --out FOLDER"; settings at their defaults are left
/// out.
std::string prepare_command(const Wanted& wanted, const std::string& folder);

/// Throws UsageError if a document of any split is longer than `length` tokens and may not be cut.
void expect_length(const Cache& cache, std::uint64_t length, bool truncate);

/// The name that caches have in a folder of data, and the one that they had before.
constexpr const char* cache_suffix = ".prepared";
constexpr const char* former_cache_suffix = ".lra";

/// The name of a cache in a folder of data: of the task and a hash of its settings, so that several
/// of one task have room beside each other.
std::string cache_name(const DataDescription& description);

/// A file of a folder of data, or why it cannot be used.
struct PreparedFile {
  std::filesystem::path file;
  std::shared_ptr<const Cache> cache;  ///< null where there is a fault
  std::string fault;
};

/// Every cache in `folder` and the folders in it, not below these, by path. Empty where there is no
/// such folder.
std::vector<PreparedFile> caches_in(const std::filesystem::path& folder);

/// The folder of prepared data: that of --data, which the program hands on as ATTNBENCH_DATA. Empty
/// where neither is given.
std::filesystem::path data_folder();

/// The first cache of `folder` that holds what is wanted. Throws MissingData: nothing does (or
/// `folder` is empty, not given), with what is there instead and the command that prepares it.
std::shared_ptr<const Cache> find_cache(const std::filesystem::path& folder, const Wanted& wanted);

}  // namespace attnbench::tasks::data
