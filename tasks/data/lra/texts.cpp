#include "tasks/data/lra/texts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/text/printable.hpp"
#include "tasks/data/input.hpp"
#include "tasks/data/lra/tables.hpp"

namespace attnbench::tasks::data::lra {
namespace {

namespace fs = std::filesystem;

/// Where a text stands, as its name says.
struct TextName {
  Split split;
  std::string class_name, file;
};

std::optional<TextName> text_name(const std::string& name) {
  const std::vector<std::string_view> parts = components(name);
  if (parts.size() < 3 || !parts.back().ends_with(".txt")) return std::nullopt;
  const std::string_view folder = parts[parts.size() - 3];
  const std::string class_name(parts[parts.size() - 2]);
  for (const Split split : every_split) {
    if (folder == to_string(split) && class_name != "unsup") {
      return TextName{split, class_name, std::string(parts.back())};
    }
  }
  return std::nullopt;
}

class TextSource final : public RowSource {
 public:
  TextSource(const fs::path& from, const ReviewRules& rules, const ProgressCall& progress)
      : from_(from), content_(rules.raw ? Content::raw : Content::unpacked) {
    description_.task = "lra.text";
    description_.vocabulary = 257;
    description_.first_token = 1;
    description_.source = from.filename().string();
    scan(rules, progress);
  }

  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return rows_.size(); }
  std::uint64_t cache_bytes() const override { return bytes_ + 24 * rows() + 65'536; }

  void make(std::uint64_t number, Row& row) override {
    if (!input_ || number < next_) {
      input_.emplace(from_, ProgressCall{}, Links::followed, content_);
      next_ = 0;
    }
    for (;;) {
      if (!input_->next()) {
        throw UsageError(from_.string() + ": changed while it was read: prepare it again");
      }
      const auto found = rows_.find(input_->name());
      if (found == rows_.end() || next_++ < number) continue;
      const std::string text = input_->read_all();
      if (text.empty()) throw UsageError(empty());
      row.tokens.clear();
      row.second.clear();
      append_bytes(text, row.tokens);
      row.label = found->second.label;
      row.split = found->second.place.split;
      row.order = found->second.place.order;
      return;
    }
  }

 private:
  struct RowPlace {
    Place place;
    std::int32_t label;
  };

  std::string empty() const {
    return input_->at("the text is empty, expected at least one byte: remove it");
  }

  void scan(const ReviewRules& rules, const ProgressCall& progress) {
    // In the order of split, class and file, so that archives and folders give the same data.
    std::map<std::tuple<Split, std::string, std::string>, std::string> found;
    std::array<std::set<std::string>, 3> classes;
    std::vector<std::pair<std::string, std::string>> hashes;
    std::vector<std::string> others;
    input_.emplace(from_, progress, Links::followed, content_);
    while (input_->next()) {
      const std::optional<TextName> name = text_name(input_->name());
      if (!name) {
        others.push_back(input_->name());
        continue;
      }
      const std::string text = input_->read_all();
      if (text.empty()) throw UsageError(empty());
      TextCheck check;
      check.add(text);
      if (!rules.raw && !check.fault().empty()) {
        throw UsageError(input_->at(check.fault() + ": remove it, or pass --raw to take bytes"));
      }
      bytes_ += text.size();
      const auto entry =
          found.emplace(std::tuple(name->split, name->class_name, name->file), input_->name());
      if (!entry.second) {
        throw UsageError(input_->at("is there twice, the other time as " +
                                    text::quotable(entry.first->second) + ": keep one"));
      }
      classes[static_cast<std::size_t>(name->split)].insert(name->class_name);
      ContentHash hash;
      hash.add(text);
      hashes.emplace_back(
          std::string(to_string(name->split)) + "/" + name->class_name + "/" + name->file,
          hash.text());
    }
    input_.reset();
    expect_splits(classes, others);
    description_.classes.assign(classes[0].begin(), classes[0].end());
    description_.source_hash = hash_of_files(std::move(hashes));
    const std::uint32_t held = classes[1].empty() ? rules.hold_out : 0;
    description_.settings = {
        {"reader", "text 1"}, {"hold_out", rules.hold_out}, {"data_seed", rules.seed}};
    if (held != rules.hold_out) {
      description_.notes.emplace("held_out", "none: there is a folder \"validation\"");
    }

    std::vector<Split> splits;
    std::vector<std::int32_t> labels;
    for (const auto& [key, name] : found) {
      splits.push_back(std::get<0>(key));
      const auto label = std::distance(classes[0].begin(), classes[0].find(std::get<1>(key)));
      labels.push_back(static_cast<std::int32_t>(label));
    }
    const std::vector<Place> places = place_rows(splits, labels, held, rules.seed);
    std::size_t row = 0;
    for (const auto& [key, name] : found) {
      rows_[name] = {places[row], labels[row]};
      ++row;
    }
  }

  void expect_splits(const std::array<std::set<std::string>, 3>& classes,
                     const std::vector<std::string>& others) const {
    if (classes[0].empty() && classes[2].empty()) {
      refuse_content(from_, "expected train/CLASS/NAME.txt and test/CLASS/NAME.txt", others);
    }
    for (const Split split : {Split::train, Split::test, Split::validation}) {
      const std::set<std::string>& of = classes[static_cast<std::size_t>(split)];
      if (of == classes[0] && !of.empty()) continue;
      if (of.empty() && split == Split::validation) continue;
      if (of.empty()) {
        throw UsageError(from_.string() + ": there is no " + to_string(split) +
                         "/CLASS/NAME.txt; both train and test are needed");
      }
      throw UsageError(from_.string() + ": the classes of " + to_string(split) + " (" + listed(of) +
                       ") are not those of train (" + listed(classes[0]) +
                       "): each class needs a folder of texts in both");
    }
  }

  static std::string listed(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text::quotable(text);
  }

  fs::path from_;
  Content content_;
  DataDescription description_;
  std::unordered_map<std::string, RowPlace> rows_;  ///< by the name in the source
  std::uint64_t bytes_ = 0;
  std::optional<Input> input_;
  std::uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> read_texts(const fs::path& from, const ReviewRules& rules,
                                      const ProgressCall& progress) {
  return std::make_unique<TextSource>(from, rules, progress);
}

}  // namespace attnbench::tasks::data::lra
