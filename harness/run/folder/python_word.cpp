#include "harness/run/folder/python_word.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/hash.hpp"
#include "harness/run/folder/fingerprint.hpp"

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view prefix = "python:";

struct Parts {
  std::string target;  ///< FILE.py or PACKAGE.MODULE
  std::string name;
};

Parts parts_of(const std::string& word) {
  const std::string rest = word.substr(prefix.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos) return {rest, ""};
  return {rest.substr(0, colon), rest.substr(colon + 1)};
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// "GatedDelta" and "gated-delta" are "gated_delta", "HTTPServer" is "http_server".
std::string lower(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins = is_capital(c) && i > 0 &&
                        (is_small(text[i - 1]) ||
                         (is_capital(text[i - 1]) && i + 1 < text.size() && is_small(text[i + 1])));
    if (begins) out += '_';
    if (is_capital(c)) {
      out += static_cast<char>(c - 'A' + 'a');
    } else if (is_small(c)) {
      out += c;
    } else {
      out += '_';
    }
  }
  const std::size_t begin = out.find_first_not_of('_');
  return begin == std::string::npos ? std::string() : out.substr(begin);
}

bool is_file(const std::string& target) { return target.ends_with(".py"); }

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool is_python(const std::string& word) { return word.starts_with(prefix); }

std::string mechanism_of(const std::string& word) {
  const Parts parts = parts_of(word);
  const std::string whole = is_file(parts.target) ? fs::path(parts.target).stem().string()
                                                  : parts.target.substr(0, parts.target.find('.'));
  const std::string home = lower(whole);
  const std::string name = lower(parts.name);
  std::string both = home == name || home.empty() ? name : home + "_" + name;
  if (both.empty() || std::isdigit(static_cast<unsigned char>(both[0])) != 0) both = "py_" + both;
  return both;
}

fs::path file_of(const std::string& word) {
  const Parts parts = parts_of(word);
  return is_file(parts.target) ? fs::path(parts.target) : fs::path();
}

fs::path declaration_file(const std::string& word) {
  std::error_code none;
  const std::string key = word + "\n" + fs::current_path(none).string() + "\n" +
                          environment("VIRTUAL_ENV") + "\n" + environment("PYTHONPATH") + "\n" +
                          environment("PYTHONHOME");
  return cache_file("python-" + result::hash_text(key) + ".json");
}

std::vector<fs::path> files_of_python(const std::string& word) {
  std::vector<fs::path> files;
  if (const fs::path own = file_of(word); !own.empty()) files.push_back(own);
  const auto known = recalled(declaration_file(word));
  if (!known || !known->is_object() || !known->contains("hashes")) return files;
  for (const auto& [file, hash] : known->at("hashes").items()) {
    if (std::find(files.begin(), files.end(), fs::path(file)) == files.end()) files.push_back(file);
  }
  return files;
}

}  // namespace attnbench::run
