#include "tasks/lm/sequences.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/random.hpp"
#include "core/text/printable.hpp"

namespace attnbench::tasks::lm {
namespace {

using training::Split;

/// "1.5x".
std::string segment_name(double multiple) {
  std::ostringstream text;
  text << multiple << "x";
  return text.str();
}

[[noreturn]] void refuse_segments(const std::string& text, const std::string& fault) {
  throw UsageError("segments is " + text::quotable(text, 80) + ": " + fault +
                   "; expected ascending multiples of the training length that begin with 1, such "
                   "as \"1, 1.5, 2, 4\"");
}

}  // namespace

std::vector<double> segments_from(const std::string& text) {
  constexpr double most = 1024;
  std::vector<double> multiples;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    char* end = nullptr;
    const double multiple = std::strtod(word.c_str(), &end);
    while (*end == ' ') ++end;
    if (end == word.c_str() || *end != '\0' || !(multiple >= 1) || multiple > most) {
      refuse_segments(text, text::quotable(word, 40) + " is not a number from 1 to 1024");
    }
    if (!multiples.empty() && multiple <= multiples.back()) {
      refuse_segments(text, "they do not ascend");
    }
    multiples.push_back(multiple);
  }
  if (multiples.empty() || multiples.front() != 1) refuse_segments(text, "the first is not 1");
  return multiples;
}

std::vector<std::int64_t> lengths(const Cutting& cutting, Split split) {
  if (split != Split::test) return {cutting.length};
  std::vector<std::int64_t> all;
  for (const double multiple : cutting.segments) {
    all.push_back(std::llround(multiple * static_cast<double>(cutting.length)));
  }
  return all;
}

std::vector<training::SegmentSize> cut_into(const Cutting& cutting, Split split,
                                            std::int64_t tokens) {
  std::vector<training::SegmentSize> sizes;
  const std::vector<std::int64_t> all = lengths(cutting, split);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t labels = tokens - 1;
    // An epoch of training has as many tokens as the text.
    const std::int64_t examples =
        split == Split::train ? labels / all[i] : (labels + all[i] - 1) / all[i];
    sizes.push_back(
        {segment_name(cutting.segments[i]), all[i], examples, static_cast<double>(cutting.length)});
  }
  return sizes;
}

/// Where a sequence begins in the text, in tokens, and the first of its labels that is scored.
struct Sequences::Place {
  std::int64_t first = 0;
  std::int64_t scored_from = 0;
};

Sequences::Sequences(std::shared_ptr<const tasks::data::Cache> cache, const Cutting& cutting)
    : text_(std::move(cache)), cutting_(cutting) {
  for (const Split split : training::every_split) {
    for (const std::int64_t length : lengths(cutting_, split)) {
      if (tokens(split) > length) continue;
      throw UsageError(text_.cache().file().string() + ": the text of " + to_string(split) +
                       " has " + std::to_string(tokens(split)) + " " + unit() + ", a sequence of " +
                       std::to_string(length) + " tokens needs " + std::to_string(length + 1) +
                       ": set a smaller length, fewer segments or more " + unit() +
                       " of the split, or prepare a longer text");
    }
  }
}

std::int64_t Sequences::tokens(Split split) const {
  const std::int64_t all = text_.tokens(split);
  const std::int64_t wanted = split == Split::validation ? cutting_.validation_bytes
                              : split == Split::test     ? cutting_.test_bytes
                                                         : 0;
  return wanted > 0 ? std::min(wanted, all) : all;
}

std::vector<training::SegmentSize> Sequences::segments(Split split) const {
  return cut_into(cutting_, split, tokens(split));
}

Sequences::Place Sequences::place(Split split, std::int64_t length, std::int64_t example) const {
  const std::int64_t last = tokens(split) - 1 - length;
  if (split == Split::train) {
    Random random(key_of({cutting_.seed, 0x746578740aull /* "text\n" */}),
                  static_cast<std::uint64_t>(example));
    const double drawn = random.uniform() * static_cast<double>(last + 1);
    return {std::min(static_cast<std::int64_t>(drawn), last), 0};
  }
  const std::int64_t begin = example * length;
  const std::int64_t first = std::min(begin, last);
  return {first, begin - first};
}

training::Batch Sequences::batch(Split split, std::size_t segment,
                                 const std::vector<std::int64_t>& examples) const {
  const std::int64_t length = lengths(cutting_, split).at(segment);
  const auto size = static_cast<std::int64_t>(examples.size());
  training::Batch batch;
  batch.tokens = at::empty({size, length}, at::kLong);
  std::vector<Place> places;
  std::int64_t labels = 0;
  for (const std::int64_t example : examples) {
    places.push_back(place(split, length, example));
    labels += length - places.back().scored_from;
  }
  batch.positions = at::empty({labels}, at::kLong);
  batch.labels = at::empty({labels}, at::kLong);
  auto* position = batch.positions.data_ptr<std::int64_t>();
  auto* label = batch.labels.data_ptr<std::int64_t>();
  std::vector<std::int64_t> symbols(static_cast<std::size_t>(length) + 1);
  for (std::int64_t row = 0; row < size; ++row) {
    const Place& at = places[static_cast<std::size_t>(row)];
    text_.copy(split, at.first, symbols);
    std::copy_n(symbols.begin(), length, batch.tokens.data_ptr<std::int64_t>() + row * length);
    for (std::int64_t t = at.scored_from; t < length; ++t) {
      *position++ = row * length + t;
      *label++ = symbols[static_cast<std::size_t>(t) + 1];
    }
  }
  return batch;
}

std::string Sequences::unit() const {
  return text_.encoding() == tasks::data::lm::Encoding::bytes ? "bytes" : "tokens";
}

data::Json Sequences::facts() const {
  const tasks::data::DataDescription& description = text_.cache().description();
  auto splits = data::Json::object();
  for (const Split split : training::every_split) {
    splits[to_string(split)] = {{unit(), tokens(split)},
                                {unit() + "_prepared", text_.tokens(split)}};
  }
  return {{"task", description.task},
          {"source", description.source},
          {"source_hash", description.source_hash},
          {"content_hash", text_.cache().content_hash()},
          {"settings", description.settings},
          {"notes", description.notes},
          {"splits", std::move(splits)}};
}

}  // namespace attnbench::tasks::lm
