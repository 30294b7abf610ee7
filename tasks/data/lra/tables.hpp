// Readers of Long Range Arena's own tables: ListOps and Retrieval (AAN) as tab-separated files, in
// a folder, an archive, or lra_release.gz as it was published. Formats: google-research/
// long-range-arena @cd31e5c, lra_benchmarks/{listops,matching}/input_pipeline.py.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lra {

/// The file names of the three splits, and their first line.
struct TableNames {
  std::array<std::string, 3> of_split;
  std::string header;  ///< empty = none
};
inline const TableNames listops_tables{{"basic_train.tsv", "basic_val.tsv", "basic_test.tsv"},
                                       "Source\tTarget"};
inline const TableNames retrieval_tables{
    {"new_aan_pairs.train.tsv", "new_aan_pairs.eval.tsv", "new_aan_pairs.test.tsv"}, ""};

/// Reads basic_train.tsv, basic_val.tsv and basic_test.tsv: a line "Source\tTarget", then an
/// expression and its value. Round brackets are dropped; every row is held to its value. Where the
/// archive has several such folders (the published one does), the deepest is read.
///
/// Both throw UsageError "FROM, member NAME, line N: …": a split that is missing, another number of
/// columns, a label that is not a number, out of range or not the value, no tokens, unbalanced
/// brackets; a table that is no text, unless `raw`.
std::unique_ptr<RowSource> read_listops(const std::filesystem::path& from,
                                        const ProgressCall& progress = {}, bool raw = false);

/// Reads new_aan_pairs.{train,eval,test}.tsv: no header, no quotes; label (0, 1, 0.0 or 1.0), two
/// ids, two texts. Ids of tokens are byte + 1, 0 is padding. `keep`: bytes of a text that are kept,
/// 1 to 10,000 (the original keeps 10,000, then cuts at its length).
std::unique_ptr<RowSource> read_retrieval(const std::filesystem::path& from, int keep = 4096,
                                          const ProgressCall& progress = {}, bool raw = false);

/// Bytes as ids of tokens, byte + 1.
void append_bytes(std::string_view text, std::vector<Token>& tokens);

}  // namespace attnbench::tasks::data::lra
