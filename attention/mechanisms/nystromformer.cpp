// Nystroemformer, Xiong et al. 2021: softmax attention by way of m landmarks, the means of m
// segments of the queries and of the keys, and an iteration to the pseudo-inverse of their softmax.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

class Nystromformer : public Mechanism {
 public:
  using Mechanism::Mechanism;
  std::vector<Role> roles() const override { return query_key_value(problem); }
};

/// softmax over the last dimension of what is not hidden; rows where all is hidden are 0.
Tensor visible_softmax(const Tensor& scores, const Tensor& hidden) {
  if (!hidden.defined()) return at::softmax(scores, -1);
  const Tensor lost = hidden.expand_as(scores);
  return at::softmax(scores.masked_fill(lost, -std::numeric_limits<double>::infinity()), -1)
      .masked_fill(lost, 0);
}

/// Segments of the real tokens, as equal as can be.
struct Segments {
  Tensor means;  ///< [B or 1, 1, m, T]: times tokens, the means of the segments
  Tensor empty;  ///< [B, 1, m], true beyond as many segments as tokens; undefined = none is
};

Segments segments_of(const Tensor& tokens, const Tensor& key_mask, std::int64_t landmarks) {
  const auto whole = tokens.options().dtype(at::kLong).requires_grad(false);
  const std::int64_t length = tokens.size(2);
  const Tensor real = key_mask.defined() ? key_mask.to(at::kLong) : at::ones({1, length}, whole);
  const Tensor count = real.sum(1, true);  // [B, 1]
  const Tensor used = count.clamp_max(landmarks);
  const Tensor rank = real.cumsum(1) - 1;
  const Tensor segment = at::div(rank * used, count.clamp_min(1), "floor");  // [B, T]
  const Tensor numbers = at::arange(landmarks, whole).unsqueeze(-1);         // [m, 1]
  const Tensor member = segment.unsqueeze(1).eq(numbers) & real.unsqueeze(1).ne(0);
  const Tensor share = member.to(tokens.scalar_type());
  Segments segments;
  segments.means = (share / share.sum(-1, true).clamp_min(1)).unsqueeze(1);
  if (key_mask.defined() || length < landmarks) {
    segments.empty = numbers.squeeze(-1).ge(used).unsqueeze(1);
  }
  return segments;
}

/// The iteration of section 3.3, [B, H, m, m]. |A|_inf is 1: rows of A sum to 1.
Tensor iterated_inverse(const Tensor& a, std::int64_t iterations) {
  const Tensor norm = a.sum(-2, true).amax(-1, true);
  Tensor z = a.transpose(-2, -1) / norm.masked_fill(norm == 0, 1);
  const Tensor one = at::eye(a.size(-1), a.options().requires_grad(false));
  for (std::int64_t i = 0; i < iterations; ++i) {
    const Tensor az = at::matmul(a, z);
    const Tensor inner = 15 * one - at::matmul(az, 7 * one - az);
    z = at::matmul(z, 13 * one - at::matmul(az, inner)) / 4;
  }
  return z;
}

Mixed mix_nystromformer(Mechanism& mechanism, const Inputs& inputs, State* state) {
  if (state) throw UnsupportedError("nystromformer has no decoding state");
  const Options& options = mechanism.options;
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const double scale = std::pow(static_cast<double>(mechanism.problem.head_dim), -0.25);
  const Tensor query = without_padding(inputs["query"], mask).to(type) * scale;
  const Tensor key = without_padding(inputs["key"], mask).to(type) * scale;
  const Tensor value = without_padding(inputs["value"], mask).to(type);
  const Segments segments = segments_of(key, mask, options.integer("landmarks"));
  const Tensor query_marks = at::matmul(segments.means, query);
  const Tensor key_marks = at::matmul(segments.means, key);
  Tensor columns, rows;  // of landmarks that are not there
  if (segments.empty.defined()) {
    columns = segments.empty.unsqueeze(-2);
    rows = segments.empty.unsqueeze(-1);
  }
  const auto scores = [](const Tensor& a, const Tensor& b) {
    return at::matmul(a, b.transpose(-2, -1));
  };
  const Tensor spread = visible_softmax(scores(query, key_marks), columns);
  const Tensor padded = padded_tokens(mask);  // [B, 1, T, 1]
  Tensor gather = visible_softmax(scores(query_marks, key),
                                  padded.defined() ? padded.transpose(-2, -1) : padded);
  Tensor between = visible_softmax(scores(query_marks, key_marks), columns);
  if (rows.defined()) {
    gather = gather.masked_fill(rows, 0);
    between = between.masked_fill(rows, 0);
  }
  const Tensor inverse = iterated_inverse(between, options.integer("iterations"));
  const Tensor output = at::matmul(spread, at::matmul(inverse, at::matmul(gather, value)));
  return {output.to(inputs["value"].scalar_type()), {}};
}

