#include "tasks/data/wanted.hpp"

#include "tasks/data/data_task.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/lra/texts.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

/// The settings of a task, those of `said` apart from their defaults.
Options settings_of(const DataTask& task, const std::map<std::string, OptionValue>& said = {}) {
  return Options::resolve(task.settings, said);
}

Options with_counts(Options settings) {
  for (const char* name : {"train_examples", "validation_examples", "test_examples"}) {
    if (!settings.has(name)) settings.set(name, std::int64_t{0});
  }
  return settings;
}

std::string open_refusal(const char* task, const std::map<std::string, OptionValue>& said,
                         const std::filesystem::path& from = {}) {
  const DataTask& chosen = *find_data_task(task);
  return refusal([&] { chosen.open(settings_of(chosen, said), from, {}); });
}

}  // namespace

TEST_CASE("a cache of other data is refused with the command that prepares what is wanted",
          "[lra][cache]") {
  const TemporaryFolder folder;
  const Cache cache(listops_cache(folder, 50));
  const auto refused = [&](const Wanted& wanted) {
    return refusal([&] { expect(cache, wanted); });
  };
  CHECK(refused({"lra.listops", {{"length_maximum", 40}}}).empty());
  CHECK(says(refused({"lra.text", Json::object()}),
             {"lra.listops", "not of lra.text",
              "attnbench data lra.text --from aclImdb_v1.tar.gz --out DIR"}));
  CHECK(says(refused({"lra.listops", {{"length_maximum", 1999}}}),
             {"length_maximum 40, not 1999", "attnbench data lra.listops --out DIR"}));
  CHECK(says(refused({"lra.listops", {{"side", 32}}}), {"says nothing of side"}));
  CHECK(says(refused({"lra.listops", Json::object(), "beef"}), {"other content", "beef"}));
}

TEST_CASE("rows longer than the length need truncate", "[lra][cache]") {
  const TemporaryFolder folder;
  const Cache cache(listops_cache(folder, 200));
  const std::uint64_t longest = cache.facts(Split::train).longest;
  CHECK(refusal([&] { expect_length(cache, longest, false); }).empty());
  CHECK(says(refusal([&] { expect_length(cache, longest - 1, false); }),
             {"row of train", std::to_string(longest) + " tokens", "truncate"}));
  CHECK(refusal([&] { expect_length(cache, 1, true); }).empty());
}

TEST_CASE("prepared data are found in a folder, faults named", "[lra][cache]") {
  const TemporaryFolder folder;
  listops_cache(folder, 50);
  std::filesystem::create_directories(folder / "deeper");
  write_files(folder / "texts", {{"train/a/1.txt", "x"}, {"test/a/1.txt", "y"}});
  prepare(*read_texts(folder / "texts", {0, 0}), folder / "deeper/texts.lra");
  write_file(folder / "bad.lra", "no cache at all");
  const std::vector<PreparedFile> found = caches_in(folder.path());
  REQUIRE(found.size() == 3);
  CHECK_FALSE(found[0].cache);
  CHECK(says(found[0].fault, {"bad.lra", "not prepared data"}));
  CHECK(found[1].cache->description().task == "lra.text");
  CHECK(find_cache(folder.path(), {"lra.listops", Json::object()})->rows() == 90);
  const std::string refused = refusal([&] {
    find_cache(folder.path(), {"lra.listops", {{"data_seed", 5}}});
  });
  CHECK(says(refused, {"no prepared data of lra.listops", "data_seed 0, not 5",
                       "attnbench data lra.listops --set data_seed=5 --out"}));
  CHECK(caches_in(folder / "none").empty());
}

TEST_CASE("a cache of too few rows is refused, one of more will do", "[lra][wanted]") {
  const TemporaryFolder folder;
  const Cache cache(listops_cache(folder, 50));
  Wanted wanted{"lra.listops", {{"source", "generated"}}};
  wanted.rows = {50, 20, 10};
  CHECK(difference(cache, wanted).empty());
  wanted.rows.train = 51;
  CHECK(says(refusal([&] { expect(cache, wanted); }),
             {"50 rows of train, not 51", "--set train_examples=51"}));
}

