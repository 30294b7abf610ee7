#include "harness/program/suite/document.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <sstream>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr std::size_t max_bytes = 4u << 20;
constexpr std::size_t max_values = 100000;
constexpr std::size_t deepest = 32;

/// How far the parser has read. After a number, and only then, it is one character ahead.
struct Progress {
  const char* begin = nullptr;
  const char* now = nullptr;
  std::size_t newlines = 0;
  std::size_t line() const { return 1 + newlines - (now != begin && now[-1] == '\n' ? 1 : 0); }
};

/// An input iterator that updates `progress`; a pointer, because the parser copies its iterators.
class Reader {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Reader(const char* at, Progress* progress) : at_(at), progress_(progress) {}
  reference operator*() const { return *at_; }
  Reader& operator++() {
    progress_->newlines += *at_ == '\n' ? 1 : 0;
    progress_->now = ++at_;
    return *this;
  }
  bool operator==(const Reader& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  Progress* progress_;
};

/// Builds the value and records the line of each part.
class Builder : public nlohmann::json_sax<Ordered> {
 public:
  Builder(Document& document, Problems& problems, const Progress& progress)
      : document_(document), problems_(problems), progress_(progress) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return out_of_range(std::to_string(value));
    }
    return scalar(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return whole ? out_of_range(text) : scalar(value);
  }
  bool string(string_t& value) override { return scalar(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Ordered::object()); }
  bool start_array(std::size_t) override { return open(Ordered::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    level.key = name;
    const std::string pointer = child_pointer(level.pointer, name);
    const auto [known, fresh] = document_.lines.emplace(pointer, progress_.line());
    if (!fresh) {
      problems_.add(document_.name + ":" + std::to_string(progress_.line()) + ": " + pointer + ": ",
                    "the key \"" + name + "\" stands here a second time, first on line " +
                        std::to_string(known->second) + "; keep one of them");
    }
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string text = error.what();
    if (text.find("number overflow") != std::string::npos) {
      const std::size_t quote = text.find('\'');
      out_of_range(text.substr(quote + 1, text.rfind('\'') - quote - 1));
    } else if (text.find("unexpected end of input") != std::string::npos) {
      add("the text ends in the middle of a value; is the file cut off?");
    } else {
      const std::size_t dash = text.find(" - ");
      add("not JSON: " + (dash == std::string::npos ? text : text.substr(dash + 3)));
    }
    return false;
  }

 private:
  struct Level {
    Ordered* value;
    std::string pointer;
    std::string key;
  };

  std::string here() const {
    if (levels_.empty()) return {};
    const Level& level = levels_.back();
    if (level.value->is_array()) {
      return child_pointer(level.pointer, std::to_string(level.value->size()));
    }
    return level.key.empty() ? level.pointer : child_pointer(level.pointer, level.key);
  }

  void add(const std::string& what) {
    const std::string pointer = here();
    problems_.add(document_.name + ":" + std::to_string(progress_.line()) + ": " +
                      (pointer.empty() ? "/" : pointer) + ": ",
                  what);
  }

  bool out_of_range(const std::string& text) {
    add("the number " + text +
        " is too large to be stored; expected one within ±9.2e18 for integers, "
        "±1.7e308 for others");
    return scalar(nullptr);
  }

  Ordered* place(Ordered value) {
    if (levels_.empty()) {
      document_.value = std::move(value);
      return &document_.value;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    // Ordered's own insertion looks through all keys first; `key` has already done so faster.
    auto& members = level.value->get_ref<Ordered::object_t&>();
    members.push_back({level.key, std::move(value)});
    return &members.back().second;
  }

  bool note() {
    if (++values_ > max_values) {
      add("more than " + std::to_string(max_values) + " values; expected a suite");
      return false;
    }
    document_.lines.emplace(here(), progress_.line());
    return true;
  }

  bool scalar(Ordered value) {
    if (!note()) return false;
    place(std::move(value));
    return true;
  }

  bool open(Ordered value) {
    if (!note()) return false;
    if (levels_.size() >= deepest) {
      add("nested more than " + std::to_string(deepest) + " deep; no suite needs that");
      return false;
    }
    std::string pointer = here();
    Ordered* placed = place(std::move(value));
    levels_.push_back({placed, std::move(pointer), {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  Document& document_;
  Problems& problems_;
  const Progress& progress_;
  std::vector<Level> levels_;
  std::size_t values_ = 0;
};

std::string read_text(const std::filesystem::path& file) {
  const std::string name = file.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw UsageFailure(name + ": this is a folder; expected a suite file in JSON");
  }
  if (!std::filesystem::exists(file, ignored)) {
    std::vector<std::string> names;
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".json") names.push_back(entry.path().filename());
    }
    const std::string nearest = text::nearest_word(file.filename(), names);
    throw UsageFailure(name + ": there is no such file" +
                       (nearest.empty()
                            ? ""
                            : "; did you mean \"" +
                                  (file.has_parent_path() ? (folder / nearest).string() : nearest) +
                                  "\"?"));
  }
  return read_file(file, "a suite file in JSON", max_bytes);
}

/// Where the first offending byte is, and why it offends.
struct EncodingFault {
  std::size_t position = 0;
  std::string reason;  ///< empty = there is none
};

/// The first fault of text that is not UTF-8 without byte order mark and zero bytes.
EncodingFault encoding_fault(const std::string& text) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    return {0, "the file begins with a byte order mark; save it as UTF-8 without one"};
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return {0, "the file is UTF-16; save it as UTF-8"};
  }
  for (std::size_t position = 0; position < text.size();) {
    if (text[position] == '\0') {
      return {position, "a zero byte stands here; is this a text file?"};
    }
    const std::size_t length = text::letter_length(text, position);
    if (length == 0) {
      std::array<char, 8> hexadecimal{};
      std::snprintf(hexadecimal.data(), hexadecimal.size(), "0x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(text[position])));
      return {position, std::string("not UTF-8: byte ") + hexadecimal.data() +
                            " begins no character; save the file as UTF-8"};
    }
    position += length;
  }
  return {};
}

/// 1-based line of the byte at `position`.
std::size_t line_of(const std::string& text, std::size_t position) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(position, text.size()));
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

/// Of a suite, or of a profile, which has the form of one.
void leave_out_words(Json& suite) {
  if (!suite.is_object()) return;
  // Not in "set", where "source" is a setting that says which data are read.
  for (const char* words : {"$schema", "title", "notes", "source", "figure"}) suite.erase(words);
  const auto each_of = [&](const char* key, const auto& change) {
    const auto parts = suite.find(key);
    if (parts == suite.end() || !parts->is_object()) return;
    for (Json& part : *parts) change(part);
  };
  each_of("tasks", [](Json& task) {
    if (task.is_object()) task.erase("title");
  });
  each_of("profiles", leave_out_words);
}

}  // namespace

