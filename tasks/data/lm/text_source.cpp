#include "tasks/data/lm/text_source.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/text/printable.hpp"
#include "tasks/data/input.hpp"

namespace attnbench::tasks::data::lm {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, Division> division_names[] = {
    {"place", Division::place}, {"enwik8", Division::enwik8}, {"folders", Division::folders}};
constexpr std::uint64_t enwik8_bytes = 100'000'000;
constexpr std::uint64_t enwik8_held_out = 5'000'000;  // validation, and as many of the test

/// A part of the text that belongs to one split.
struct Stretch {
  Split split;
  std::uint64_t bytes;

  std::uint64_t rows() const { return (bytes + bytes_per_row - 1) / bytes_per_row; }
};

/// The split of the innermost folder that has the name of one.
std::optional<Split> split_of(const std::string& name) {
  const std::vector<std::string_view> parts = components(name);
  for (std::size_t i = parts.size(); i-- > 1;) {
    for (const Split split : every_split) {
      if (parts[i - 1] == to_string(split)) return split;
    }
  }
  return std::nullopt;
}

/// What the first reading of a text finds.
struct Survey {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::string hash;
  std::vector<Stretch> by_folder;  ///< of the division by folders
};

Content content_of(const TextFileRules& rules) {
  return rules.raw ? Content::raw : Content::unpacked;
}

Survey survey_of(const fs::path& from, const TextFileRules& rules, const ProgressCall& progress) {
  Survey survey;
  ContentHash hash;
  std::vector<char> piece(1 << 20);
  Input input(from, progress, Links::inside, content_of(rules));
  while (input.next()) {
    std::uint64_t bytes = 0;
    TextCheck text;
    for (std::size_t got = piece.size(); got == piece.size();) {
      got = input.read(piece.data(), piece.size());
      hash.add({piece.data(), got});
      text.add({piece.data(), got});
      bytes += got;
    }
    if (!rules.raw && !text.fault().empty()) {
      throw UsageError(input.at(text.fault() + ": give a text, or pass --raw to learn its bytes"));
    }
    ++survey.files;
    survey.bytes += bytes;
    if (rules.division != Division::folders || bytes == 0) continue;
    const std::optional<Split> split = split_of(input.name());
    if (!split) {
      throw UsageError(input.at(
          "stands in none of the folders train, validation and test, by which the text is to be "
          "split: move it, or set split to place"));
    }
    if (survey.by_folder.empty() || survey.by_folder.back().split != *split) {
      survey.by_folder.push_back({*split, 0});
    }
    survey.by_folder.back().bytes += bytes;
  }
  survey.hash = hash.text();
  return survey;
}

std::vector<Stretch> by_place(const fs::path& from, const TextFileRules& rules,
                              std::uint64_t bytes) {
  const auto part = [&](double share) {
    return static_cast<std::uint64_t>(share * static_cast<double>(bytes));
  };
  const std::uint64_t validation = part(rules.validation_share);
  const std::uint64_t test = part(rules.test_share);
  if (validation == 0 || test == 0 || validation + test >= bytes) {
    throw UsageError(from.string() + ": the shares leave a split without bytes: of " +
                     std::to_string(bytes) + " bytes validation_share takes " +
                     std::to_string(validation) + " and test_share " + std::to_string(test) +
                     "; all three splits need some");
  }
  return {{Split::train, bytes - validation - test},
          {Split::validation, validation},
          {Split::test, test}};
}

std::vector<Stretch> as_enwik8(const fs::path& from, std::uint64_t bytes) {
  if (bytes != enwik8_bytes) {
    throw UsageError(from.string() + ": has " + std::to_string(bytes) + " bytes, enwik8 has " +
                     std::to_string(enwik8_bytes) + ": give that file, or set split to place");
  }
  return {{Split::train, bytes - 2 * enwik8_held_out},
          {Split::validation, enwik8_held_out},
          {Split::test, enwik8_held_out}};
}

std::vector<Stretch> by_folder(const fs::path& from, const Survey& survey) {
  for (const Split split : every_split) {
    const auto count = std::count_if(survey.by_folder.begin(), survey.by_folder.end(),
                                     [&](const Stretch& one) { return one.split == split; });
    const std::string name = to_string(split);
    if (count == 0) {
      throw UsageError(from.string() + ": has no text in a folder " + name +
                       "; train, validation and test are needed: add it, or set split to place");
    }
    if (count > 1) {
      throw UsageError(
          from.string() + ": files of " + name +
          " stand apart from each other in the archive: unpack it and give the folder");
    }
  }
  return survey.by_folder;
}

class TextSource final : public RowSource {
 public:
  TextSource(const fs::path& from, const TextFileRules& rules, const ProgressCall& progress)
      : from_(from), content_(content_of(rules)) {
    const Survey survey = survey_of(from, rules, progress);
    if (survey.bytes == 0) {
      throw UsageError(from.string() + (survey.files == 0 ? ": holds no files" : ": is empty") +
                       "; expected a text");
    }
    stretches_ = rules.division == Division::enwik8    ? as_enwik8(from, survey.bytes)
                 : rules.division == Division::folders ? by_folder(from, survey)
                                                       : by_place(from, rules, survey.bytes);
    bytes_ = survey.bytes;
    description_.task = "lm";
    description_.vocabulary = 256;
    description_.classes = {"text"};
    // "folder/" has an empty last part.
    const fs::path named = from.has_filename() ? from : from.parent_path();
    description_.source = named.filename().string();
    description_.source_hash = survey.hash;
    description_.settings = {{"reader", "bytes 1"},
                             {"split", to_string(rules.division)},
                             {"text", rules.name.empty() ? description_.source : rules.name}};
    if (rules.division == Division::place) {
      description_.settings["validation_share"] = rules.validation_share;
      description_.settings["test_share"] = rules.test_share;
    }
    description_.notes = {{"files", survey.files}};
  }

  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override {
    return std::accumulate(stretches_.begin(), stretches_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Stretch& one) { return sum + one.rows(); });
  }
  std::uint64_t cache_bytes() const override { return bytes_ + 24 * rows() + 65'536; }

  void make(std::uint64_t number, Row& row) override {
    std::uint64_t first = 0;  // byte of the stretch
    for (const Stretch& stretch : stretches_) {
      if (number >= stretch.rows()) {
        number -= stretch.rows();
        first += stretch.bytes;
        continue;
      }
      const std::uint64_t begin = number * bytes_per_row;
      go_to(first + begin);
      read(std::min(bytes_per_row, stretch.bytes - begin));
      row.tokens.assign(buffer_.begin(), buffer_.end());
      row.second.clear();
      row.label = 0;
      row.split = stretch.split;
      row.order = static_cast<std::uint32_t>(number);
      return;
    }
  }

 private:
  void go_to(std::uint64_t byte) {
    if (!input_ || byte < at_) {
      input_.emplace(from_, ProgressCall{}, Links::inside, content_);
      at_ = 0;
      inside_ = false;
    }
    while (at_ < byte) read(std::min<std::uint64_t>(byte - at_, 1 << 20));
  }

  /// The next bytes into buffer_, across the ends of files.
  void read(std::uint64_t count) {
    buffer_.resize(count);
    std::size_t done = 0;
    while (done < count) {
      if (!inside_ && !input_->next()) {
        throw UsageError(from_.string() + ": changed while it was read: prepare it again");
      }
      inside_ = true;
      const std::size_t got = input_->read(reinterpret_cast<char*>(buffer_.data()) + done,
                                           static_cast<std::size_t>(count) - done);
      done += got;
      if (done < count) inside_ = false;  // the end of this file
    }
    at_ += count;
  }

  fs::path from_;
  Content content_;
  DataDescription description_;
  std::vector<Stretch> stretches_;  ///< in the order of the text
  std::uint64_t bytes_ = 0;
  std::optional<Input> input_;
  std::uint64_t at_ = 0;  ///< byte of the text that `input_` is at
  bool inside_ = false;   ///< whether it is in a file
  std::vector<unsigned char> buffer_;
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
