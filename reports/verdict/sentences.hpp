// The verdict in words, for the terminal and the page.
#pragma once

#include <string>
#include <vector>

#include "reports/tables/tables.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// One line of an answer: "fastest" and what is.
struct Line {
  std::string topic;
  std::string text;
};

/// What there is to say of one task, without what was not measured.
std::vector<Line> lines_of(const Answer& answer);

/// The lines "softmax (decode), 2 more" for each status that is not ok, with its number of cells.
std::vector<Line> lines_of(const std::vector<Exception>& exceptions);

/// The crossover in words: "from 1100 tokens on (900 to 1300)", "not up to 8192", …
std::string text_of(const CrossingStatement& crossover);

/// The same for a column of a table: "1000 (880 to 1300)", "not up to 8192", "cannot tell".
std::string short_text_of(const CrossingStatement& crossover);

/// "3.8 to 4.2", with two or three significant digits.
std::string range_text(double low, double high, int digits);

/// A ratio, "4.0 (3.8 to 4.2)", with the digits that its interval supports; with three around 1,
/// which it may exclude by little.
std::string times_text(const Estimate& ratio);

/// Labels as a sentence names them: "latte, linear and "softmax, naive"".
std::string named_list(const std::vector<std::string>& labels, const std::string& last);

/// What an answer's times are of: "forward pass", "step".
std::string timed_words(const Answer& answer);

/// A value of the axis: 1024, or 16.0 KiB of states.
std::string place_text(const std::string& axis, double x);

/// One sentence to repeat: machine, conditions, the headline of the table that ranks, and which
/// implementations it is of. Empty without a headline.
std::string sentence_of(const std::string& machine, const Ranking& ranking);

/// The verdict as text for the terminal: the tables that rank, the answers that have none, what is
/// not ranked, the sentence. Ends with a newline, and is empty where there is nothing to say.
std::string text_of(const Verdict& verdict, const TableStyle& style);

}  // namespace attnbench::reports::verdict
