#include "harness/program/run/plan/blas_core.hpp"

#include <future>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::run;

namespace {

using Types = std::vector<std::string>;

const Types core_order{"SapphireRapids", "Cooperlake", "SkylakeX", "Haswell"};

BlasTrial trial_of(const std::string& core_type, double rate) {
  return {"openblas", "/lib/libopenblas.so", core_type, rate};
}

/// Trials of OpenBLAS 0.3.21 on a CPU with AVX-512 that it does not know.
BlasTrials found_slow(std::map<std::string, double> others = {{"SkylakeX", 193e9}}) {
  return {trial_of("Prescott", 29e9), std::move(others), {}};
}

/// An OpenBLAS whose core types have these rates; its own choice is `own`, also where it does not
/// know the one that is asked for. `asked` is what was tried.
struct Library {
  std::string own = "Prescott";
  std::map<std::string, double> rates{{"Prescott", 29e9}, {"SkylakeX", 193e9}, {"Haswell", 101e9}};
  std::set<std::string> crashes;
  Types asked;

  TryBlas trying() {
    return [this](const std::string& type) -> std::optional<BlasTrial> {
      asked.push_back(type);
      if (crashes.count(type) != 0) return std::nullopt;
      const std::string used = rates.count(type) != 0 ? type : own;
      return trial_of(used, rates.at(used));
    };
  }
};

}  // namespace

TEST_CASE("core types are those that the CPU's features allow, the most promising first",
          "[blas_core]") {
  const std::string avx2 = "fpu sse2 avx fma avx2 bmi2";
  const std::string skylake = "avx fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl";
  CHECK(core_types_for("GenuineIntel", skylake + " avx512_bf16 amx_bf16 amx_tile") == core_order);
  CHECK(core_types_for("GenuineIntel", skylake) == Types{"SkylakeX", "Haswell"});
  CHECK(core_types_for("AuthenticAMD", skylake) == Types{"SkylakeX", "Zen"});
  CHECK(core_types_for("GenuineIntel", avx2) == Types{"Haswell"});
  CHECK(core_types_for("GenuineIntel", "sse2 avx") == Types{"Sandybridge"});
  // avx512f alone is not what SkylakeX's kernels need.
  CHECK(core_types_for("GenuineIntel", "avx fma avx2 avx512f") == Types{"Haswell"});
  CHECK(core_types_for("", "fp asimd sve").empty());
}

TEST_CASE("the fastest core type is chosen where the library chose badly", "[blas_core]") {
  const BlasChoice choice =
      choose(found_slow({{"SkylakeX", 193e9}, {"Haswell", 101e9}}), core_order);
  CHECK(choice.set == "SkylakeX");
  CHECK(choice.core_type == "SkylakeX");
  CHECK(choice.chosen_by == "attnbench");
  CHECK(choice.tried ==
        std::map<std::string, double>{{"Haswell", 101e9}, {"Prescott", 29e9}, {"SkylakeX", 193e9}});
  // Its own choice stands unless another is clearly faster.
  const BlasTrials near{trial_of("Cooperlake", 100e9), {{"SkylakeX", 109e9}}, {}};
  CHECK(choose(near, core_order).set.empty());
  CHECK(choose(near, core_order).core_type == "Cooperlake");
  CHECK(choose(near, core_order).chosen_by == "library");
  // One of two that are about as fast is always the same, whichever a neighbour held back.
  for (const double rate : {190e9, 199e9}) {
    CHECK(choose(found_slow({{"SkylakeX", 195e9}, {"Cooperlake", rate}}), core_order).set ==
          "Cooperlake");
  }
  // A choice comes back from a journal's header, and nothing from anything else.
  const auto back = blas_choice_from(choice);
  REQUIRE(back);
  CHECK(back->set == "SkylakeX");
  CHECK(back->tried.size() == 3);
  CHECK(blas_choice_from(choose(near, core_order))->set.empty());
  for (const Json& odd : {Json(), Json("openblas"), Json{{"kind", 3}}, Json::object()}) {
    CHECK_FALSE(blas_choice_from(odd));
  }
}

TEST_CASE("core types are tried once; what crashes or is not known costs only itself",
          "[blas_core]") {
  Library library;
  library.crashes = {"Haswell"};
  const auto found = try_all(std::nullopt, core_order, library.trying());
  REQUIRE(found);
  // The own choice once more in the end, since it is put aside.
  CHECK(library.asked == Types{"", "SapphireRapids", "Cooperlake", "SkylakeX", "Haswell", ""});
  CHECK(found->others == std::map<std::string, double>{{"SkylakeX", 193e9}});
  CHECK(found->unknown == std::set<std::string>{"Cooperlake", "SapphireRapids"});
  CHECK(choose(*found, core_order).set == "SkylakeX");
  // What failed is no finding: it is tried again, and only that.
  library.asked.clear();
  library.crashes.clear();
  const auto again = try_all(found, core_order, library.trying());
  CHECK(library.asked.front() == "Haswell");
  CHECK(again->others.size() == 2);
}

TEST_CASE("nothing is tried of another BLAS, or where the library itself fails", "[blas_core]") {
  Types asked;
  const TryBlas mkl = [&](const std::string& type) -> std::optional<BlasTrial> {
    asked.push_back(type);
    return BlasTrial{"mkl", "/libtorch_cpu.so", "", 100e9};
  };
  const auto found = try_all(std::nullopt, core_order, mkl);
  CHECK(asked == Types{""});
  CHECK(choose(*found, core_order).set.empty());
  CHECK(choose(*found, core_order).kind == "mkl");
  Library broken;
  broken.crashes = {""};
  CHECK_FALSE(try_all(std::nullopt, core_order, broken.trying()));
  CHECK(broken.asked == Types{""});
}

TEST_CASE("trials are remembered until the library's file changes; damaged ones are none",
          "[blas_core]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "cache/blas.json";
  test::write_file(folder / "libopenblas.so", "one");
  BlasTrials trials = found_slow();
  trials.unknown = {"SapphireRapids"};
  trials.own.library = folder / "libopenblas.so";
  CHECK_FALSE(remembered_trials(file));
  remember_trials(file, trials);
  const auto back = remembered_trials(file);
  REQUIRE(back);
  CHECK(back->own.core_type == "Prescott");
  CHECK(back->own.flops_per_second == 29e9);
  CHECK(back->others == trials.others);
  CHECK(back->unknown == trials.unknown);
  const std::string whole = test::read_file(file);
  std::vector<std::string> damaged{"[]", "null", "{\"own\": 5}", "\x80\x81"};
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    damaged.push_back(whole.substr(0, length));
  }
  for (const std::string& text : damaged) {
    test::write_file(file, text);
    CHECK_FALSE(remembered_trials(file));
  }
  trials.others["SkylakeX"] = -1;
  remember_trials(file, trials);
  CHECK_FALSE(remembered_trials(file));
  trials = found_slow();
  trials.own.library = folder / "libopenblas.so";
  remember_trials(file, trials);
  REQUIRE(remembered_trials(file));
  test::write_file(folder / "libopenblas.so", "another");
  CHECK_FALSE(remembered_trials(file));
}

TEST_CASE("one process tries at a time, and the next waits for what it found", "[blas_core]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "cache/blas.json";
  auto first = std::make_unique<TrialsLock>(file);
  CHECK(first->held());
  auto second = std::async(std::launch::async, [&] { return TrialsLock(file).held(); });
  CHECK(second.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
  first.reset();
  CHECK(second.get());
  test::write_file(folder / "plain", "");
  CHECK_FALSE(TrialsLock(folder / "plain/blas.json").held());
}
