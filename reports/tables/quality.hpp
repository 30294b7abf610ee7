// What trainings are judged by: the accuracy of answers, or the bits per byte of a language model,
// its perplexity where its tokens are no bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

struct Quality {
  const char* name;               ///< what names of figures begin with
  const char* metric;             ///< of the test, among a record's metrics
  const char* validation_metric;  ///< it selects the learning rate
  const char* train_metric;
  const char* words;               ///< "accuracy", in running text
  const char* plural;              ///< "accuracies"
  const char* title;               ///< "Accuracy on the test"
  const char* validation;          ///< "accuracy on the validation split"
  const char* selected;            ///< "best mean validation accuracy"
  const char* best;                ///< what the verdict calls the best one: "most accurate"
  const char* token;               ///< what a language model predicts: "byte"
  double (*of_loss)(double nats);  ///< of a language model, from its cross-entropy
  bool less_is_better;
  double perfect;  ///< what cannot be bettered

  bool better(double a, double b) const { return less_is_better ? a < b : a > b; }
};

/// The quality of a training; accuracy unless its record says that the loss decides.
const Quality& quality_of(const result::Training& training);
/// The quality of a panel's trainings, which are of one task; accuracy without any.
const Quality& quality_of(const Panel& panel);

/// The levels that language models of the panel are compared with, where all share them; else
/// empty.
std::vector<result::CountedLevel> counted_levels(const Panel& panel);
/// The level in words: "counts after two bytes".
std::string level_words(const result::CountedLevel& level);

/// An accuracy, bits per byte or a perplexity, with three decimals.
std::string share_text(double value);
/// "0.990", with the least and the greatest seed where there are several: "0.990 (0.981 to 0.994)".
std::string quality_text(double mean, double low, double high, std::size_t seeds);

/// Bits of a byte from the cross-entropy in nats.
double bits_of(double loss);

/// "Bits per byte" from "bits per byte": the quality's words at the beginning of a title.
std::string title_words(const Quality& quality);

}  // namespace attnbench::reports
