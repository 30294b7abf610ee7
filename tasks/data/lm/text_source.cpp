#include "tasks/data/lm/text_source.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/text/printable.hpp"
#include "tasks/data/cache_writer.hpp"
#include "tasks/data/input.hpp"

namespace attnbench::tasks::data::lm {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, Division> division_names[] = {{"place", Division::place},
                                                               {"enwik8", Division::enwik8},
                                                               {"folders", Division::folders},
                                                               {"files", Division::files}};
constexpr std::uint64_t enwik8_bytes = 100'000'000;
constexpr std::uint64_t enwik8_held_out = 5'000'000;  // validation, and as many of the test

/// A part of the text that belongs to one split.
struct Stretch {
  Split split;
  std::uint64_t first;  ///< its place in the text, in tokens
  std::uint64_t tokens;
  std::uint64_t bytes = 0;  ///< of its files, of the divisions by name

  std::uint64_t rows() const { return (tokens + tokens_per_row - 1) / tokens_per_row; }
};

/// The split of the innermost folder that has the name of one.
std::optional<Split> split_of_folder(const std::string& name) {
  const std::vector<std::string_view> parts = components(name);
  for (std::size_t i = parts.size(); i-- > 1;) {
    for (const Split split : every_split) {
      if (parts[i - 1] == to_string(split)) return split;
    }
  }
  return std::nullopt;
}

/// The split that the last such word of a file's name says: "tiny_shakespeare_val.bin".
std::optional<Split> split_of_file(const std::string& name) {
  constexpr std::pair<std::string_view, Split> words[] = {{"train", Split::train},
                                                          {"val", Split::validation},
                                                          {"valid", Split::validation},
                                                          {"validation", Split::validation},
                                                          {"test", Split::test}};
  const std::string file = fs::path(name).filename().string();
  std::optional<Split> found;
  for (std::size_t begin = 0, end = 0; begin < file.size(); begin = end + 1) {
    end = std::min(file.find_first_of("._-", begin), file.size());
    const std::string_view word = std::string_view(file).substr(begin, end - begin);
    for (const auto& [known, split] : words) {
      if (word == known) found = split;
    }
  }
  return found;
}

bool by_name(Division division) {
  return division == Division::folders || division == Division::files;
}

std::string unit_of(const TextFileRules& rules) {
  return rules.encoding == Encoding::bytes ? "bytes" : "tokens";
}

/// What the first reading of a text finds.
struct Survey {
  std::uint64_t files = 0;
  std::uint64_t tokens = 0;
  std::string hash;
  std::vector<Stretch> stretches;  ///< of the divisions by name
};

Content content_of(const TextFileRules& rules) {
  const bool text = rules.encoding == Encoding::bytes || rules.encoding == Encoding::words;
  return rules.raw ? Content::raw : text ? Content::unpacked : Content::numbers;
}

/// The files of splits by name, to see one that holds a split in another form.
class FormsOfSplits {
 public:
  /// Why the next file cannot be joined with those before it; empty where it can.
  std::string fault(Split split, const std::string& name) {
    const fs::path file = fs::path(name).filename();
    const std::string ending = file.extension();
    // Endings of digits number parts.
    const auto is_digit = [](unsigned char letter) { return std::isdigit(letter) != 0; };
    if (ending.size() > 1 && std::all_of(ending.begin() + 1, ending.end(), is_digit)) return "";
    const auto [place, is_new] = seen_.try_emplace({split, file.stem()}, name);
    if (is_new) return "";
    const std::string& other = place->second;
    if (other == name) return "is there twice, packed and unpacked: leave one of both";
    if (fs::path(other).extension() == ending) return "";  // of another folder
    return "holds " + std::string(to_string(split)) + " in another form than " +
           text::quotable(other) + ", by their names: leave one of both";
  }

