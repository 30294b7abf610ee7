#include <algorithm>
#include <map>

#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {
namespace {

/// A sequence of motifs under way.
class Page {
 public:
  explicit Page(const Rules& rules) : rules_(rules) {}

  std::int64_t size() const { return static_cast<std::int64_t>(sheet_.tokens.size()); }
  bool knows(const Tokens& key) const { return known_.count(key) != 0; }

  /// Key and value; asks for the value where the key was there before, and then it is the old one.
  void write(const Tokens& key, const Tokens& value) {
    const auto [found, is_new] = known_.try_emplace(key, Known{value, 0});
    Known& own = found->second;
    append(key);
    const std::int64_t begin = size();
    for (std::size_t i = 0; i < own.value.size() && !is_new; ++i) {
      const std::int64_t position = begin + static_cast<std::int64_t>(i) - 1;
      sheet_.questions.push_back(
          {position, own.value[i], position - own.place - static_cast<std::int64_t>(i)});
    }
    own.place = begin;
    append(own.value);
  }

  /// Filled up on the left to the length that is wanted.
  Sheet finished(std::int64_t padding_token) && {
    const std::int64_t padding = rules_.length - size();
    sheet_.tokens.insert(sheet_.tokens.begin(), static_cast<std::size_t>(padding), padding_token);
    for (learning::Question& question : sheet_.questions) question.position += padding;
    for (const auto& [key, own] : known_) {
      sheet_.candidates.insert(sheet_.candidates.end(), own.value.begin(), own.value.end());
    }
    sheet_.candidates = different(std::move(sheet_.candidates));
    return std::move(sheet_);
  }

 private:
  struct Known {
    Tokens value;
    std::int64_t place = 0;  ///< where it began last
  };

  void append(const Tokens& motif) {
    sheet_.tokens.insert(sheet_.tokens.end(), motif.begin(), motif.end());
  }

  const Rules& rules_;
  Sheet sheet_;
  std::map<Tokens, Known> known_;
};

}  // namespace

Sheet fuzzy_recall(const Rules& rules, Split split, Draws& draws) {
  const std::int64_t padding_token = rules.vocabulary - 1;
  const std::int64_t keys = padding_token / 2;
  const std::int64_t shortest_key = split == Split::train ? 1 : rules.motif;
  const auto key = [&] {
    const std::int64_t size = shortest_key + draws.below(rules.motif - shortest_key + 1);
    return draws.distinct(0, keys, size);
  };
  const auto value = [&] {
    return draws.distinct(keys, padding_token, 1 + draws.below(rules.motif));
  };
  const Tokens probe_key = key();
  const Tokens probe_value = value();
  const auto probe_size = static_cast<std::int64_t>(probe_key.size() + probe_value.size());
  // What is written last may be twice a motif longer than this, and the probe has to fit behind it.
  const std::int64_t enough = rules.length - probe_size - 2 * rules.motif;
  const std::int64_t probe_from = draws.below(enough - 2 * rules.motif);
  Page page(rules);
  while (page.size() < enough) {
    if (page.size() >= probe_from && !page.knows(probe_key)) {
      page.write(probe_key, probe_value);
      continue;
    }
    const Tokens one = key();
    page.write(one, one == probe_key ? probe_value : value());
  }
  page.write(probe_key, probe_value);
  return std::move(page).finished(padding_token);
}

}  // namespace attnbench::tasks::mad
