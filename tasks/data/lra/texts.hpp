// Reader of texts in folders of classes, byte by byte: the IMDb reviews of Long Range Arena's Text
// (aclImdb_v1.tar.gz as published, or unpacked), and whatever anybody lays out the same way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lra {

struct ReviewRules {
  /// Train rows held out for validation, alike of each class; 0 = none, so that a task may take the
  /// test rows, as the published protocols do. Not used where a folder "validation" is there.
  std::uint32_t hold_out = 2500;
  std::uint64_t seed = 0;  ///< determines which rows are held out
  bool raw = false;        ///< take what looks like no text, too
};

/// Reads {train,test,validation}/CLASS/NAME.txt at any depth of `from`; classes are numbered by
/// name (neg 0, pos 1), "unsup" is passed over. Ids of tokens are byte + 1, 0 is padding; texts are
/// whole and unchanged. Rows of a split are in the order of class, then name: shuffle them.
///
/// Throws UsageError "FROM, member NAME: …": no such files, no train or test, a class that only one
/// of them has, an empty text, a name that is there twice.
std::unique_ptr<RowSource> read_texts(const std::filesystem::path& from,
                                      const ReviewRules& rules = {},
                                      const ProgressCall& progress = {});

}  // namespace attnbench::tasks::data::lra
