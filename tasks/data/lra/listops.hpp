// ListOps (Nangia & Bowman 2018) as Long Range Arena generates it: nested lists of digits under
// MIN, MAX, MED and SM (sum modulo 10); the label is the value of the whole. Rules, constants and
// statistics: google-research/long-range-arena @cd31e5c, data/listops.py, written anew.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/random.hpp"
#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lra {

/// Ids of the 15 symbols; 0 is padding. In a fixed order: the original's changes from process to
/// process, with the order of a Python set.
enum ListOpsToken : std::uint16_t {
  listops_digit_0 = 1,  ///< to 10 for the digit 9
  listops_min = 11,
  listops_max = 12,
  listops_median = 13,
  listops_sum = 14,
  listops_close = 15,
};
constexpr int listops_vocabulary = 16;

struct ListOpsRules {
  int length_minimum = 501;  ///< tokens of a row, both ends included
  int length_maximum = 1999;
  int depth = 10;      ///< levels of a tree; a bare digit has 1
  int arguments = 10;  ///< at most of an operator; at least 2
  SplitCounts rows{96'000, 2'000, 2'000};
  std::uint64_t seed = 0;
};

/// Rows of rules, each made alone from (seed, split, number): root draws until a tree has a length
/// of the window and a hash of the split. Hence no tree stands in two splits, also in small sizes,
/// where many are drawn twice in one. Throws UsageError where the rules make no sense or make no
/// tree in a million draws.
class ListOpsGenerator final : public RowSource {
 public:
  explicit ListOpsGenerator(const ListOpsRules& rules);
  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return rules_.rows.total(); }
  std::uint64_t cache_bytes() const override;
  void make(std::uint64_t number, Row& row) override;
  bool any_order() const override { return true; }

 private:
  class Tree;
  ListOpsRules rules_;
  DataDescription description_;
};

/// The value of a row, by a stack: not how the generator finds it. Throws UsageError for a row that
/// is not an expression, with the reason: no tokens, unbalanced brackets, an operator without
/// arguments, tokens behind the end.
int evaluate_listops(std::span<const Token> tokens);

/// The tokens of `text`, such as "( ( ( [MAX 2 ) 9 ) ] )": symbols apart by blanks, round brackets
/// dropped. Throws UsageError for another symbol and where round brackets are unbalanced.
void parse_listops(std::string_view text, std::vector<Token>& tokens);

/// The row as text, "[MAX 2 9 ]"; parse_listops takes it back.
std::string listops_text(std::span<const Token> tokens);

/// What a cache of such rows says of itself, whether they were generated or read.
DataDescription listops_description();

}  // namespace attnbench::tasks::data::lra