TEST_CASE("without a folder the message says how to get one", "[lra][wanted]") {
  const Wanted wanted{"lra.pathfinder", {{"source", "generated"}, {"side", 64}}};
  try {
    find_cache({}, wanted);
    FAIL("nothing was thrown");
  } catch (const MissingData& missing) {
    CHECK(says(missing.what(), {"attnbench data lra.pathfinder --set side=64 --out DIR", "--data",
                                "ATTNBENCH_DATA"}));
  }
}

TEST_CASE("a source's description matches what its task wants", "[lra][wanted]") {
  const TemporaryFolder folder;
  write_files(folder / "texts", {{"train/a/1.txt", "x"},
                                 {"train/b/1.txt", "yy"},
                                 {"test/a/1.txt", "z"},
                                 {"test/b/1.txt", "w"}});
  struct Case {
    const char* task;
    std::map<std::string, OptionValue> said;
    std::filesystem::path from;
  };
  const std::vector<Case> cases{{"lra.listops",
                                 {{"length_minimum", std::int64_t{4}},
                                  {"length_maximum", std::int64_t{40}},
                                  {"train_examples", std::int64_t{30}},
                                  {"validation_examples", std::int64_t{5}},
                                  {"test_examples", std::int64_t{5}},
                                  {"data_seed", std::int64_t{3}}},
                                 {}},
                                {"lra.pathfinder",
                                 {{"difficulty", std::string("easy")},
                                  {"compat", false},
                                  {"train_examples", std::int64_t{3}},
                                  {"validation_examples", std::int64_t{1}},
                                  {"test_examples", std::int64_t{1}}},
                                 {}},
                                {"lra.text", {{"hold_out", std::int64_t{1}}}, folder / "texts"}};
  for (const Case& one : cases) {
    INFO(one.task);
    const DataTask& task = *find_data_task(one.task);
    const Options settings = settings_of(task, one.said);
    const auto source = task.open(settings, one.from, {});
    const std::filesystem::path file = folder / "data" / cache_name(source->description());
    prepare(*source, file);
    const Wanted wanted = wanted_of(task, with_counts(settings));
    CHECK(find_cache(folder / "data", wanted)->file() == file);
    CHECK(source->description().vocabulary == task.vocabulary);
    CHECK(source->description().towers == task.towers);
    if (task.setting("data_seed") == nullptr) continue;
    Options other = with_counts(settings);
    other.set("data_seed", std::int64_t{99});
    CHECK(says(refusal([&] { find_cache(folder / "data", wanted_of(task, other)); }),
               {"data_seed", "not 99", "attnbench data " + task.name}));
  }
}

TEST_CASE(
    "the flag --from is asked for where data are published, and refused where they are generated",
    "[lra][wanted]") {
  CHECK(says(open_refusal("lra.text", {}), {"--from aclImdb_v1.tar.gz", "train/CLASS"}));
  CHECK(says(open_refusal("lra.retrieval", {}), {"--from lra_release.gz", "new_aan_pairs"}));
  CHECK(says(open_refusal("lra.image", {}), {"--from cifar-10-binary.tar.gz"}));
  CHECK(says(open_refusal("lra.listops", {{"source", std::string("published")}}),
             {"--from lra_release.gz", "basic_train.tsv"}));
  CHECK(says(open_refusal("lra.listops", {}, "x"), {"source is generated", "leave out --from"}));
  CHECK(says(open_refusal("lra.image", {{"side", std::int64_t{28}}}, "x"), {"side 32 alone"}));
  CHECK(says(open_refusal("lra.pathfinder", {{"side", std::int64_t{48}}}), {"side is 48"}));
}

TEST_CASE("a --from of something else is refused with what it holds", "[lra][wanted]") {
  const TemporaryFolder folder;
  write_files(folder.path(), {{"holidays/a.jpg", "x"}, {"notes.md", "y"}});
  for (const DataTask& task : data_tasks()) {
    if (task.name == "lm") continue;  // every file is a text
    INFO(task.name);
    const auto from = [&](const char* source) {
      std::map<std::string, OptionValue> said;
      if (*source != 0) said["source"] = std::string(source);
      return open_refusal(task.name.c_str(), said, folder.path());
    };
    const std::string refused = from(task.name == "lra.image"            ? "cifar10"
                                     : task.setting("source") != nullptr ? "published"
                                                                         : "");
    CHECK(says(refused, {folder.path().string(), "expected", "notes.md"}));
  }
}
