#include "harness/gallery/markdown.hpp"

#include "core/failure.hpp"
#include "core/json_file.hpp"

namespace attnbench::gallery {
namespace {

namespace fs = std::filesystem;
using suite::PaperFigure;
using suite::Picture;

constexpr const char* begin_mark = "<!-- figures: begin -->\n";
constexpr const char* end_mark = "<!-- figures: end -->\n";
constexpr std::size_t most_readme_bytes = result::mebibyte;

std::string link_to(const std::string& suite) { return "[`" + suite + "`](" + suite + ".json)"; }

/// A cell of a table: "|" would end it.
std::string cell_text(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '|') escaped += '\\';
    escaped += letter;
  }
  return escaped.empty() ? "–" : escaped;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell_text(cell) + " |";
  return line + "\n";
}

std::string what_it_is(const IndexedSuite& suite) {
  const PaperFigure* figure = suite::find_paper_figure(suite.figure);
  return (figure == nullptr ? "" : figure->label + ": ") + suite.title;
}

std::string caption_of(const Index& index, const Picture& picture) {
  const IndexedSuite* suite = index.find(picture.suite);
  const PaperFigure* figure = suite == nullptr ? nullptr : suite::find_paper_figure(suite->figure);
  return (figure == nullptr ? "" : figure->label + ": ") + picture.caption;
}

}  // namespace

std::string suites_block(const Index& index) {
  std::string text = row({"suite", "what it is", "in full", "quick"}) + "|---|---|---|---|\n";
  for (const IndexedSuite& suite : index.all) {
    text += row({link_to(suite.name), what_it_is(suite), full_time(suite), quick_time(suite)});
  }
  text += "\nWhat stands in the papers, and what is here of it:\n\n";
  text += row({"figure or table", "what it shows", "suite", "what is missing", "what differs"}) +
          "|---|---|---|---|---|\n";
  for (const PaperFigure& figure : suite::paper_figures()) {
    std::string suites;
    for (const IndexedSuite* suite : index.of_figure(figure.name)) {
      suites += (suites.empty() ? "" : ", ") + link_to(suite->name);
    }
    text += row({figure.label, figure.title, suites, figure.missing, figure.differs});
  }
  return text;
}

std::string gallery_block(const Index& index, const fs::path& root) {
  std::string text = "| | |\n|---|---|\n";
  std::size_t shown = 0;
  for (const Picture& picture : suite::gallery_pictures()) {
    const fs::path file = index.gallery / (picture.file + ".svg");
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    text += "| ![" + picture.alt + "](" + file.lexically_proximate(root).string() + ") " +
            cell_text(caption_of(index, picture)) + " ";
    if (++shown % 2 == 0) text += "|\n";
  }
  if (shown % 2 != 0) text += "| |\n";
  return text;
}

std::string with_block(const std::string& text, const std::string& block, const fs::path& file) {
  const std::size_t begin = text.find(begin_mark);
  const std::size_t end = text.find(end_mark);
  const bool once = begin != std::string::npos && end != std::string::npos && begin < end &&
                    text.find(begin_mark, begin + 1) == std::string::npos &&
                    text.find(end_mark, end + 1) == std::string::npos;
  if (!once) {
    throw UsageFailure(file.string() +
                       ": expected the lines <!-- figures: begin --> and <!-- figures: end -->, "
                       "once each and in this order; what is between them is written");
  }
  return text.substr(0, begin) + begin_mark + block + text.substr(end);
}

std::vector<Readme> readmes(const Index& index) {
  const fs::path root = index.suites.has_parent_path() ? index.suites.parent_path() : fs::path(".");
  std::vector<Readme> all;
  const auto add = [&](const fs::path& file, const std::string& block) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return;
    const std::string present = result::read_file(file, "a README", most_readme_bytes);
    all.push_back({file, present, with_block(present, block, file)});
  };
  add(index.suites / "README.md", suites_block(index));
  add(root / "README.md", gallery_block(index, root));
  return all;
}

}  // namespace attnbench::gallery
