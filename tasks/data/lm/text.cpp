#include "tasks/data/lm/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tasks/data/lm/text_source.hpp"

namespace attnbench::tasks::data::lm {
namespace {

constexpr std::int64_t symbols = 256;

/// How often each byte follows each context of 0, 1 and 2 bytes.
class Counts {
 public:
  Counts() : bytes_(symbols), pairs_(symbols * symbols), triples_(symbols * symbols * symbols) {}

  void add(std::int64_t byte) {
    ++bytes_[static_cast<std::size_t>(byte)];
    if (seen_ > 0) ++pairs_[static_cast<std::size_t>(before_ % symbols * symbols + byte)];
    if (seen_ > 1) ++triples_[static_cast<std::size_t>(before_ * symbols + byte)];
    before_ = (before_ * symbols + byte) % (symbols * symbols);
    ++seen_;
  }

  /// To be called after the last byte.
  void finish() {
    after_byte_ = followers_of(pairs_);
    after_pair_ = followers_of(triples_);
  }

  /// The probability of `byte` after the two bytes of `before`, from 0, 1 and 2 of them.
  std::array<double, 3> probabilities(std::int64_t before, std::int64_t byte) const {
    const auto mixed = [](std::uint32_t count, const Followers& after, double shorter) {
      if (after.all == 0) return shorter;
      return (count + after.different * shorter) /
             (static_cast<double>(after.all) + after.different);
    };
    const auto last = static_cast<std::size_t>(before % symbols);
    const auto both = static_cast<std::size_t>(before);
    const auto own = static_cast<std::size_t>(byte);
    std::array<double, 3> all{};
    all[0] = (bytes_[own] + 1.0) / static_cast<double>(seen_ + symbols);
    all[1] = mixed(pairs_[last * symbols + own], after_byte_[last], all[0]);
    all[2] = mixed(triples_[both * symbols + own], after_pair_[both], all[1]);
    return all;
  }

 private:
  /// What followed a context: how many bytes, and how many different ones.
  struct Followers {
    std::uint32_t all = 0;
    std::uint32_t different = 0;
  };

  static std::vector<Followers> followers_of(const std::vector<std::uint32_t>& counts) {
    std::vector<Followers> followers(counts.size() / symbols);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      followers[i / symbols].all += counts[i];
      followers[i / symbols].different += counts[i] > 0;
    }
    return followers;
  }

  std::vector<std::uint32_t> bytes_, pairs_, triples_;
  std::vector<Followers> after_byte_, after_pair_;
  std::int64_t before_ = 0;  ///< the last two bytes
  std::int64_t seen_ = 0;
};

/// Calls `use` with each of the first `count` bytes of a split.
template <class Use>
void for_each_byte(const Text& text, Split split, std::int64_t count, Use use) {
  std::vector<std::int64_t> piece(1 << 16);
  for (std::int64_t first = 0; first < count; first += static_cast<std::int64_t>(piece.size())) {
    piece.resize(
        static_cast<std::size_t>(std::min(static_cast<std::int64_t>(piece.size()), count - first)));
    text.copy(split, first, piece);
    for (const std::int64_t byte : piece) use(byte);
  }
}

}  // namespace

Text::Text(std::shared_ptr<const Cache> cache) : cache_(std::move(cache)) {
  const DataDescription& description = cache_->description();
  if (description.task != "lm" || description.towers != 1 || description.first_token != 0) {
    throw UsageError(cache_->file().string() + ": holds data of " + description.task +
                     ", expected a text: prepare one with `attnbench data lm --from FILE`");
  }
}

Encoding Text::encoding() const {
  return encoding_from(cache_->description().settings.value("tokens", "bytes"));
}

std::optional<double> Text::bytes_per_token(Split split) const {
  if (encoding() == Encoding::bytes) return 1;
  const Json& notes = cache_->description().notes;
  if (!notes.contains("bytes")) return std::nullopt;
  return notes["bytes"].value(to_string(split), 0.0) / static_cast<double>(tokens(split));
}

void Text::copy(Split split, std::int64_t first, std::span<std::int64_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (first < 0 || first + count > tokens(split)) {
    throw std::out_of_range("tokens " + std::to_string(first) + " to " +
                            std::to_string(first + count) + " of " + cache_->file().string());
  }
  constexpr auto each = static_cast<std::int64_t>(tokens_per_row);
  const std::span<const std::uint32_t> rows = cache_->index(split);
  std::array<std::int64_t, tokens_per_row> row{};
  while (!out.empty()) {
    const auto skipped = static_cast<std::size_t>(first % each);
    const std::size_t there =
        cache_->copy(rows[static_cast<std::size_t>(first / each)], 0, row) - skipped;
    const std::size_t taken = std::min(there, out.size());
    std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(skipped), taken, out.begin());
    out = out.subspan(taken);
    first += static_cast<std::int64_t>(taken);
  }
}

std::vector<Level> counted_levels(const Text& text, std::int64_t max_scored,
                                  std::int64_t max_counted) {
  Counts counts;
  for_each_byte(text, Split::train, std::min(text.tokens(Split::train), max_counted),
                [&](std::int64_t byte) { counts.add(byte); });
  counts.finish();
  std::array<double, 3> bits{};
  std::int64_t before = 0;
  std::int64_t place = 0;
  const std::int64_t all = text.tokens(Split::test);
  for_each_byte(text, Split::test, max_scored > 0 ? std::min(all, max_scored) : all,
                [&](std::int64_t byte) {
                  if (place++ >= 2) {
                    const auto probabilities = counts.probabilities(before, byte);
                    for (std::size_t i = 0; i < bits.size(); ++i) {
                      bits[i] -= std::log2(probabilities[i]);
                    }
                  }
                  before = (before * symbols + byte) % (symbols * symbols);
                });
  std::vector<Level> levels;
  if (place <= 2) return levels;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    levels.push_back({static_cast<std::int64_t>(i), bits[i] / static_cast<double>(place - 2)});
  }
  return levels;
}

}  // namespace attnbench::tasks::data::lm
