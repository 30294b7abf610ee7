#include "harness/program/compare/publish.hpp"

#include <algorithm>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"

namespace attnbench::compare {
namespace {

/// Untrusted text, shortened and escaped so that Markdown shows it literally.
std::string shown(const std::string& text, std::size_t most = 300) {
  return text::escape_markdown(text::escape_html(text::quotable(text, most)));
}

std::string full_name(const Pair& pair) {
  return pair.what.empty() ? pair.name : pair.name + " " + pair.what;
}

std::string ratio_words(const Pair& pair) {
  return pair.ratio > 0 ? ratio_text(pair.ratio, pair.ratio_low, pair.ratio_high) : "";
}

std::string median_words(const std::optional<Spread>& side) {
  return side ? text::human_seconds(side->median) : "";
}

/// Markdown that grows up to a limit.
class Page {
 public:
  explicit Page(std::size_t most) : most_(most) {}
  std::size_t most() const { return most_; }
  /// Appends `text` unless less than `room` bytes would be left for what must follow.
  bool add(const std::string& text, std::size_t room) {
    if (text_.size() + text.size() + room > most_) return false;
    text_ += text;
    return true;
  }
  void add(const std::string& text) { text_ += text; }
  std::string text() && { return std::move(text_); }

 private:
  std::size_t most_;  ///< bytes
  std::string text_;
};

using Pairs = std::vector<const Pair*>;

Pairs with_verdicts(const Comparison& comparison, const std::vector<SpeedVerdict>& verdicts) {
  Pairs found;
  for (const SpeedVerdict verdict : verdicts) {
    for (const Pair& pair : comparison.pairs) {
      if (pair.verdict == verdict) found.push_back(&pair);
    }
  }
  return found;
}

/// Shares of a page: what follows the last table, and in it what follows the sentences.
std::size_t room_for_details(const Page& page) { return page.most() / 5; }
std::size_t room_for_command(const Page& page) { return page.most() / 20; }
/// "</details>", and the line that counts what is left out.
constexpr std::size_t room_for_end = 200;

void add_table(Page& page, const std::string& title, const Pairs& pairs, bool folded) {
  if (pairs.empty()) return;
  const std::string count = std::to_string(pairs.size());
  std::string head = folded ? "<details><summary>" + title + " (" + count + ")</summary>\n\n"
                            : "**" + title + "**\n\n";
  head += "| cell | verdict | new / base | base | new | reason |\n|:--|:--|:--|--:|--:|:--|\n";
  const std::size_t room = room_for_details(page) + room_for_end;
  if (!page.add(head, room)) {
    page.add(title + ": " + count + ", which ab.json lists.\n\n");
    return;
  }
  std::size_t written = 0;
  for (const Pair* pair : pairs) {
    const std::string row = "| " + shown(full_name(*pair)) + " | " + to_string(pair->verdict) +
                            " | " + ratio_words(*pair) + " | " + median_words(pair->base) + " | " +
                            median_words(pair->changed) + " | " + shown(pair->reason) + " |\n";
    if (!page.add(row, room)) break;
    ++written;
  }
  if (written < pairs.size()) {
    page.add("\nand " + std::to_string(pairs.size() - written) + " more, which ab.json lists.\n");
  }
  page.add(folded ? "\n</details>\n\n" : "\n");
}

void add_details(Page& page, const Comparison& comparison, const Publication& publication) {
  page.add("<details><summary>How it was measured</summary>\n\n");
  std::vector<std::string> sentences{publication.basis};
  sentences.insert(sentences.end(), publication.details.begin(), publication.details.end());
  for (const std::string& one : comparison.differences) sentences.push_back("differs: " + one);
  for (const std::string& one : sentences) {
    if (!one.empty() && !page.add("- " + shown(one) + "\n", room_for_command(page))) break;
  }
  const std::size_t max_of_command = page.most() / 30;
  page.add("\n```sh\n" + text::quotable(publication.command, max_of_command) +
           "\n```\n\n</details>\n");
}

std::string attribute(const std::string& text) { return text::escape_html(text::printable(text)); }

std::string marker(const std::string& title) {
  return "<!-- attnbench " + text::escape_html(text::quotable(title, 100)) + " -->\n";
}

/// What follows the marker.
std::string section(const Comparison& comparison, const Publication& publication,
                    std::size_t most) {
  const std::string title = shown(publication.title, 100);
  const std::string counts = verdict_counts(comparison);
  Page page(most);
  if (comparison.turns) {
    page.add("### attnbench " + title + ": " + counts + "\n\n");
  } else {
    page.add(shown(publication.basis, 1000) + "\n\n### attnbench " + title + ": " + counts +
             "\n\nA description of two results measured apart, not a verdict.\n\n");
  }
  add_table(page, "What moved", with_verdicts(comparison, {SpeedVerdict::slow, SpeedVerdict::fast}),
            false);
  add_table(page, "Unclear", with_verdicts(comparison, {SpeedVerdict::unclear}), false);
  add_table(page, "On one side alone",
            with_verdicts(comparison, {SpeedVerdict::added, SpeedVerdict::gone}), false);
  add_table(page, "The same", with_verdicts(comparison, {SpeedVerdict::same}), true);
  add_details(page, comparison, publication);
  return std::move(page).text();
}

std::string test_suite(const Comparison& comparison, const Publication& publication) {
  const auto count = [&](const auto& is) {
    return std::to_string(std::count_if(comparison.pairs.begin(), comparison.pairs.end(), is));
  };
  const auto failed = [](const Pair& pair) { return pair.verdict == SpeedVerdict::slow; };
  const auto skipped = [](const Pair& pair) {
    return pair.verdict == SpeedVerdict::unclear || pair.verdict == SpeedVerdict::added ||
           pair.verdict == SpeedVerdict::gone;
  };
  const std::string title = attribute("attnbench " + publication.title);
  std::string xml = "  <testsuite name=\"" + title + "\" tests=\"" +
                    std::to_string(comparison.pairs.size()) + "\" failures=\"" + count(failed) +
                    "\" errors=\"0\" skipped=\"" + count(skipped) + "\">\n";
  for (const Pair& pair : comparison.pairs) {
    xml += "    <testcase classname=\"" + title + "\" name=\"" + attribute(full_name(pair)) + "\"";
    const std::string message =
        attribute(std::string(to_string(pair.verdict)) +
                  (ratio_words(pair).empty() ? "" : " " + ratio_words(pair)) +
                  (pair.reason.empty() ? "" : ": " + pair.reason));
    if (failed(pair)) {
      xml += ">\n      <failure message=\"" + message + "\"/>\n    </testcase>\n";
    } else if (skipped(pair)) {
      xml += ">\n      <skipped message=\"" + message + "\"/>\n    </testcase>\n";
    } else {
      xml += ">\n      <system-out>" + message + "</system-out>\n    </testcase>\n";
    }
  }
  return xml + "  </testsuite>\n";
}

}  // namespace

std::string to_markdown(const std::vector<PublishedComparison>& all) {
  if (all.empty()) return "";
  std::string title;
  for (const PublishedComparison& one : all)
    title += (title.empty() ? "" : ", ") + one.publication.title;
  std::string text = marker(title);
  const std::size_t share = (max_markdown - text.size()) / all.size();
  for (const PublishedComparison& one : all) {
    text += (&one == &all.front() ? "" : "\n");
    text += section(one.comparison, one.publication, share - 1);
  }
  return text;
}

std::string to_junit(const std::vector<PublishedComparison>& all) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const PublishedComparison& one : all) xml += test_suite(one.comparison, one.publication);
  return xml + "</testsuites>\n";
}

std::string to_markdown(const Comparison& comparison, const Publication& publication) {
  return to_markdown({{comparison, publication}});
}

std::string to_junit(const Comparison& comparison, const Publication& publication) {
  return to_junit({{comparison, publication}});
}

}  // namespace attnbench::compare
