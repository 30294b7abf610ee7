#include "harness/program/gallery/index.hpp"

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "harness/program/suite/document.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const fs::path repository = test::source_folder();

gallery::Index our_index() {
  return gallery::read_index(repository / "suites", repository / "reports" / "gallery");
}

/// A folder of suites of which one follows a figure.
class Suites {
 public:
  Suites() {
    fs::create_directories(folder_ / "suites/form");
    fs::create_directories(folder_ / "gallery");
    write("latte_v1_figure_2", R"({"name": "latte_v1_figure_2", "title": "Time | length",
      "figure": "latte_v1.figure_2", "mechanisms": ["latte"], "profiles": {"quick": {}}})");
    write("decode", R"({"name": "decode", "title": "Steps", "mechanisms": ["latte"]})");
    write("mqar_smoke", R"({"name": "mqar_smoke", "title": "Recall", "mechanisms": ["latte"]})");
    write("other", R"({"name": "other", "title": "Alone", "mechanisms": ["latte"]})");
    write("none", R"({"name": "none"})");
    write("broken", R"({"name": )");
  }
  void write(const std::string& name, const std::string& text) const {
    test::write_file(folder_ / ("suites/" + name + ".json"), text);
  }
  /// A result that holds for the suite as it is, unless another hash or profile is said.
  void keep(const std::string& suite, std::string hash = {}) {
    keep(suite, std::move(hash), suite::gallery_profile(suite));
  }
  void keep(const std::string& suite, std::string hash, const std::string& profile) {
    if (hash.empty()) {
      hash = hash_text(test::read_file(folder_ / ("suites/" + suite + ".json")));
    }
    test::write_file(folder_ / ("gallery/" + suite + ".json"),
                     R"({"attnbench": {"cells": [], "suite": {"name": ")" + suite +
                         R"(", "hash": ")" + hash + R"(", "profile": ")" + profile +
                         R"("}, "run": {"wall_seconds": 76, "threads": 2,
                         "finished_at": "2026-11-23T22:55:30Z"}, "machine": {},
                         "provenance": {"commit": "0123456789"}}})");
  }
  gallery::Index index() const {
    return gallery::read_index(folder_ / "suites", folder_ / "gallery");
  }
  /// A result as a run of the suite in this text leaves it.
  void keep_measured(const std::string& suite, const std::string& text) {
    keep(suite, hash_text(text) + R"(", "settings_hash": ")" +
                    suite::settings_hash(nlohmann::json::parse(text)));
  }
  fs::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("the index has each suite with what is stored of it", "[gallery]") {
  Suites suites;
  const auto state = [&] { return suites.index().find("latte_v1_figure_2")->state; };
  CHECK(suites.index().all.size() == 4);
  CHECK(suites.index().find("none") == nullptr);
  CHECK(state() == gallery::StoredState::none);
  suites.keep("latte_v1_figure_2");
  CHECK(state() == gallery::StoredState::current);
  const gallery::Index index = suites.index();
  const gallery::IndexedSuite& suite = *index.find("latte_v1_figure_2");
  CHECK(full_time(suite) == "76 s, measured");
  CHECK(stored_words(suite) == "2026-11-23, 0123456, 2 threads");
  CHECK(quick_time(suite) == "not estimated");
  // The gallery keeps the quick profile of this one.
  suites.keep("decode");
  CHECK(quick_time(*suites.index().find("decode")) == "76 s, measured");
  CHECK(full_time(*suites.index().find("decode")) == "not estimated");
  suites.keep("latte_v1_figure_2", "00");
  CHECK(state() == gallery::StoredState::stale);
  CHECK_THAT(suites.index().find("latte_v1_figure_2")->state_reason, Contains("has changed"));
  suites.keep("latte_v1_figure_2", "", "paper");
  CHECK_THAT(suites.index().find("latte_v1_figure_2")->state_reason, Contains("\"paper\""));
  test::write_file(suites / "gallery/latte_v1_figure_2.json", "{}");
  CHECK(state() == gallery::StoredState::unreadable);
}

