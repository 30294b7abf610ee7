#include "tasks/data/lra/tables.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "core/text/printable.hpp"
#include "tasks/data/input.hpp"
#include "tasks/data/lra/listops.hpp"

namespace attnbench::tasks::data::lra {
namespace {

namespace fs = std::filesystem;

/// Rows of three tables, a line each. The first walk through the source counts lines and hashes
/// contents, the second makes rows.
class TableSource : public RowSource {
 public:
  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return rows_; }
  std::uint64_t cache_bytes() const override { return bytes_ + 24 * rows_ + 65'536; }

  void make(std::uint64_t number, Row& row) override {
    if (!input_ || number < next_) restart();
    std::string_view line;
    for (; next_ <= number; ++next_) {
      while (!next_line(line)) next_table();
    }
    row.tokens.clear();
    row.second.clear();
    row.split = split_;
    row.order = order_;
    parse(line, row);
  }

 protected:
  TableSource(const fs::path& from, TableNames names, DataDescription description, bool raw)
      : from_(from),
        names_(std::move(names)),
        description_(std::move(description)),
        content_(raw ? Content::raw : Content::unpacked) {}

  virtual void parse(std::string_view line, Row& row) = 0;

  /// A derived class calls it when it is made.
  void scan(const ProgressCall& progress) {
    struct Table {
      std::uint64_t lines = 0, bytes = 0;
      std::string hash;
    };
    std::map<std::string, std::map<std::size_t, Table>> folders;  // folder → split → table
    std::vector<std::string> others;
    Input input(from_, progress, Links::followed, content_);
    while (input.next()) {
      const auto [folder, file] = parted(input.name());
      const auto split = std::find(names_.of_split.begin(), names_.of_split.end(), file);
      if (split == names_.of_split.end()) {
        others.push_back(input.name());
        continue;
      }
      Table& table = folders[folder][static_cast<std::size_t>(split - names_.of_split.begin())];
      ContentHash hash;
      TextCheck text;
      Lines lines(input);
      std::string_view line;
      while (lines.next(line)) {
        hash.add(line);
        hash.add("\n");
        text.add(line);
        if (lines.number() == 1 && !names_.header.empty()) {
          if (line != names_.header) {
            throw UsageError(lines.at("the first line is \"" + text::quotable(line, 60) +
                                      "\", expected the header \"Source\", a tab, \"Target\": is "
                                      "this table the published one?"));
          }
          continue;
        }
        ++table.lines;
        table.bytes += line.size();
      }
      if (content_ != Content::raw && !text.fault().empty()) {
        throw UsageError(input.at(text.fault() + ": give the table, or pass --raw to take bytes"));
      }
      table.hash = hash.text();
    }
    if (folders.empty()) refuse_content(from_, "expected " + wanted(), others);
    const auto deepest =
        std::max_element(folders.begin(), folders.end(), [](const auto& a, const auto& b) {
          return components(a.first).size() < components(b.first).size();
        });
    folder_ = deepest->first;
    std::vector<std::pair<std::string, std::string>> hashes;
    for (std::size_t split = 0; split < 3; ++split) {
      const auto table = deepest->second.find(split);
      if (table == deepest->second.end() || table->second.lines == 0) {
        throw UsageError(from_.string() + ": " + names_.of_split[split] +
                         (table == deepest->second.end() ? " is missing" : " holds no rows") +
                         "; expected " + wanted() + " beside each other");
      }
      rows_ += table->second.lines;
      bytes_ += table->second.bytes;
      hashes.emplace_back(names_.of_split[split], table->second.hash);
    }
    description_.source = from_.filename().string();
    description_.source_hash = hash_of_files(std::move(hashes));
    if (folders.size() > 1) description_.notes.emplace("folder", folder_);
  }

  [[noreturn]] void refuse(const std::string& fault) const { throw UsageError(lines_->at(fault)); }

  std::vector<std::string_view> columns(std::string_view line, std::size_t count,
                                        const std::string& names) const {
    std::vector<std::string_view> found;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find('\t', begin), line.size());
      found.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    if (found.size() != count) {
      refuse(std::to_string(found.size()) + " columns, expected " + std::to_string(count) + " (" +
             names + ") with tabs between them");
    }
    return found;
  }

 private:
  static std::pair<std::string, std::string> parted(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return {"", name};
    return {name.substr(0, slash), name.substr(slash + 1)};
  }

  std::string wanted() const {
    return names_.of_split[0] + ", " + names_.of_split[1] + " and " + names_.of_split[2];
  }

  void restart() {
    lines_.reset();
    input_.emplace(from_, ProgressCall{}, Links::followed, content_);
    next_ = 0;
  }

