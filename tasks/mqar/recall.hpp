// The examples of multi-query associative recall (Arora et al. 2024, Zoology) and its variants. A
// seed, a split, a segment and a number determine each example.
//
// plain          n pairs key value, then a region in which every key is asked once: the answer is
//                expected at the key's own position. Positions of questions follow a power law over
//                slots of two tokens, counted from the region's start.
// forgetting     after the pairs, `updates` of the keys occur again with a new value, which is the
//                answer from then on.
// compositional  values belong to pairs of keys, n = m * m of them from m first and m second keys;
//                a question is such a pair, answered at the second key.
// stacked        key and value share a position, so that no shift is needed: n positions
//                [key, value], then n positions [key, 0].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/training/data.hpp"

namespace attnbench::tasks::mqar {

enum class Variant { plain, forgetting, compositional, stacked };
/// The token at positions that are neither context nor question: 0, or a random one.
enum class Filler { zeros, random };
using training::Split;

const char* to_string(Variant variant);
const char* to_string(Filler filler);
std::vector<std::string> variant_names();
/// Throw UsageError that lists the names.
Variant variant_from(const std::string& name);
Filler filler_from(const std::string& name);

/// What all examples of a data set share.
struct Recall {
  Variant variant = Variant::plain;
  Filler filler = Filler::random;
  std::int64_t vocabulary = 8192;
  double power = 0.01;       ///< slot g = 1, 2, … has the weight g^(power - 1)
  std::int64_t updates = 4;  ///< of `forgetting`
};

/// Examples of one shape.
struct RecallSegment {
  std::int64_t length = 64;  ///< positions T
  std::int64_t pairs = 4;    ///< values in the context, and questions
  std::int64_t examples = 0;
};

/// Throws UsageError that names the rule a segment breaks.
void check(const Recall& recall, const RecallSegment& segment);

/// Tokens of `stacked` are [length * 2], with 0 in place of a missing value; candidates are all
/// values in the context, replaced ones included.
using training::Example;
using training::Question;

/// The tokens at each position: 2 for `stacked`, otherwise 1.
std::int64_t tokens_per_position(const Recall& recall);

/// `segment` is the index of the segment within its split, `example` that of the example within the
/// segment. Sizes must have passed `check`.
Example make_example(const Recall& recall, const RecallSegment& shape, std::uint64_t seed,
                     Split split, std::uint64_t segment, std::uint64_t example);

}  // namespace attnbench::tasks::mqar
