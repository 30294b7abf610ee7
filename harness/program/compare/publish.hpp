// A comparison for machines that show it elsewhere: Markdown for pull requests, JUnit for lists of
// tests.
#pragma once

#include <string>
#include <vector>

#include "harness/program/compare/compare.hpp"

namespace attnbench::compare {

/// What a reader needs beside the pairs.
struct Publication {
  std::string title;                 ///< "ab ci_kernels"; the same in every run of one comparison
  std::string basis;                 ///< a sentence: the machine and its rounds
  std::vector<std::string> details;  ///< sentences: sides, commits, gate, …
  std::string command;               ///< the command that repeats the comparison
};

/// The most bytes of a Markdown text, whatever the comparison: GitHub takes 65,536 characters.
constexpr std::size_t max_markdown = 60000;

/// The comparison as Markdown: first a marker line, "<!-- attnbench ab ci_kernels -->", by which a
/// bot finds its own comment, then the verdict or, of a description, the basis; what moved, what is
/// unclear and what is missing; folded, all others and how it was measured. Rows that have no room
/// are counted.
std::string to_markdown(const Comparison& comparison, const Publication& publication);

/// A test case for each pair: SLOW is a failure; UNCLEAR, NEW and GONE are skipped, with a reason.
std::string to_junit(const Comparison& comparison, const Publication& publication);

/// One of several comparisons that a command made, such as `ab` of two suites.
struct PublishedComparison {
  Comparison comparison;
  Publication publication;
};

/// One or several comparisons in one text: one marker line, which names all of them, and equal
/// shares of the room; a test suite for each.
std::string to_markdown(const std::vector<PublishedComparison>& all);
std::string to_junit(const std::vector<PublishedComparison>& all);

}  // namespace attnbench::compare