 private:
  std::map<std::pair<Split, std::string>, std::string> seen_;
};

/// Goes on to the next file of the text; false at its end.
bool next_file(TokenFiles& files, Division division) {
  while (files.next()) {
    if (division != Division::files || split_of_file(files.name())) return true;
  }
  return false;
}

Survey survey_of(const fs::path& from, const TextFileRules& rules, Words& words,
                 const ProgressCall& progress) {
  Survey survey;
  ContentHash hash;
  TextCheck text;
  std::uint64_t bytes = 0;
  TokenFiles files(from, rules.encoding, rules.vocabulary, words, progress, content_of(rules),
                   [&](std::string_view part) {
                     hash.add(part);
                     text.add(part);
                     bytes += part.size();
                   });
  FormsOfSplits forms;
  std::vector<Token> piece(1 << 20);
  while (next_file(files, rules.division)) {
    text = {};
    bytes = 0;
    std::uint64_t tokens = 0;
    for (std::size_t got = piece.size(); got == piece.size(); tokens += got) {
      got = files.read(piece);
    }
    if (content_of(rules) == Content::unpacked && !text.fault().empty()) {
      throw UsageError(files.at(text.fault() + ": give a text, or pass --raw to learn its bytes"));
    }
    if (tokens == 0 && rules.encoding != Encoding::bytes) {
      throw UsageError(files.at("is empty; expected tokens"));
    }
    const std::uint64_t first = survey.tokens;
    ++survey.files;
    survey.tokens += tokens;
    if (!by_name(rules.division) || tokens == 0) continue;
    const bool by_folder = rules.division == Division::folders;
    const std::optional<Split> split =
        by_folder ? split_of_folder(files.name()) : split_of_file(files.name());
    if (split && !by_folder) {
      if (const std::string fault = forms.fault(*split, files.name()); !fault.empty()) {
        throw UsageError(files.at(fault));
      }
    }
    if (!split) {
      throw UsageError(files.at(
          "stands in none of the folders train, validation and test, by which the text is to be "
          "split: move it, or set split to place"));
    }
    if (survey.stretches.empty() || survey.stretches.back().split != *split) {
      survey.stretches.push_back({*split, first, 0});
    }
    survey.stretches.back().tokens += tokens;
    survey.stretches.back().bytes += bytes;
  }
  survey.hash = hash.text();
  return survey;
}

std::vector<Stretch> by_place(const fs::path& from, const TextFileRules& rules,
                              const Survey& survey) {
  if (survey.files > 1 && rules.encoding != Encoding::bytes) {
    throw UsageError(from.string() + ": holds " + std::to_string(survey.files) +
                     " files, whose tokens would be split by place: set split to files or "
                     "folders, or give one file");
  }
  const auto part = [&](double share) {
    return static_cast<std::uint64_t>(share * static_cast<double>(survey.tokens));
  };
  const std::uint64_t validation = part(rules.validation_share);
  const std::uint64_t test = part(rules.test_share);
  if (validation == 0 || test == 0 || validation + test >= survey.tokens) {
    const std::string unit = unit_of(rules);
    throw UsageError(from.string() + ": the shares leave a split without " + unit + ": of " +
                     std::to_string(survey.tokens) + " " + unit + " validation_share takes " +
                     std::to_string(validation) + " and test_share " + std::to_string(test) +
                     "; all three splits need some");
  }
  const std::uint64_t train = survey.tokens - validation - test;
  return {{Split::train, 0, train},
          {Split::validation, train, validation},
          {Split::test, train + validation, test}};
}

std::vector<Stretch> as_enwik8(const fs::path& from, const TextFileRules& rules,
                               std::uint64_t bytes) {
  if (rules.encoding != Encoding::bytes) {
    throw UsageError(from.string() + ": enwik8 is split by its bytes: set tokens to bytes");
  }
  if (bytes != enwik8_bytes) {
    throw UsageError(from.string() + ": has " + std::to_string(bytes) + " bytes, enwik8 has " +
                     std::to_string(enwik8_bytes) + ": give that file, or set split to place");
  }
  return {{Split::train, 0, bytes - 2 * enwik8_held_out},
          {Split::validation, bytes - 2 * enwik8_held_out, enwik8_held_out},
          {Split::test, bytes - enwik8_held_out, enwik8_held_out}};
}

std::vector<Stretch> named_splits(const fs::path& from, const TextFileRules& rules,
                                  std::vector<Stretch> stretches) {
  const bool folders = rules.division == Division::folders;
  const auto of = [&](Split split) {
    return std::find_if(stretches.begin(), stretches.end(),
                        [&](const Stretch& one) { return one.split == split; });
  };
  for (const Split split : every_split) {
    const auto count = std::count_if(stretches.begin(), stretches.end(),
                                     [&](const Stretch& one) { return one.split == split; });
    const std::string name = to_string(split);
    if (count == 0 && (folders || split != Split::test)) {
      throw UsageError(from.string() + ": has no " +
                       (folders ? "text in a folder " + name +
                                      "; train, validation and test are needed: add it, or set "
                                      "split to place"
                                : "tokens in a file of " + name +
                                      "; files with train and with val, valid or validation in "
                                      "their names are needed: add it, or set split to place"));
    }
    if (count > 1) {
      const std::string remedy =
          !fs::is_directory(from) ? "unpack it and give the folder"
          : folders               ? "they are read by name; move them into one folder " + name
                    : "they are read by name; rename them so that they follow each other, as " +
                          name + "_1 and " + name + "_2";
      throw UsageError(
          from.string() + ": files of " + name +
          " stand apart from each other, with those of another split between them: " + remedy);
    }
  }
  if (of(Split::test) == stretches.end()) {
    Stretch test = *of(Split::validation);
    test.split = Split::test;
    stretches.push_back(test);
  }
  return stretches;
}

class TextSource final : public RowSource {
 public:
  TextSource(const fs::path& from, const TextFileRules& rules, const ProgressCall& progress)
      : from_(from), rules_(rules) {
    const Survey survey = survey_of(from, rules, words_, progress);
    if (survey.tokens == 0 && rules.division != Division::files) {
      throw UsageError(from.string() + (survey.files == 0 ? ": holds no files" : ": is empty") +
                       "; expected a text");
    }
    if (words_.size() > static_cast<std::size_t>(rules.vocabulary)) {
      throw UsageError(from.string() + ": has " + std::to_string(words_.size()) +
                       " different words, <eos> among them, and vocabulary is " +
                       std::to_string(rules.vocabulary) + ": set it to that number");
    }
    stretches_ = rules.division == Division::enwik8 ? as_enwik8(from, rules, survey.tokens)
                 : by_name(rules.division)          ? named_splits(from, rules, survey.stretches)
                                                    : by_place(from, rules, survey);
    describe(survey);
  }

  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override {
    return std::accumulate(stretches_.begin(), stretches_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Stretch& one) { return sum + one.rows(); });
  }
  std::uint64_t cache_bytes() const override {
    return (token_bytes_of(description_) * tokens_per_row + 24) * rows() + 65'536;
  }

