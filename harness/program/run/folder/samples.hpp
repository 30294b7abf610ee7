// Samples of a result's rounds. They are most of a run's bytes, so that they stay in its journal.
#pragma once

#include <filesystem>

#include "core/result/document.hpp"

namespace attnbench::run {

/// The result without what has a number for each sample, naming `journal` in their place.
result::Result without_samples(result::Result result, const std::filesystem::path& journal);

/// The result of a file, or of the folder of a run, with its samples, read from the file beside it
/// that it names. Throws UsageFailure where they are not there.
result::Result with_samples(const std::filesystem::path& file_or_folder);

/// The same where they are there, else the result as it is, which names no file then: for results
/// that are made of others, which keep the samples themselves.
result::Result with_samples_there(const std::filesystem::path& file_or_folder);

}  // namespace attnbench::run
