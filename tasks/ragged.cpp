#include "tasks/ragged.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/sequence_lengths.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks {
namespace {

std::int64_t longest_of(const std::vector<std::int64_t>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace

Option lengths_setting() {
  return text_setting("lengths", "",
                      "tokens of each sequence of a ragged batch, such as \"100+2000+512\" or "
                      "\"8x512+4096\": batch is their number, length the longest, to which the "
                      "others are padded; empty = all have length tokens");
}

std::vector<std::int64_t> lengths_from(const Options& settings, const Problem& problem) {
  if (!settings.has("lengths")) return {};
  const std::string& text = settings.text("lengths");
  std::vector<std::int64_t> lengths = sequence_lengths(text);
  if (lengths.empty()) return lengths;
  const auto expect = [&](const char* size, std::int64_t said, std::int64_t found,
                          const char* meaning) {
    if (said == found) return;
    throw UsageError("lengths \"" + text + "\" and " + size + " " + std::to_string(said) +
                     " disagree; expected " + size + " " + std::to_string(found) + ", " + meaning);
  };
  expect("batch", problem.batch, static_cast<std::int64_t>(lengths.size()),
         "the number of sequences");
  expect("length", problem.length, longest_of(lengths), "the longest sequence");
  if (problem.pattern == Pattern::cross) {
    throw UsageError("lengths \"" + text +
                     "\" are those of sequences that attend to themselves, and the pattern cross "
                     "has keys of others: say causal or bidirectional");
  }
  return lengths;
}

at::Tensor real_tokens(const std::vector<std::int64_t>& lengths, std::int64_t tokens,
                       Padding padding, const std::string& device) {
  if (lengths.empty()) return {};
  const std::int64_t longest = longest_of(lengths);
  const auto batch = static_cast<std::int64_t>(lengths.size());
  if (std::count(lengths.begin(), lengths.end(), longest) == batch) return {};
  const at::Tensor mask = at::ones({batch, tokens}, at::kBool);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t real = lengths[static_cast<std::size_t>(b)];
    const std::int64_t begin = padding == Padding::after ? real : 0;
    mask[b].narrow(0, begin, longest - real).fill_(false);
  }
  return mask.to(at::Device(device));
}

Cost ragged_cost(const Problem& problem, const std::vector<std::int64_t>& lengths,
                 const std::function<Cost(const Problem&)>& of) {
  Cost cost = of(problem);
  if (lengths.empty()) return cost;
  const auto of_batch = [&](std::int64_t batch, std::int64_t length) {
    Problem some = problem;
    some.batch = batch;
    some.length = some.key_length = length;
    return of(some);
  };
  constexpr double Cost::*of_sequences[] = {&Cost::model_flops, &Cost::minimal_bytes,
                                            &Cost::exponentials};
  const Cost one = of_batch(1, problem.length);
  const Cost two = of_batch(2, problem.length);
  Cost shared;
  for (double Cost::*const part : of_sequences) {
    cost.*part = shared.*part = 2 * one.*part - two.*part;
  }
  std::map<std::int64_t, double> counts;
  for (const std::int64_t length : lengths) ++counts[length];
  for (const auto& [length, count] : counts) {
    const Cost alone = of_batch(1, length);
    for (double Cost::*const part : of_sequences) {
      cost.*part += count * (alone.*part - shared.*part);
    }
  }
  return cost;
}

Values padding_metrics(const std::vector<std::int64_t>& lengths) {
  if (lengths.empty()) return {};
  const std::int64_t real = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto batch = static_cast<std::int64_t>(lengths.size());
  return {{"real_tokens", real}, {"executed_tokens", batch * longest_of(lengths)}};
}

}  // namespace attnbench::tasks
