#include "tasks/data/lra/pathfinder_files.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "core/random.hpp"
#include "core/text/printable.hpp"
#include "tasks/data/input.hpp"
#include "tasks/data/lra/pathfinder.hpp"
#include "tasks/data/lra/png.hpp"

namespace attnbench::tasks::data::lra {
namespace {

namespace fs = std::filesystem;

constexpr const char* known_empty = "curv_baseline/imgs/0/sample_172.png";

/// imgs/K/sample_I.png: what images are ordered by.
using ImageKey = std::pair<std::uint32_t, std::uint32_t>;

std::optional<ImageKey> image_key(std::string_view folder, std::string_view file) {
  if (!file.starts_with("sample_") || !file.ends_with(".png")) return std::nullopt;
  const auto k = number_of(folder);
  const auto i = number_of(file.substr(7, file.size() - 11));
  if (!k || !i) return std::nullopt;
  return ImageKey{*k, *i};
}

/// Where a member belongs: its set ("lra_release/…/curv_baseline"), and which image or metadata.
struct Member {
  std::string set;
  std::optional<ImageKey> image;  ///< else metadata
};

std::optional<Member> member_of(const std::string& name) {
  const std::vector<std::string_view> parts = components(name);
  const std::size_t count = parts.size();
  const auto set = [&](std::size_t tail) {
    std::string text;
    for (std::size_t i = 0; i + tail < count; ++i) {
      text += (text.empty() ? "" : "/") + std::string(parts[i]);
    }
    return text;
  };
  if (count >= 3 && parts[count - 3] == "imgs") {
    const auto key = image_key(parts[count - 2], parts[count - 1]);
    if (key) return Member{set(3), key};
  }
  if (count >= 2 && parts[count - 2] == "metadata" && parts[count - 1].ends_with(".npy")) {
    return Member{set(2), std::nullopt};
  }
  return std::nullopt;
}

/// Whether a set may be of this side and difficulty, by the folders that it is in: where those say
/// nothing, it may.
bool is_wanted(const std::string& path, const PathfinderFileRules& rules) {
  for (const std::string_view part : components(path)) {
    if (part == "curv_baseline" || part.starts_with("curv_contour_length_")) {
      if (part != pathfinder_folder(rules.difficulty)) return false;
    }
    if (part.starts_with("pathfinder") && number_of(part.substr(10))) {
      if (part != "pathfinder" + std::to_string(rules.side)) return false;
    }
  }
  return true;
}

class PathfinderFiles final : public RowSource {
 public:
  PathfinderFiles(const fs::path& from, const PathfinderFileRules& rules,
                  const ProgressCall& progress)
      : from_(from), rules_(rules), description_(pathfinder_description(rules.side)) {
    if (rules.side < 1 || rules.side > 256) {
      throw UsageError("lra.pathfinder: side is " + std::to_string(rules.side) +
                       ", expected 1 to 256");
    }
    pathfinder_folder(rules.difficulty);  // refuses another word
    description_.settings = {{"reader", "pathfinder 1"},
                             {"source", "published"},
                             {"side", rules.side},
                             {"difficulty", rules.difficulty},
                             {"data_seed", rules.seed}};
    description_.source = from.filename().string();
    scan(progress);
  }

  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return rows_.size(); }
  std::uint64_t cache_bytes() const override {
    return rows() * (static_cast<std::uint64_t>(rules_.side * rules_.side) + 24) + 65'536;
  }

  void make(std::uint64_t number, Row& row) override {
    if (!input_ || number < next_) {
      input_.emplace(from_);
      next_ = 0;
    }
    while (input_->next()) {
      const std::optional<Member> member = member_of(input_->name());
      if (!member || !member->image || member->set != set_) continue;
      const auto found = rows_.find(*member->image);
      if (found == rows_.end() || next_++ < number) continue;
      try {
        const auto levels = read_grey_png(input_->read_all(std::size_t{16} << 20), rules_.side);
        row.tokens.assign(levels.begin(), levels.end());
      } catch (const UsageError& error) {
        throw UsageError(input_->at(error.what()) + ": get it again");
      }
      row.second.clear();
      row.label = found->second.label;
      row.split = found->second.place.split;
      row.order = found->second.place.order;
      return;
    }
    throw UsageError(from_.string() + ": changed while it was read: prepare it again");
  }

 private:
  struct RowPlace {
    Place place;
    int label;
  };
  struct Set {
    std::map<ImageKey, bool> images;  ///< whether they have bytes
    std::map<ImageKey, int> labels;
    std::vector<std::pair<std::string, std::string>> hashes;
  };

