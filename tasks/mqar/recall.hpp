// Recall: the examples of multi-query associative recall (Arora et al. 2024, Zoology, and its
// variants), each decided by a seed, a split, a segment and a number alone.
//
// plain          n pairs key value, then a region in which every key is asked once: the answer is
//                expected at the key's own position. Where it is asked follows a power law over
//                slots of two tokens, counted from the region's beginning.
// forgetting     after the pairs, `updates` of the keys come once more with a new value, which is
//                the answer from then on.
// compositional  the values belong to pairs of keys, n = m * m of them from m first and m second
//                keys; asked by both, answered at the second.
// stacked        key and value share a position, so that nothing has to be shifted: n positions
//                [key, value], then n [key, nothing].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/training/examples.hpp"

namespace attnbench::tasks::mqar {

enum class Variant { plain, forgetting, compositional, stacked };
/// What fills the positions that are neither context nor question: the token 0, or any token.
enum class Filler { zeros, random };
using learning::Split;

const char* to_string(Variant variant);
const char* to_string(Filler filler);
/// Throw UsageError listing the valid words.
Variant variant_from(const std::string& word);
Filler filler_from(const std::string& word);

/// What all examples of a data set share.
struct Recall {
  Variant variant = Variant::plain;
  Filler filler = Filler::random;
  std::int64_t vocabulary = 8192;
  double power = 0.01;       ///< slot g = 1, 2, … has the weight g^(power - 1)
  std::int64_t updates = 4;  ///< of `forgetting`
};

/// Examples of one shape.
struct Segment {
  std::int64_t length = 64;  ///< positions T
  std::int64_t pairs = 4;    ///< values in the context, and questions
  std::int64_t examples = 0;
};

/// "64x4:100000, 128x8:20000" (commas or blanks between): length, pairs and examples of each.
/// Throws UsageError.
std::vector<Segment> segments_from(const std::string& text);
std::string to_string(const std::vector<Segment>& segments);

/// Throws UsageError saying what does not fit: see the rules in recall.cpp.
void check(const Recall& recall, const Segment& segment);

/// Tokens of `stacked` are [length * 2], the value's place 0 where there is none; candidates are
/// all values that stand in the context, old ones included.
using Example = learning::Sheet;
using learning::Question;

/// Numbers in a position: 2 for `stacked`, else 1.
std::int64_t tokens_per_position(const Recall& recall);

/// `segment` is the number of the segment within its split, `example` that of the example within
/// its segment. Sizes have passed `check`.
Example make_example(const Recall& recall, const Segment& shape, std::uint64_t seed, Split split,
                     std::uint64_t segment, std::uint64_t example);

}  // namespace attnbench::tasks::mqar
