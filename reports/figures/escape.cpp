#include "reports/figures/escape.hpp"

#include <map>

namespace attnbench::reports {
namespace {

std::string replaced(const std::string& text, const std::map<char, std::string>& words) {
  std::string result;
  for (const char letter : text) {
    const auto found = words.find(letter);
    if (found == words.end()) {
      result += letter;
    } else {
      result += found->second;
    }
  }
  return result;
}

}  // namespace

std::string escape_html(const std::string& text) {
  static const std::map<char, std::string> words{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  return replaced(text, words);
}

std::string escape_latex(const std::string& text) {
  static const std::map<char, std::string> words{{'\\', "\\textbackslash{}"},
                                                 {'{', "\\{"},
                                                 {'}', "\\}"},
                                                 {'&', "\\&"},
                                                 {'%', "\\%"},
                                                 {'$', "\\$"},
                                                 {'#', "\\#"},
                                                 {'_', "\\_"},
                                                 {'~', "\\textasciitilde{}"},
                                                 {'^', "\\textasciicircum{}"},
                                                 {'<', "\\textless{}"},
                                                 {'>', "\\textgreater{}"},
                                                 {'\n', " "}};
  return replaced(text, words);
}

std::string escape_markdown(const std::string& text) {
  static const std::map<char, std::string> words{{'|', "\\|"}, {'\n', " "},   {'*', "\\*"},
                                                 {'_', "\\_"}, {'<', "&lt;"}, {'`', "\\`"}};
  return replaced(text, words);
}

std::string escape_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted.append(letter == '"' ? 2 : 1, letter);
  return quoted += '"';
}

}  // namespace attnbench::reports