TEST_CASE("words for readers leave a stored result current, settings do not", "[gallery]") {
  Suites suites;
  const std::string measured = R"({"name": "decode", "title": "Steps", "notes": "Of 64 steps.",
    "source": "A, Table 1", "figure": "lavo.table_9", "task": "lra.image",
    "tasks": {"one": {"task": "decode", "title": "A step", "set": {"source": "cifar10"}}},
    "mechanisms": {"latte": {"latents_per_head": 32}},
    "profiles": {"quick": {"title": "Few steps", "notes": null, "set": {"length": 64}}}})";
  const auto state_with = [&](const std::string& said, const std::string& instead) {
    std::string changed = measured;
    const std::size_t at = changed.find(said);
    REQUIRE(at != std::string::npos);
    suites.write("decode", changed.replace(at, said.size(), instead));
    return suites.index().find("decode")->state;
  };
  suites.keep_measured("decode", measured);
  for (const auto& [said, instead] : std::vector<std::pair<std::string, std::string>>{
           {"Steps", "All steps"},
           {R"("notes": "Of 64 steps.",)", ""},
           {"A, Table 1", "A 2024, Table 1"},
           {"lavo.table_9", "lavo.table_10"},
           {"A step", "One step"},
           {"Few steps", "Some steps"},
           {R"("notes": null)", R"("notes": "Few.")"},
           {"\n    \"mechanisms\"", "\"mechanisms\""}}) {
    INFO(said << " -> " << instead);
    CHECK(state_with(said, instead) == gallery::StoredState::current);
  }
  for (const auto& [said, instead] : std::vector<std::pair<std::string, std::string>>{
           {"cifar10", "fashion_mnist"},
           {R"("length": 64)", R"("length": 128)"},
           {R"("latents_per_head": 32)", R"("latents_per_head": 16)"},
           {"lra.image", "lra.listops"},
           {"\"one\"", "\"two\""}}) {
    INFO(said << " -> " << instead);
    CHECK(state_with(said, instead) == gallery::StoredState::stale);
  }
  // A result from before there was that hash is of one file alone.
  suites.keep("decode", hash_text(measured));
  CHECK(state_with("Steps", "Steps") == gallery::StoredState::current);
  CHECK(state_with("Steps", "All steps") == gallery::StoredState::stale);
}

TEST_CASE("papers, figures and suites select suites of the gallery", "[gallery]") {
  const Suites suites;
  const gallery::Index index = suites.index();
  const auto names = [&](const std::vector<std::string>& words) {
    std::string all;
    for (const auto* suite : gallery::select(index, words)) all += suite->name + " ";
    return all;
  };
  CHECK(names({}) == "decode latte_v1_figure_2 mqar_smoke ");
  CHECK(names({"latte_v1"}) == "latte_v1_figure_2 ");
  CHECK(names({"latte_v1.figure_2"}) == "latte_v1_figure_2 ");
  CHECK(names({"decode"}) == "decode ");
  CHECK(names({"lavo"}).empty());
  CHECK(gallery::select_figures(index, {}).size() == 31);
  CHECK(gallery::select_figures(index, {"lavo"}).size() == 11);
  CHECK(gallery::select_figures(index, {"latte_v1_figure_2"}).size() == 1);
  CHECK_THROWS_WITH(gallery::select(index, {"latte_v3"}),
                    Contains("did you mean \"latte_v2\"?") || Contains("\"latte_v1\""));
  CHECK_THROWS_WITH(gallery::select(index, {"other"}),
                    Contains("there is no paper, figure or suite"));
  CHECK_THROWS_AS(gallery::select_figures(index, {"figure_2"}), UsageFailure);
}

TEST_CASE("estimates are read, and those of another form refused", "[gallery]") {
  const Suites suites;
  const auto estimate = [&](const std::string& of_decode) {
    test::write_file(
        suites / "suites/form/estimates.json",
        R"({"machine": "Example CPU, 2 cores", "suites": {"decode": )" + of_decode + "}}");
  };
  estimate(R"({"quick": {"seconds": 90, "peak_bytes": 1e6, "cells": 12},
               "full": {"seconds": 93600000, "peak_bytes": 2e10, "cells": 40}})");
  const gallery::Index index = suites.index();
  const gallery::IndexedSuite& decode = *index.find("decode");
  CHECK(index.estimated_on == "Example CPU, 2 cores");
  CHECK(quick_time(decode) == "about 90 s");
  CHECK(full_time(decode) == "about 26000 h; 18.6 GiB");
  CHECK(index.find("other")->quick == std::nullopt);
  estimate(R"({"quick": {"seconds": 90, "peak_bytes": 1e6, "cells": 12},
               "full": {"seconds": 7200, "peak_bytes": 2e10, "cells": 40, "without_data": 8}})");
  CHECK(quick_time(*suites.index().find("decode")) == "about 90 s");
  CHECK(full_time(*suites.index().find("decode")) ==
        "about 2.0 h; 18.6 GiB; its data are to be prepared first");
  estimate(R"({"full": {"seconds": 0, "peak_bytes": 0, "cells": 40}})");
  CHECK(full_time(*suites.index().find("decode")) == "not estimated");
  estimate(R"({"quick": {"seconds": "90"}})");
  CHECK_THROWS_WITH(suites.index(), Contains("estimates.json: ") && Contains("--estimate"));
}

TEST_CASE("stored results of ours can be read", "[gallery]") {
  for (const gallery::IndexedSuite& suite : our_index().all) {
    INFO(suite.name);
    CHECK(suite.state != gallery::StoredState::unreadable);
    if (suite.stored) CHECK(fs::file_size(suite.stored->file) <= gallery::max_stored_bytes);
  }
}
