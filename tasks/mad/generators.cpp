// The generators of the exercises: one example each.
#include <map>
#include <numeric>

#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {
namespace {

/// A key's value and its last position.
struct KnownValue {
  std::int64_t value = 0;
  std::int64_t place = 0;
};

/// Builds a sequence of motifs.
class MotifSequence {
 public:
  explicit MotifSequence(const Rules& rules) : rules_(rules) {}

  std::int64_t size() const { return static_cast<std::int64_t>(example_.tokens.size()); }
  bool knows(const Tokens& key) const { return known_.count(key) != 0; }

  /// Appends key and value. Where the key occurred before, its old value, which is asked for.
  void write(const Tokens& key, const Tokens& value) {
    const auto [found, is_new] = known_.try_emplace(key, Known{value, 0});
    Known& own = found->second;
    append(key);
    const std::int64_t begin = size();
    for (std::size_t i = 0; i < own.value.size() && !is_new; ++i) {
      const std::int64_t position = begin + static_cast<std::int64_t>(i) - 1;
      example_.questions.push_back(
          {position, own.value[i], position - own.place - static_cast<std::int64_t>(i)});
    }
    own.place = begin;
    append(own.value);
  }

  /// Padded on the left to the length of the rules.
  Example finished(std::int64_t padding_token) && {
    const std::int64_t padding = rules_.length - size();
    example_.tokens.insert(example_.tokens.begin(), static_cast<std::size_t>(padding),
                           padding_token);
    for (training::Question& question : example_.questions) question.position += padding;
    for (const auto& [key, own] : known_) {
      example_.candidates.insert(example_.candidates.end(), own.value.begin(), own.value.end());
    }
    example_.candidates = training::sorted_unique(std::move(example_.candidates));
    return std::move(example_);
  }

 private:
  struct Known {
    Tokens value;
    std::int64_t place = 0;  ///< its last start
  };

  void append(const Tokens& motif) {
    example_.tokens.insert(example_.tokens.end(), motif.begin(), motif.end());
  }

  const Rules& rules_;
  Example example_;
  std::map<Tokens, Known> known_;
};

/// Value i belongs to key i in all examples and splits of a seed.
Tokens values_of(std::int64_t first, std::int64_t last, std::uint64_t seed) {
  Tokens values(static_cast<std::size_t>(last - first));
  std::iota(values.begin(), values.end(), first);
  Random(key_of({seed, 0x6d6170 /* "map" */}), 0).shuffle(values);
  return values;
}

}  // namespace

Example in_context_recall(const Rules& rules, Random& random) {
  const std::int64_t clear = rules.vocabulary - rules.noise_tokens;
  const std::int64_t keys = clear / 2;
  const std::int64_t pairs = rules.length / 2;
  const std::int64_t never_noise = random.below(pairs - 1);
  Example example;
  std::map<std::int64_t, KnownValue> known;
  const auto write_pair = [&](std::int64_t key) {
    const auto position = static_cast<std::int64_t>(example.tokens.size());
    const auto before = known.find(key);
    if (before == known.end()) {
      known[key] = {keys + random.below(clear - keys), position + 1};
    } else {
      KnownValue& own = before->second;
      example.questions.push_back({position, own.value, position - own.place});
      own.place = position + 1;
    }
    example.tokens.push_back(key);
    example.tokens.push_back(known[key].value);
  };
  for (std::int64_t pair = 0; pair < pairs - 1; ++pair) {
    const bool noise = rules.noise > 0 && pair != never_noise && random.uniform() < rules.noise;
    if (!noise) {
      write_pair(random.below(keys));
      continue;
    }
    for (int i = 0; i < 2; ++i) example.tokens.push_back(clear + random.below(rules.noise_tokens));
  }
  auto last = known.begin();
  std::advance(last, random.below(static_cast<std::int64_t>(known.size())));
  write_pair(last->first);
  for (const auto& [key, own] : known) example.candidates.push_back(own.value);
  example.candidates = training::sorted_unique(std::move(example.candidates));
  return example;
}

