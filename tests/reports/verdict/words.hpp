// A verdict in words, a line for each thing that it says.
#pragma once

#include <string>

#include "reports/verdict/sentences.hpp"

namespace attnbench::test {

inline std::string words_of(const reports::verdict::Verdict& verdict) {
  std::string text;
  const auto add = [&](const std::vector<reports::verdict::Line>& lines) {
    for (const auto& line : lines) text += line.topic + ": " + line.text + "\n";
  };
  for (const auto& answer : verdict.answers) add(lines_of(answer));
  add(lines_of(verdict.exceptions));
  return text;
}

}  // namespace attnbench::test
