#include "reports/tables/quality.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace attnbench::reports {
namespace {

constexpr Quality by_accuracy{"accuracy",
                              "accuracy",
                              "validation_accuracy",
                              "train_accuracy",
                              "accuracy",
                              "accuracies",
                              "Accuracy on the test",
                              "accuracy on the validation split",
                              "best mean validation accuracy",
                              "most accurate",
                              "token",
                              nullptr,
                              false,
                              1};
constexpr Quality by_loss{"bits_per_byte",
                          "bits_per_byte",
                          "validation_bits_per_byte",
                          "train_bits_per_byte",
                          "bits per byte",
                          "bits per byte",
                          "Bits per byte of the test",
                          "validation bits per byte",
                          "least mean validation loss",
                          "fewest bits per byte",
                          "byte",
                          bits_of,
                          true,
                          0};
constexpr Quality by_perplexity{"bits_per_byte",
                                "perplexity",
                                "validation_perplexity",
                                "train_perplexity",
                                "perplexity",
                                "perplexities",
                                "Perplexity of the test",
                                "validation perplexity",
                                "least mean validation perplexity",
                                "lowest perplexity",
                                "token",
                                [](double loss) { return std::exp(loss); },
                                true,
                                1};

bool same_levels(const std::vector<result::CountedLevel>& a,
                 const std::vector<result::CountedLevel>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].context != b[i].context || a[i].bits_per_byte != b[i].bits_per_byte) return false;
  }
  return true;
}

}  // namespace

const Quality& quality_of(const result::Training& training) {
  return training.judged_by == "loss"         ? by_loss
         : training.judged_by == "perplexity" ? by_perplexity
                                              : by_accuracy;
}

const Quality& quality_of(const Panel& panel) {
  for (const Placed& placed : panel.cells) {
    if (placed.cell->training) return quality_of(*placed.cell->training);
  }
  return by_accuracy;
}

std::vector<result::CountedLevel> counted_levels(const Panel& panel) {
  const std::vector<result::CountedLevel>* levels = nullptr;
  for (const Placed& placed : panel.cells) {
    if (!placed.cell->training) continue;
    const auto& own = placed.cell->training->levels;
    if (levels != nullptr && !same_levels(*levels, own)) return {};
    levels = &own;
  }
  return levels == nullptr ? std::vector<result::CountedLevel>{} : *levels;
}

std::string level_words(const result::CountedLevel& level) {
  if (level.context == 0) return "counts of bytes";
  return level.context == 1 ? "counts after one byte" : "counts after two bytes";
}

double bits_of(double loss) { return loss / std::log(2.0); }

std::string title_words(const Quality& quality) {
  std::string words = quality.words;
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words;
}

std::string share_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

std::string quality_text(double mean, double low, double high, std::size_t seeds) {
  const std::string text = share_text(mean);
  return seeds < 2 ? text : text + " (" + share_text(low) + " to " + share_text(high) + ")";
}

}  // namespace attnbench::reports