  bool next_line(std::string_view& line) {
    if (!lines_ || !lines_->next(line)) return false;
    if (lines_->number() == 1 && !names_.header.empty() && !lines_->next(line)) return false;
    order_ = static_cast<std::uint32_t>(lines_->number() - (names_.header.empty() ? 1 : 2));
    return true;
  }

  void next_table() {
    lines_.reset();
    while (input_->next()) {
      const auto [folder, file] = parted(input_->name());
      const auto split = std::find(names_.of_split.begin(), names_.of_split.end(), file);
      if (folder != folder_ || split == names_.of_split.end()) continue;
      split_ = static_cast<Split>(split - names_.of_split.begin());
      lines_.emplace(*input_);
      return;
    }
    throw UsageError(from_.string() + ": changed while it was read: prepare it again");
  }

  fs::path from_;
  TableNames names_;
  DataDescription description_;
  Content content_;
  std::string folder_;
  std::uint64_t rows_ = 0, bytes_ = 0;
  std::optional<Input> input_;
  std::optional<Lines> lines_;
  std::uint64_t next_ = 0;
  Split split_ = Split::train;
  std::uint32_t order_ = 0;
};

class ListOpsTables final : public TableSource {
 public:
  ListOpsTables(const fs::path& from, const ProgressCall& progress, bool raw)
      : TableSource(from, listops_tables, described(), raw) {
    scan(progress);
  }

 private:
  static DataDescription described() {
    DataDescription description = listops_description();
    description.settings = {{"reader", "listops 1"}, {"source", "published"}};
    return description;
  }

  void parse(std::string_view line, Row& row) override {
    const std::vector<std::string_view> found = columns(line, 2, "Source, Target");
    const std::string_view target = found[1];
    if (target.size() != 1 || target[0] < '0' || target[0] > '9') {
      refuse("the label is \"" + text::quotable(target, 40) + "\", expected 0 to 9");
    }
    row.label = target[0] - '0';
    int value = 0;
    try {
      parse_listops(found[0], row.tokens);
      value = evaluate_listops(row.tokens);
    } catch (const UsageError& error) {
      refuse(std::string("the row is no expression: ") + error.what() +
             "; get the table again, or mend the row");
    }
    if (value != row.label) {
      refuse("the row evaluates to " + std::to_string(value) + ", its label is " +
             std::string(target) + ": get the table again, or mend the row");
    }
  }
};

class RetrievalTables final : public TableSource {
 public:
  RetrievalTables(const fs::path& from, int keep, const ProgressCall& progress, bool raw)
      : TableSource(from, retrieval_tables, described(keep), raw),
        keep_(static_cast<std::size_t>(keep)) {
    scan(progress);
  }

 private:
  static DataDescription described(int keep) {
    if (keep < 1 || keep > 10'000) {
      throw UsageError("lra.retrieval: text_bytes is " + std::to_string(keep) +
                       ", expected 1 to 10000");
    }
    DataDescription description;
    description.task = "lra.retrieval";
    description.settings = {{"reader", "retrieval 1"}, {"text_bytes", keep}};
    description.classes = {"apart", "citing"};
    description.vocabulary = 257;
    description.first_token = 1;
    description.towers = 2;
    return description;
  }

  void parse(std::string_view line, Row& row) override {
    const std::vector<std::string_view> found = columns(line, 5, "label, id1, id2, text1, text2");
    const std::string_view label = found[0];
    if (label != "0" && label != "1" && label != "0.0" && label != "1.0") {
      refuse("the label is \"" + text::quotable(label, 40) + "\", expected 0, 1, 0.0 or 1.0");
    }
    row.label = label[0] - '0';
    append_bytes(found[3].substr(0, keep_), row.tokens);
    append_bytes(found[4].substr(0, keep_), row.second);
    if (row.tokens.empty() || row.second.empty()) {
      refuse("a text has no bytes, expected at least one: remove the row");
    }
  }

  std::size_t keep_;
};

}  // namespace

void append_bytes(std::string_view text, std::vector<Token>& tokens) {
  for (const char byte : text) {
    tokens.push_back(static_cast<Token>(static_cast<unsigned char>(byte) + 1));
  }
}

std::unique_ptr<RowSource> read_listops(const fs::path& from, const ProgressCall& progress,
                                        bool raw) {
  return std::make_unique<ListOpsTables>(from, progress, raw);
}

std::unique_ptr<RowSource> read_retrieval(const fs::path& from, int keep,
                                          const ProgressCall& progress, bool raw) {
  return std::make_unique<RetrievalTables>(from, keep, progress, raw);
}

}  // namespace attnbench::tasks::data::lra