  void scan(const ProgressCall& progress) {
    std::map<std::string, Set> sets;
    std::vector<std::string> others;
    Input input(from_, progress);
    while (input.next()) {
      const std::optional<Member> member = member_of(input.name());
      if (!member || !is_wanted(fs::absolute(from_).generic_string() + "/" + member->set, rules_)) {
        others.push_back(input.name());
        continue;
      }
      Set& set = sets[member->set];
      const std::string content = input.read_all();
      ContentHash hash;
      hash.add(content);
      // Named from the set on, so that the hash does not tell where the set lies.
      const std::size_t begin = member->set.empty() ? 0 : member->set.size() + 1;
      set.hashes.emplace_back(input.name().substr(begin), hash.text());
      if (member->image) {
        set.images[*member->image] = !content.empty();
        continue;
      }
      try {
        add_labels(parse_pathfinder_metadata(content), set);
      } catch (const UsageError& error) {
        throw UsageError(input.at(error.what()) + ": get it again");
      }
    }
    if (sets.empty()) {
      refuse_content(from_,
                     "expected imgs/K/sample_I.png and metadata/K.npy of pathfinder" +
                         std::to_string(rules_.side) + "/" + pathfinder_folder(rules_.difficulty),
                     others);
    }
    const auto deepest =
        std::max_element(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
          return components(a.first).size() < components(b.first).size();
        });
    set_ = deepest->first;
    if (sets.size() > 1) description_.notes.emplace("folder", set_);
    description_.source_hash = hash_of_files(std::move(deepest->second.hashes));
    place(deepest->second);
  }

  static void add_labels(const std::vector<PathfinderLine>& lines, Set& set) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::vector<std::string_view> parts = components(lines[i].image);
      const auto key =
          parts.size() == 3 && parts[0] == "imgs" ? image_key(parts[1], parts[2]) : std::nullopt;
      if (!key || !set.labels.emplace(*key, lines[i].label).second) {
        throw UsageError("line " + std::to_string(i + 1) + ": " +
                         text::quotable(lines[i].image, 80) +
                         (key ? " is there twice" : " is not imgs/K/sample_I.png"));
      }
    }
  }

  [[noreturn]] void refuse(const ImageKey& key, const std::string& fault) const {
    throw UsageError(from_.string() + ", member " + named(key) + ": " + fault);
  }
  std::string named(const ImageKey& key) const {
    return (set_.empty() ? "" : set_ + "/") + "imgs/" + std::to_string(key.first) + "/sample_" +
           std::to_string(key.second) + ".png";
  }

  void place(const Set& set) {
    std::vector<std::pair<ImageKey, int>> rows;
    for (const auto& [key, label] : set.labels) {
      const auto image = set.images.find(key);
      if (image == set.images.end()) {
        refuse(key, "is missing, the metadata name it: get the images again");
      }
      if (image->second) {
        rows.emplace_back(key, label);
      } else if (rules_.side == 32 && rules_.difficulty == "easy" && key == ImageKey{0, 172}) {
        description_.notes.emplace("skipped", Json::array({known_empty}));
      } else {
        refuse(key, "has no bytes, expected a PNG: get it again");
      }
    }
    for (const auto& [key, any] : set.images) {
      if (!set.labels.contains(key)) {
        refuse(key, "has no line in metadata/" + std::to_string(key.first) +
                        ".npy, which holds its label: get the metadata again");
      }
    }
    std::vector<std::size_t> order(rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    Random(key_of({rules_.seed, 0x73706c69 /* "spli" */}), 0).shuffle(order);
    const SplitCounts counts{
        static_cast<std::uint32_t>(rows.size() * 8 / 10),
        static_cast<std::uint32_t>(rows.size() * 9 / 10 - rows.size() * 8 / 10), 0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [split, number] = counts.place(i);
      rows_[rows[order[i]].first] = {{split, number}, rows[order[i]].second};
    }
  }

  fs::path from_;
  PathfinderFileRules rules_;
  DataDescription description_;
  std::string set_;
  std::map<ImageKey, RowPlace> rows_;
  std::optional<Input> input_;
  std::uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> read_pathfinder(const fs::path& from, const PathfinderFileRules& rules,
                                           const ProgressCall& progress) {
  return std::make_unique<PathfinderFiles>(from, rules, progress);
}

}  // namespace attnbench::tasks::data::lra