  void make(std::uint64_t number, Row& row) override {
    for (const Stretch& stretch : stretches_) {
      if (number >= stretch.rows()) {
        number -= stretch.rows();
        continue;
      }
      const std::uint64_t begin = number * tokens_per_row;
      go_to(stretch.first + begin);
      read(std::min(tokens_per_row, stretch.tokens - begin), row.tokens);
      row.second.clear();
      row.label = 0;
      row.split = stretch.split;
      row.order = static_cast<std::uint32_t>(number);
      return;
    }
  }

 private:
  void describe(const Survey& survey) {
    description_.task = "lm";
    description_.vocabulary = static_cast<int>(rules_.vocabulary);
    description_.classes = {"text"};
    // "folder/" has an empty last part.
    const fs::path named = from_.has_filename() ? from_ : from_.parent_path();
    const std::string encoding = to_string(rules_.encoding);
    description_.source = named.filename().string();
    description_.source_hash = survey.hash;
    description_.settings = {{"reader", encoding + " 1"},
                             {"split", to_string(rules_.division)},
                             {"text", rules_.name.empty() ? description_.source : rules_.name}};
    // A text of bytes says nothing of both, as those of earlier versions.
    if (rules_.encoding != Encoding::bytes) {
      description_.settings["tokens"] = encoding;
      description_.settings["vocabulary"] = rules_.vocabulary;
    }
    if (rules_.division == Division::place) {
      description_.settings["validation_share"] = rules_.validation_share;
      description_.settings["test_share"] = rules_.test_share;
    }
    description_.notes = {{"files", survey.files}};
    if (by_name(rules_.division) && survey.stretches.size() < stretches_.size()) {
      description_.notes["test"] = "the tokens of validation: no file is named test";
    }
    if (by_name(rules_.division) && rules_.encoding == Encoding::words) {
      for (const Stretch& one : stretches_) {
        description_.notes["bytes"][to_string(one.split)] = one.bytes;
      }
    }
  }

  void go_to(std::uint64_t token) {
    if (!files_ || token < at_) {
      files_.emplace(from_, rules_.encoding, rules_.vocabulary, words_, ProgressCall{},
                     content_of(rules_));
      at_ = 0;
      inside_ = false;
    }
    while (at_ < token) read(std::min<std::uint64_t>(token - at_, 1 << 20), passed_);
  }

  /// The next tokens, across the ends of files.
  void read(std::uint64_t count, std::vector<Token>& into) {
    into.resize(count);
    std::size_t done = 0;
    while (done < count) {
      if (!inside_ && !next_file(*files_, rules_.division)) {
        throw UsageError(from_.string() + ": changed while it was read: prepare it again");
      }
      inside_ = true;
      done += files_->read(std::span(into).subspan(done));
      if (done < count) inside_ = false;  // the end of this file
    }
    at_ += count;
  }

  fs::path from_;
  TextFileRules rules_;
  Words words_;
  DataDescription description_;
  std::vector<Stretch> stretches_;  ///< in the order of rows
  std::optional<TokenFiles> files_;
  std::uint64_t at_ = 0;  ///< token of the text that `files_` is at
  bool inside_ = false;   ///< whether it is in a file
  std::vector<Token> passed_;
};

}  // namespace

Division division_from(const std::string& name) {
  std::string known;
  for (const auto& [word, division] : division_names) {
    if (name == word) return division;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  throw UsageError("split must be one of " + known + ", not " + text::quotable(name));
}

const char* to_string(Division division) {
  for (const auto& [word, one] : division_names) {
    if (one == division) return word;
  }
  return "";
}

std::unique_ptr<RowSource> read_text(const fs::path& from, const TextFileRules& rules,
                                     const ProgressCall& progress) {
  return std::make_unique<TextSource>(from, rules, progress);
}

}  // namespace attnbench::tasks::data::lm
