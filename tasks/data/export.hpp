// Data written for other programs: in the form that they were published in, so that what is
// exported can be prepared again with the same content hash, and as arrays of NumPy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tasks/data/cache.hpp"

namespace attnbench::tasks::data {

struct ExportedFile {
  std::string file;  ///< below the folder
  std::uint64_t rows = 0;
};

// All write into the existing `folder`, in the order of the splits. A split without rows has no
// file of text, and empty arrays. Throw EnvironmentFailure where a file cannot be written,
// UsageError where the data are damaged.

/// basic_train.tsv, basic_val.tsv and basic_test.tsv: "Source", a tab, "Target", then an expression
/// and its value a line. Without the round brackets of the original, which its readers drop.
std::vector<ExportedFile> write_listops_tables(const Cache& cache,
                                               const std::filesystem::path& folder);

/// new_aan_pairs.{train,eval,test}.tsv: label, two ids, two texts. The texts are as long as they
/// were prepared (text_bytes); the ids, which are not, are numbers of rows.
std::vector<ExportedFile> write_retrieval_tables(const Cache& cache,
                                                 const std::filesystem::path& folder);

/// SPLIT/CLASS/NUMBER.txt of a text each, by the row's number in its split.
std::vector<ExportedFile> write_class_folders(const Cache& cache,
                                              const std::filesystem::path& folder);

/// SPLIT/text.txt: all rows of a split, end to end. To be prepared with split=folders.
std::vector<ExportedFile> write_whole_texts(const Cache& cache,
                                            const std::filesystem::path& folder);

/// SPLIT.tokens.npy [all tokens], uint8, or uint16 where the vocabulary is larger than 256: the
/// documents end to end, without padding; SPLIT.lengths.npy [rows, towers], int64, of each
/// document; SPLIT.labels.npy [rows], int64.
std::vector<ExportedFile> write_arrays(const Cache& cache, const std::filesystem::path& folder);

/// The lines of SPLIT.jsonl in the folder `from`, which a task with questions about positions wrote
/// (tasks/training/data.hpp), as int64: SPLIT.tokens.npy [rows, longest], with a third size where
/// tokens share a position, 0 after the end of a row; SPLIT.lengths.npy [rows]; SPLIT.labels.npy
/// [rows, longest], -100 where nothing is asked, at the place that a decoder is asked for where
/// there is one. Throws UsageError for lines of another form.
std::vector<ExportedFile> write_arrays_of_lines(const std::filesystem::path& from,
                                                const std::filesystem::path& folder);

}  // namespace attnbench::tasks::data
