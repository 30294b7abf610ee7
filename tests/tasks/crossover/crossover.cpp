#include "core/result/crossover.hpp"

#include <random>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

Settings small_search(const Settings& more = {}) {
  return with({{"length_minimum", n(32)},
               {"length_maximum", n(256)},
               {"heads", n(1)},
               {"head_dim", n(16)},
               {"resolution", 0.5}},
              more);
}

/// Like run_cell, with enough pairs for a decision.
Ran run_search(const tasks::ResolvedCell& cell, int round = 0, const Registry& known = registry()) {
  worker::install_counting_allocator();
  const tasks::Task& task = tasks::find_task("crossover");
  Ran ran;
  ran.forecast = task.forecast(known, cell);
  worker::WorkSettings settings = test::quick_settings(round);
  settings.rule.max_samples = 9;
  settings.rule.max_seconds = 0.02;
  worker::ChildContext context(settings, known, {});
  const auto work = task.make(known, cell);
  work->prepare(context);
  if (round == 0) ran.check = work->check(context);
  ran.sections = work->run(context);
  ran.measured = context.measured();
  return ran;
}

}  // namespace

TEST_CASE("a crossover cell compares at every coarse length and names both sides", "[crossover]") {
  for (const char* scope : {"mix", "projected", "layer"}) {
    INFO(scope);
    const Ran ran =
        run_search(make_cell("crossover", "latte", "auto", small_search({{"scope", s(scope)}}),
                             {{"latents_per_head", n(4)}}));
    const Json& found = ran.sections["crossover"];
    INFO(found.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["exact"]["verdict"] == "ok");
    CHECK(ran.check["rows"].get<int>() >= 8);  // up to 32, in 0.25 s
    CHECK(found["length_minimum"] == 32);
    CHECK(found["length_maximum"] == 256);
    CHECK(found["against"].get<std::string>().rfind("softmax/", 0) == 0);
    CHECK(ran.sections["chosen"]["implementation"] == found["implementation"]);
    std::set<std::int64_t> lengths;
    for (const Json& row : found["lengths"]) {
      lengths.insert(row["length"].get<std::int64_t>());
      CHECK(row["seconds"].get<double>() > 0);
      CHECK(row["exact_seconds"].get<double>() > 0);
      CHECK(row["pairs"].get<int>() >= 8);
      // Where other tests took the CPU, pairs can be too few for an interval.
      CHECK((row.contains("ratio_low") || row["stop"] == "disturbed"));
    }
    for (const std::int64_t length : {32, 64, 128, 256}) CHECK(lengths.count(length) == 1);
    CHECK_FALSE(
        result::crossover_text(result::crossover_over({found.get<result::CrossoverRound>()}))
            .empty());
  }
}

TEST_CASE("against is the named form, or the fastest of softmax's by measurement", "[crossover]") {
  const auto against = [](const char* name) {
    const auto cell = make_cell("crossover", "window", "auto", small_search({{"against", s(name)}}),
                                {{"window", Window{3, 0}}});
    return run_search(cell, 1).sections["crossover"]["against"].get<std::string>();
  };
  CHECK(against("softmax/composite") == "softmax/composite");
  CHECK(against("flash") == "softmax/tiled");
  CHECK(against("latte/scan") == "latte/scan");
  CHECK(against("fastest_exact").rfind("softmax/", 0) == 0);
}

TEST_CASE("a mechanism far slower at every length has no crossover", "[crossover]") {
  const auto cell =
      make_cell("crossover", "softmax", "composite",
                small_search({{"against", s("window/chunked")}, {"length_minimum", n(128)}}));
  Json found = run_search(cell, 1).sections["crossover"];
  INFO(found.dump());
  CHECK(found["verdict"] != "found");
}

TEST_CASE("backward passes are compared and checked, too", "[crossover]") {
  const Ran ran = run_search(make_cell("crossover", "latte", "auto",
                                       small_search({{"pass", s("forward+backward")}}),
                                       {{"latents_per_head", n(4)}}));
  CHECK(ran.check["verdict"] == "ok");
  CHECK(ran.check.contains("gradient"));
  CHECK(ran.check["exact"].contains("gradient"));
}

TEST_CASE("limits of memory and time end a search, with the reason", "[crossover]") {
  const auto cell = [](Settings more) {
    return make_cell("crossover", "latte", "auto", small_search(std::move(more)),
                     {{"latents_per_head", n(4)}});
  };
  worker::set_memory_limit(200000);
  const Json little =
      run_search(cell({{"against", s("softmax/composite")}}), 1).sections["crossover"];
  worker::set_memory_limit(0);
  CHECK(little["length_maximum"] < 256);
  CHECK_THAT(little["stopped"].get<std::string>(), Catch::Contains("may be used"));
  const Json hasty = run_search(cell({{"round_seconds", 1e-6}}), 1).sections["crossover"];
  CHECK(hasty["lengths"].size() == 1);
  CHECK_THAT(hasty["stopped"].get<std::string>(), Catch::Contains("round_seconds"));
}

TEST_CASE("a search whose output cannot be checked is unchecked, not wrong", "[crossover]") {
  // A definition that says something else each time excuses any output.
  Registry known = Registry::with_builtins();
  Entry entry = known.entry("softmax");
  entry.name = "drawn";
  entry.aliases.clear();
  entry.implementations.resize(1);
  known.add(entry,
            [random = std::mt19937_64(3)](const Options&, const Problem& problem, const auto&,
                                          const std::vector<reference::RowIndex>& rows) mutable {
              std::normal_distribution<double> normal;
              std::vector<double> out(rows.size() * static_cast<std::size_t>(problem.value_dim));
              for (double& one : out) one = normal(random);
              return out;
            });
  const Ran ran = run_search(
      make_cell("crossover", "drawn", "auto", small_search({{"against", s("softmax/composite")}})),
      0, known);
  CHECK(ran.check["verdict"] == "unchecked");
  const Json& timed = ran.sections["timed_check"];
  INFO(timed.dump());
  CHECK(timed["verdict"] == "unchecked");
  // At which length it is seen first follows from times.
  CHECK_THAT(
      timed["reason"].get<std::string>(),
      Catch::Matches("drawn/composite at length [0-9]+: in a timed call cannot be checked.*"));
}

TEST_CASE("invalid settings are refused before anything runs", "[crossover]") {
  const tasks::Task& task = tasks::find_task("crossover");
  const auto forecast = [&](Settings more) {
    return task.forecast(registry(), make_cell("crossover", "latte", "auto", small_search(more)));
  };
  CHECK_THROWS_WITH(forecast({{"length_minimum", n(256)}}), Catch::Contains("not less than"));
  CHECK_THROWS_WITH(forecast({{"against", s("sofmax")}}), Catch::Contains("did you mean softmax"));
  CHECK_THROWS_AS(forecast({{"against", s("softmax/tilde")}}), UsageError);
  CHECK_THROWS_AS(forecast({{"resolution", 2.0}}), UsageError);
  const auto shared =
      make_cell("crossover", "linear", "auto", small_search({{"kv_heads", n(1)}, {"heads", n(2)}}));
  CHECK_FALSE(task.forecast(registry(), shared).support.yes);
  CHECK_THROWS_AS(task.make(registry(), shared), UnsupportedError);
}