Example fuzzy_recall(const Rules& rules, Split split, Random& random) {
  const std::int64_t padding_token = rules.vocabulary - 1;
  const std::int64_t keys = padding_token / 2;
  const std::int64_t shortest_key = split == Split::train ? 1 : rules.motif;
  const auto key = [&] {
    const std::int64_t size = shortest_key + random.below(rules.motif - shortest_key + 1);
    return random.distinct(0, keys, size);
  };
  const auto value = [&] {
    return random.distinct(keys, padding_token, 1 + random.below(rules.motif));
  };
  const Tokens probe_key = key();
  const Tokens probe_value = value();
  const auto probe_size = static_cast<std::int64_t>(probe_key.size() + probe_value.size());
  // The last pair may exceed this by two motifs, and the probe has to fit after it.
  const std::int64_t enough = rules.length - probe_size - 2 * rules.motif;
  const std::int64_t probe_from = random.below(enough - 2 * rules.motif);
  MotifSequence sequence(rules);
  while (sequence.size() < enough) {
    if (sequence.size() >= probe_from && !sequence.knows(probe_key)) {
      sequence.write(probe_key, probe_value);
      continue;
    }
    const Tokens one = key();
    sequence.write(one, one == probe_key ? probe_value : value());
  }
  sequence.write(probe_key, probe_value);
  return std::move(sequence).finished(padding_token);
}

Example selective_copying(const Rules& rules, Random& random) {
  const std::int64_t copy = rules.vocabulary - 1;
  const std::int64_t blank = rules.vocabulary - 2;
  const std::int64_t blanks = rules.length - 2 * rules.symbols - 1;
  // Each blank precedes a random symbol, so that none is between the last one and the sign.
  Tokens before(static_cast<std::size_t>(rules.symbols), 0);
  for (std::int64_t i = 0; i < blanks; ++i) {
    ++before[static_cast<std::size_t>(random.below(rules.symbols))];
  }
  Example example;
  Tokens places;
  for (const std::int64_t count : before) {
    example.tokens.insert(example.tokens.end(), static_cast<std::size_t>(count), blank);
    places.push_back(static_cast<std::int64_t>(example.tokens.size()));
    example.tokens.push_back(random.below(blank));
  }
  example.tokens.push_back(copy);
  for (const std::int64_t place : places) {
    const auto position = static_cast<std::int64_t>(example.tokens.size());
    const std::int64_t symbol = example.tokens[static_cast<std::size_t>(place)];
    example.questions.push_back({position, symbol, position - place});
    example.candidates.push_back(symbol);
    example.tokens.push_back(blank);
  }
  example.candidates = training::sorted_unique(std::move(example.candidates));
  return example;
}

Example compression(const Rules& rules, Random& random) {
  const std::int64_t sign = rules.vocabulary - 1;
  const std::int64_t last = rules.length - 1;
  Example example;
  for (std::int64_t place = 0; place < last; ++place) {
    const std::int64_t symbol = random.below(sign);
    example.tokens.push_back(symbol);
    example.questions.push_back({last, symbol, last - place, place});
  }
  example.candidates = training::sorted_unique(example.tokens);
  example.tokens.push_back(sign);
  return example;
}

Example memorization(const Rules& rules, std::uint64_t seed, Random& random) {
  const std::int64_t sign = rules.vocabulary - 1;
  const std::int64_t keys = sign / 2;
  const Tokens values = values_of(keys, sign, seed);
  Example example;
  for (std::int64_t pair = 0; pair < rules.length / 2; ++pair) {
    const std::int64_t key = random.below(keys);
    example.tokens.push_back(key);
    example.questions.push_back({2 * pair + 1, values[static_cast<std::size_t>(key)], 0});
    example.tokens.push_back(sign);
  }
  return example;
}

}  // namespace attnbench::tasks::mad
