// Helper of the tests with malformed suites: one case is a text, and what must be said of it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "core/failure.hpp"
#include "harness/program/suite/suite.hpp"
#include "tests/harness/program/suite/catalogue_fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::test {

struct Malformed {
  std::string text;
  int line;
  std::string pointer;
  std::vector<std::string> words;  ///< all in the sentence, in whatever order
};

/// The message that reading and expanding `text` as s.json ends with; empty if all is well.
inline std::string complaint(const std::string& text, const suite::Choices& choices = {}) {
  try {
    suite::expand(suite::parse_document("s.json", text), catalogue(), choices);
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return {};
}

/// Some line of the message names line and pointer and has all the words.
inline void check_malformed(const Malformed& wrong, const suite::Choices& choices = {}) {
  const std::string message = complaint(wrong.text, choices);
  INFO(wrong.text.substr(0, 400));
  INFO("said: " << message);
  const std::string place = "s.json:" + std::to_string(wrong.line) + ": " + wrong.pointer + ": ";
  std::istringstream lines(message);
  std::string line, found;
  while (std::getline(lines, line)) {
    if (line.rfind(place, 0) == 0) found = line;
  }
  CHECK(found.rfind(place, 0) == 0);
  for (const std::string& word : wrong.words) CHECK_THAT(found, Catch::Contains(word));
}

}  // namespace attnbench::test
