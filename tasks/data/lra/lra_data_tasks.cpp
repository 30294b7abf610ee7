#include "tasks/data/lra/lra_data_tasks.hpp"

#include <algorithm>

#include "tasks/data/lra/images.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/lra/pathfinder.hpp"
#include "tasks/data/lra/pathfinder_files.hpp"
#include "tasks/data/lra/tables.hpp"
#include "tasks/data/lra/texts.hpp"

namespace attnbench::tasks::data::lra {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr const char* release = "lra_release.gz";
constexpr double most_rows = 1e9;

int whole(const Options& settings, const char* name) {
  return static_cast<int>(settings.integer(name));
}

std::uint32_t count(const Options& settings, const char* name) {
  return static_cast<std::uint32_t>(settings.integer(name));
}

std::uint64_t seed_of(const Options& settings) {
  return static_cast<std::uint64_t>(settings.integer("data_seed"));
}

Option seed_setting(const char* meaning) { return Option::integer("data_seed", 0, meaning, 0); }

std::vector<Option> with_counts(std::vector<Option> settings, SplitCounts rows) {
  const auto add = [&](const char* name, std::int64_t examples, const char* meaning) {
    settings.push_back(Option::integer(name, examples, meaning, 0, most_rows));
  };
  add("train_examples", rows.train, "rows of an epoch");
  add("validation_examples", rows.validation, "rows that decide between learning rates and steps");
  add("test_examples", rows.test, "rows that are scored");
  return settings;
}

/// Published rows of which `hold_out` of the train rows are held out for validation.
std::optional<ExpectedRows> held_out(SplitCounts published, const Options& settings, int classes,
                                     const char* source) {
  published.validation = std::min(count(settings, "hold_out"), published.train);
  published.train -= published.validation;
  return ExpectedRows{published, classes, source};
}

/// Rows as many as the settings say: their defaults are the numbers of the published ones.
std::optional<ExpectedRows> counted(const Options& settings, int classes) {
  return ExpectedRows{counts_of(settings), classes, "the settings"};
}

/// Throws UsageError where rows are generated and --from is given, or are read and it is not.
void expect_source(const DataTask& task, const Options& settings, const fs::path& from) {
  const std::string source = settings.has("source") ? settings.text("source") : "";
  const bool generated = source == "generated";
  if (generated && !from.empty()) {
    throw UsageError(task.name + ": source is generated, and nothing is read: leave out --from");
  }
  if (!generated) expect_from(task, source, from);
}

DataTask listops_task() {
  DataTask task;
  task.name = "lra.listops";
  task.title = "Nested lists of digits under MIN, MAX, MED and SM: the value of the whole";
  task.vocabulary = listops_vocabulary;
  task.padded = true;
  task.how_to_get =
      "the archive of google-research/long-range-arena, or a folder with its basic_train.tsv, "
      "basic_val.tsv and basic_test.tsv";
  const ListOpsRules rules;
  task.settings = with_counts(
      {Option::text("source", {"generated", "published"},
                    "generated here by the original's rules, or read with --from"),
       Option::integer("length_minimum", rules.length_minimum, "least tokens of a row", 1),
       Option::integer("length_maximum", rules.length_maximum, "most tokens of a row", 1),
       Option::integer("depth", rules.depth, "levels of a tree", 1, 64),
       Option::integer("arguments", rules.arguments, "most arguments of an operator", 2, 64),
       seed_setting("other rows by the same rules")},
      rules.rows);
  task.decisive = [](const Options& settings) -> Names {
    if (settings.text("source") == "published") return {"source"};
    return {"source", "length_minimum", "length_maximum", "depth", "arguments", "data_seed"};
  };
  task.wants_from = [](const std::string& source) -> std::string {
    return source == "published" ? release : "";
  };
  task.expected = [](const Options& settings) { return counted(settings, 10); };
  const auto opening = [](bool raw) {
    return [raw](const Options& settings, const fs::path& from,
                 const ProgressCall& progress) -> std::unique_ptr<RowSource> {
      expect_source(*find_data_task("lra.listops"), settings, from);
      if (settings.text("source") == "published") return read_listops(from, progress, raw);
      if (raw) throw UsageError("lra.listops: source is generated, and nothing is read: no --raw");
      ListOpsRules chosen;
      chosen.length_minimum = whole(settings, "length_minimum");
      chosen.length_maximum = whole(settings, "length_maximum");
      chosen.depth = whole(settings, "depth");
      chosen.arguments = whole(settings, "arguments");
      chosen.rows = counts_of(settings);
      chosen.seed = seed_of(settings);
      return std::make_unique<ListOpsGenerator>(chosen);
    };
  };
  task.open = opening(false);
  task.open_raw = opening(true);
  task.export_published = write_listops_tables;
  return task;
}

DataTask text_task() {
  DataTask task;
  task.name = "lra.text";
  task.title = "The class of a text, byte by byte (IMDb reviews, or anybody's)";
  task.vocabulary = 257;
  task.padded = true;
  task.how_to_get =
      "the archive of Maas et al. 2011, or a folder of train/CLASS/*.txt and "
      "test/CLASS/*.txt";
  task.settings = {Option::integer("hold_out", 2'500,
                                   "train rows held out for validation, alike of each class; not "
                                   "used where there is a folder \"validation\"",
                                   0, most_rows),
                   seed_setting("of which rows are held out")};
  task.decisive = [](const Options&) -> Names { return {"hold_out", "data_seed"}; };
  task.wants_from = [](const std::string&) { return "aclImdb_v1.tar.gz"; };
  task.expected = [](const Options& settings) {
    return held_out({25'000, 0, 25'000}, settings, 2, "IMDb reviews, Maas et al. 2011");
  };
  const auto opening = [](bool raw) {
    return [raw](const Options& settings, const fs::path& from, const ProgressCall& progress) {
      expect_source(*find_data_task("lra.text"), settings, from);
      return read_texts(from, {count(settings, "hold_out"), seed_of(settings), raw}, progress);
    };
  };
  task.open = opening(false);
  task.open_raw = opening(true);
  task.export_published = write_class_folders;
  return task;
}

DataTask retrieval_task() {
  DataTask task;
  task.name = "lra.retrieval";
  task.title = "Whether one paper cites the other, byte by byte (AAN)";
  task.vocabulary = 257;
  task.towers = 2;
  task.padded = true;
  task.how_to_get =
      "the archive of google-research/long-range-arena, or a folder with its "
      "new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv";
  task.settings = {Option::integer("text_bytes", 4'096,
                                   "bytes of each text that the prepared data keep", 1, 10'000)};
  task.decisive = [](const Options&) -> Names { return {"text_bytes"}; };
  task.wants_from = [](const std::string&) { return release; };
  task.expected = [](const Options&) {
    return ExpectedRows{
        {147'086, 18'090, 17'437}, 2, "AAN of Tay et al. 2021, counted by Gu et al. 2022"};
  };
  const auto opening = [](bool raw) {
    return [raw](const Options& settings, const fs::path& from, const ProgressCall& progress) {
      expect_source(*find_data_task("lra.retrieval"), settings, from);
      return read_retrieval(from, whole(settings, "text_bytes"), progress, raw);
    };
  };
  task.open = opening(false);
  task.open_raw = opening(true);
  task.export_published = write_retrieval_tables;
  return task;
}

DataTask image_task() {
  DataTask task;
  task.name = "lra.image";
  task.title = "The class of a small grey image, pixel by pixel";
  task.vocabulary = 256;
  task.how_to_get =
      "the binary version of Krizhevsky 2009; for source=fashion_mnist Debian's package "
      "dataset-fashion-mnist, which is found by itself, or its four IDX files";
  task.settings = {
      Option::text("source", {"cifar10", "fashion_mnist"}, "which images"),
      Option::integer("side", 32,
                      "pixels a line: 32; of fashion_mnist also 28, its own, and 14, means of 2 x "
                      "2; 32 has two lines of 0 at each edge",
                      1, 32),
      Option::text("grey", {"tensorflow", "floor", "pillow"},
                   "how colours become grey: as Long Range Arena, Latte or S4 do it"),
      Option::integer("hold_out", 5'000, "train rows held out for validation, alike of each class",
                      0, most_rows),
      seed_setting("of which rows are held out")};
  task.decisive = [](const Options& settings) -> Names {
    if (settings.text("source") == "cifar10") return {"source", "grey", "hold_out", "data_seed"};
    return {"source", "side", "hold_out", "data_seed"};
  };
  task.wants_from = [](const std::string& source) -> std::string {
    return source == "fashion_mnist" ? fashion_mnist_folder : "cifar-10-binary.tar.gz";
  };
  task.expected = [](const Options& settings) {
    if (settings.text("source") == "fashion_mnist") {
      return held_out({60'000, 0, 10'000}, settings, 10, "Fashion-MNIST, Xiao et al. 2017");
    }
    return held_out({50'000, 0, 10'000}, settings, 10, "CIFAR-10, Krizhevsky 2009");
  };
  task.open = [](const Options& settings, const fs::path& from, const ProgressCall& progress) {
    const bool fashion = settings.text("source") == "fashion_mnist";
    const fs::path found =
        from.empty() && fashion && fs::exists(fashion_mnist_folder) ? fashion_mnist_folder : from;
    expect_source(*find_data_task("lra.image"), settings, found);
    ImageRules rules;
    rules.grey = settings.text("grey");
    rules.side = whole(settings, "side");
    rules.hold_out = count(settings, "hold_out");
    rules.seed = seed_of(settings);
    if (fashion) return read_fashion_mnist(found, rules, progress);
    if (rules.side != 32) throw UsageError("lra.image: CIFAR-10 has the side 32 alone");
    return read_cifar10(found, rules, progress);
  };
  task.not_exported =
      "CIFAR-10 was published in colour, which is not prepared, and IDX files are not written";
  return task;
}

DataTask pathfinder_task() {
  DataTask task;
  task.name = "lra.pathfinder";
  task.title = "Whether two discs lie on one dashed path, pixel by pixel (side 128: Path-X)";
  task.vocabulary = 256;
  task.how_to_get =
      "the archive of google-research/long-range-arena, or a folder with imgs/ and metadata/ of "
      "one "
      "difficulty";
  const PathfinderRules rules;
  task.settings = with_counts(
      {Option::text("source", {"generated", "published"},
                    "generated here by the original's rules, or read with --from"),
       Option::integer("side", rules.side, "pixels a line: 32, 64, 128 (Path-X) or 256", 32, 256),
       Option::text("difficulty", {"hard", "intermediate", "easy"}, "paths of 14, 9 or 6 dashes"),
       Option::boolean("compat", rules.compat,
                       "as the published images: at 32 pixels first dashes go to the upper left; "
                       "false: every orientation alike"),
       seed_setting("other images by the same rules; of published ones other splits")},
      rules.rows);
  task.decisive = [](const Options& settings) -> Names {
    if (settings.text("source") == "published") {
      return {"source", "side", "difficulty", "data_seed"};
    }
    return {"source", "side", "difficulty", "compat", "data_seed"};
  };
  task.wants_from = [](const std::string& source) -> std::string {
    return source == "published" ? release : "";
  };
  task.expected = [](const Options& settings) { return counted(settings, 2); };
  task.open = [](const Options& settings, const fs::path& from,
                 const ProgressCall& progress) -> std::unique_ptr<RowSource> {
    expect_source(*find_data_task("lra.pathfinder"), settings, from);
    if (settings.text("source") == "published") {
      return read_pathfinder(
          from, {whole(settings, "side"), settings.text("difficulty"), seed_of(settings)},
          progress);
    }
    PathfinderRules chosen;
    chosen.side = whole(settings, "side");
    chosen.difficulty = settings.text("difficulty");
    chosen.compat = settings.boolean("compat");
    chosen.rows = counts_of(settings);
    chosen.seed = seed_of(settings);
    return std::make_unique<PathfinderGenerator>(chosen);
  };
  task.not_exported = "its images as PNGs and their metadata are not written";
  return task;
}

}  // namespace

/// lra.image, lra.listops, lra.pathfinder, lra.retrieval and lra.text, by name.
std::vector<DataTask> all_data_tasks() {
  return {image_task(), listops_task(), pathfinder_task(), retrieval_task(), text_task()};
}

}  // namespace attnbench::tasks::data::lra