std::string child_pointer(const std::string& parent, const std::string& key) {
  return parent + (Json::json_pointer() / key).to_string();
}

std::string Document::place(const std::string& pointer) const {
  std::string nearest = pointer;
  while (!nearest.empty() && lines.count(nearest) == 0) nearest.resize(nearest.rfind('/'));
  const auto line = lines.find(nearest);
  std::string place = name;
  if (line != lines.end()) place.append(":").append(std::to_string(line->second));
  return place.append(": ").append(pointer.empty() ? "/" : pointer).append(": ");
}

Document read_document(const std::filesystem::path& file) {
  return parse_document(file.string(), read_text(file));
}

Document parse_document(const std::string& name, const std::string& text) {
  if (text.size() > max_bytes) {
    throw UsageFailure(name + ":1: /: the file is larger than 4 MiB; expected a suite");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw UsageFailure(name + ":1: /: the file is empty; expected a JSON object");
  }
  const EncodingFault fault = encoding_fault(text);
  if (!fault.reason.empty()) {
    throw UsageFailure(name + ":" + std::to_string(line_of(text, fault.position)) +
                       ": /: " + fault.reason);
  }
  Document document;
  document.name = name;
  document.hash = hash_text(text);
  Problems problems;
  Progress progress{text.data(), text.data(), 0};
  Builder builder(document, problems, progress);
  Ordered::sax_parse(Reader(text.data(), &progress), Reader(text.data() + text.size(), &progress),
                     &builder);
  problems.throw_if_any();
  return document;
}

std::string settings_hash(Json suite) {
  leave_out_words(suite);
  return hash_text(suite.dump());
}

void Problems::add(const std::string& place, const std::string& what) {
  constexpr std::size_t longest_place = 300;
  constexpr std::size_t longest_sentence = 700;
  const std::string message =
      text::quotable(place, longest_place) + text::quotable(what, longest_sentence);
  if (seen_.insert(message).second) messages_.push_back(message);
}

void Problems::throw_if_any() const {
  if (messages_.empty()) return;
  std::string text;
  std::size_t shown = 0;
  while (shown < messages_.size() && shown < max_shown &&
         text.size() + messages_[shown].size() < max_bytes) {
    text += (shown == 0 ? "" : "\n") + messages_[shown];
    ++shown;
  }
  if (messages_.size() > shown) {
    text += "\n… and " + std::to_string(messages_.size() - shown) + " more problems";
  }
  throw UsageFailure(text);
}

}  // namespace attnbench::suite
