#include "core/process/python_word.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/hash.hpp"
#include "core/process/fingerprint.hpp"
#include "core/protocol.hpp"

namespace attnbench::process {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view prefix = "python:";

struct Parts {
  std::string target;  ///< FILE.py or PACKAGE.MODULE
  std::string name;
};

Parts parts_of(const std::string& word) {
  const std::string rest = PluginName(word).path.substr(prefix.size());
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

/// Always a valid name of a mechanism.
std::string joined(const std::string& home, const std::string& name) {
  std::string both = home == name || home.empty() ? name : home + "_" + name;
  if (both.empty() || std::isdigit(static_cast<unsigned char>(both[0])) != 0) both = "py_" + both;
  return both;
}

/// The path below `folder`; empty where it is elsewhere.
std::string below(const fs::path& file, const fs::path& folder) {
  const fs::path path = file.lexically_relative(folder);
  return path.empty() || *path.begin() == ".." ? "" : path.string();
}

bool is_file(const std::string& target) { return target.ends_with(".py"); }

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool is_python(const std::string& word) { return PluginName(word).path.starts_with(prefix); }

std::string mechanism_of(const std::string& word) {
  if (const std::string as = PluginName(word).as; !as.empty()) return as;
  const Parts parts = parts_of(word);
  const std::string whole = is_file(parts.target) ? fs::path(parts.target).stem().string()
                                                  : parts.target.substr(0, parts.target.find('.'));
  return joined(lower(whole), lower(parts.name));
}

std::vector<std::string> longer_names_of(const std::string& word) {
  const Parts parts = parts_of(word);
  if (!is_file(parts.target)) return {joined(lower(parts.target), lower(parts.name))};
  std::vector<std::string> names;
  std::string name = mechanism_of(PluginName(word).path);
  for (fs::path folder = fs::path(parts.target).parent_path(); folder.has_filename();
       folder = folder.parent_path()) {
    if (const std::string more = lower(folder.filename()); !more.empty()) name = more + "_" + name;
    names.push_back(joined("", name));
  }
  return names;
}

std::string portable(const std::string& word, const fs::path& folder) {
  const fs::path file = file_of(word);
  if (file.empty()) return PluginName(word).path;
  std::error_code none;
  const fs::path here = fs::current_path(none);
  std::string path = below(file, (here / folder).lexically_normal());
  if (path.empty()) path = below(file, here);
  return std::string(prefix) + (path.empty() ? file.string() : path) + ":" + parts_of(word).name;
}

std::string home_of(const std::string& word) { return parts_of(word).target; }

fs::path file_of(const std::string& word) {
  const Parts parts = parts_of(word);
  return is_file(parts.target) ? fs::path(parts.target) : fs::path();
}

fs::path declaration_file(const std::string& word) {
  std::error_code none;
  const std::string key = PluginName(word).path + "\n" + fs::current_path(none).string() + "\n" +
                          environment("VIRTUAL_ENV") + "\n" + environment("PYTHONPATH") + "\n" +
                          environment("PYTHONHOME");
  return cache_file("python-" + hash_text(key) + ".json");
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

}  // namespace attnbench::process