Cost nystromformer_cost(const Options& options, const Problem& problem) {
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double tokens = static_cast<double>(problem.length);
  const double marks = static_cast<double>(options.integer("landmarks"));
  const double widths = static_cast<double>(problem.head_dim + problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype)), wide = std::max(bytes, 4.0);
  const double square = marks * marks;
  Cost cost;
  const double inverse = 8 * static_cast<double>(options.integer("iterations")) * square * marks;
  cost.model_flops = heads * (4 * tokens * marks * widths + 2 * square * widths + inverse);
  // The means are products with the segments' members.
  cost.executed_flops =
      cost.model_flops + heads * 4 * tokens * marks * static_cast<double>(problem.head_dim);
  cost.minimal_bytes = heads * 2 * tokens * widths * bytes;
  cost.exponentials = heads * (2 * tokens * marks + square);
  cost.workspace_bytes =
      heads * (tokens * (3 * marks + 2 * widths) + 8 * square) * wide + tokens * marks * 8;
  cost.saved_bytes = cost.workspace_bytes +
                     heads * 6 * static_cast<double>(options.integer("iterations")) * square * wide;
  cost.backward_flops = 2;
  return cost;
}

Support nystromformer_supports(const Options&, const Problem& problem) {
  if (problem.pattern != Pattern::bidirectional) {
    return Support::no(std::string("nystromformer: ") + to_string(problem.pattern) +
                       " is undefined, its landmarks are means over all tokens of one sequence; "
                       "use the bidirectional pattern");
  }
  return unshared_heads("nystromformer", problem);
}

}  // namespace

Entry nystromformer() {
  Entry entry;
  entry.name = "nystromformer";
  entry.title = "Nystroemformer: softmax attention by way of landmarks";
  entry.citation =
      "Xiong, Zeng, Chakraborty, Tan, Fung, Li, Singh 2021, Nystroemformer: A Nystroem-Based "
      "Algorithm for Approximating Self-Attention, arXiv:2102.03902";
  entry.formula =
      "Y = softmax(Q K~^T) Z softmax(Q~ K^T) V,  Q~ and K~ the means of m segments, scores divided "
      "by sqrt(D)\n"
      "Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4,  A = softmax(Q~ K~^T), from Z = A^T / "
      "|A|_1";
  entry.options = {
      Option::integer("landmarks", 64,
                      "segments whose means stand for queries and keys; no more are used than "
                      "there are tokens",
                      1),
      Option::integer("iterations", 6,
                      "steps towards the pseudo-inverse Z of A: with normal tokens and 16 to 64 "
                      "landmarks A Z A lies 1 to 7 % off A after 6, 0.15 % or less after 12",
                      1, 100)};
  entry.differs_from = {
      {"the published code divides by the greatest |A|_1 of the whole batch; here each head of "
       "each "
       "sequence has its own, so that sequences do not depend on each other",
       "not available"},
      {"the published code adds a convolution of the values to the output",
       "not available: the mix alone is what is compared"},
      {"the published code uses softmax attention itself where there are as many landmarks as "
       "tokens",
       "not available"}};
  entry.claims.rows_sum_to_one = false;  // the iteration ends before the inverse is exact
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional};
  entry.supports = nystromformer_supports;
  entry.make = maker<Nystromformer>("nystromformer");
  Implementation composite;
  composite.name = "composite";
  composite.title = "three softmaxes and an iterated inverse, in tensor operations";
  composite.supports = nystromformer_supports;
  composite.mix = mix_nystromformer;
  composite.cost = nystromformer_cost;
  composite.growth.from_length = 1024;  // below, the inverse outweighs the tokens
  entry.implementations = {composite};
  return entry;
}

}  // namespace attnbench::mechanisms
