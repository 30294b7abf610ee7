#include "harness/run/plan/blas_core.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::run;

namespace {

using Types = std::vector<std::string>;

const char* const avx2 = "fpu sse2 avx fma avx2 bmi2";
const char* const skylake = "avx fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl";
const char* const sapphire =
    "avx fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl avx512_bf16 amx_bf16 amx_tile";

const Types order{"SapphireRapids", "Cooperlake", "SkylakeX", "Haswell"};

BlasTrial trial_of(const std::string& core_type, double rate) {
  return {"openblas", "/lib/libopenblas.so", core_type, rate};
}

/// An OpenBLAS whose core types have these rates; its own choice is `own`, also where it does not
/// know the one that is asked for. `asked` is what was tried.
struct Library {
  std::string own;
  std::map<std::string, double> rates;
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
  CHECK(core_types_for("GenuineIntel", sapphire) == order);
  CHECK(core_types_for("GenuineIntel", skylake) == Types{"SkylakeX", "Haswell"});
  CHECK(core_types_for("AuthenticAMD", skylake) == Types{"SkylakeX", "Zen"});
  CHECK(core_types_for("GenuineIntel", avx2) == Types{"Haswell"});
  CHECK(core_types_for("GenuineIntel", "sse2 avx") == Types{"Sandybridge"});
  // avx512f alone is not what SkylakeX's kernels need.
  CHECK(core_types_for("GenuineIntel", "avx fma avx2 avx512f") == Types{"Haswell"});
  CHECK(core_types_for("", "fp asimd sve").empty());
}

TEST_CASE("the fastest core type is chosen where the library chose badly", "[blas_core]") {
  // OpenBLAS 0.3.21 on a CPU with AVX-512 that it does not know.
  const BlasTrials trials{
      trial_of("Prescott", 29e9), {{"SkylakeX", 193e9}, {"Haswell", 101e9}}, {}};
  const BlasChoice choice = choose(trials, order);
  CHECK(choice.set == "SkylakeX");
  CHECK(choice.core_type == "SkylakeX");
  CHECK(choice.chosen_by == "attnbench");
  CHECK(choice.tried ==
        std::map<std::string, double>{{"Haswell", 101e9}, {"Prescott", 29e9}, {"SkylakeX", 193e9}});
}

TEST_CASE("the library's own choice stands unless another is clearly faster", "[blas_core]") {
  const BlasTrials near{trial_of("Cooperlake", 100e9), {{"SkylakeX", 109e9}}, {}};
  CHECK(choose(near, order).set.empty());
  CHECK(choose(near, order).core_type == "Cooperlake");
  CHECK(choose(near, order).chosen_by == "library");
  // Of two about as fast always the same one, whichever a neighbour held back.
  for (const double rate : {190e9, 199e9}) {
    const BlasTrials two{
        trial_of("Prescott", 29e9), {{"SkylakeX", 195e9}, {"Cooperlake", rate}}, {}};
    CHECK(choose(two, order).set == "Cooperlake");
  }
}

TEST_CASE("core types are tried once; what crashes or is not known costs only itself",
          "[blas_core]") {
  Library library{
      "Prescott", {{"Prescott", 29e9}, {"SkylakeX", 193e9}, {"Haswell", 101e9}}, {"Haswell"}, {}};
  const auto found = try_all(std::nullopt, order, library.trying(), 60);
  REQUIRE(found);
  // The own choice once more in the end, since it is put aside.
  CHECK(library.asked == Types{"", "SapphireRapids", "Cooperlake", "SkylakeX", "Haswell", ""});
  CHECK(found->others == std::map<std::string, double>{{"SkylakeX", 193e9}});
  CHECK(found->unknown == std::set<std::string>{"Cooperlake", "SapphireRapids"});
  CHECK(choose(*found, order).set == "SkylakeX");
  // What failed is no finding: it is tried again, and only that.
  library.asked.clear();
  library.crashes.clear();
  const auto again = try_all(found, order, library.trying(), 60);
  CHECK(library.asked.front() == "Haswell");
  CHECK(again->others.size() == 2);
}

TEST_CASE("nothing is tried of another BLAS, or where the library itself fails", "[blas_core]") {
  Types asked;
  const TryBlas mkl = [&](const std::string& type) -> std::optional<BlasTrial> {
    asked.push_back(type);
    return BlasTrial{"mkl", "/libtorch_cpu.so", "", 100e9};
  };
  const auto found = try_all(std::nullopt, order, mkl, 60);
  CHECK(asked == Types{""});
  CHECK(choose(*found, order).set.empty());
  CHECK(choose(*found, order).kind == "mkl");
  Library broken{"Haswell", {{"Haswell", 1e9}}, {""}, {}};
  CHECK_FALSE(try_all(std::nullopt, order, broken.trying(), 60));
  CHECK(broken.asked == Types{""});
}

TEST_CASE("trying ends when its time is up, and the next run goes on with it", "[blas_core]") {
  Library library{
      "Prescott", {{"Prescott", 29e9}, {"SkylakeX", 193e9}, {"Haswell", 101e9}}, {}, {}};
  const TryBlas quick = library.trying();
  const TryBlas slow = [&](const std::string& type) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return quick(type);
  };
  const Types types{"SkylakeX", "Haswell"};
  const auto first = try_all(std::nullopt, types, slow, 0.01);
  REQUIRE(first);
  CHECK(first->others.empty());
  const auto second = try_all(first, types, quick, 60);
  CHECK(second->others.size() == 2);
}

TEST_CASE("trials are remembered until the library's file changes", "[blas_core]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "cache/blas.json";
  test::write_file(folder / "libopenblas.so", "one");
  BlasTrials trials{trial_of("Prescott", 29e9), {{"SkylakeX", 193e9}}, {"SapphireRapids"}};
  trials.own.library = folder / "libopenblas.so";
  CHECK_FALSE(remembered_trials(file));
  remember_trials(file, trials);
  const auto back = remembered_trials(file);
  REQUIRE(back);
  CHECK(back->own.core_type == "Prescott");
  CHECK(back->own.flops_per_second == 29e9);
  CHECK(back->others == trials.others);
  CHECK(back->unknown == trials.unknown);
  test::write_file(folder / "libopenblas.so", "another");
  CHECK_FALSE(remembered_trials(file));
}

TEST_CASE("a damaged memory of trials is as good as none", "[blas_core]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "blas.json";
  test::write_file(folder / "lib.so", "x");
  BlasTrials trials{trial_of("Prescott", 29e9), {{"SkylakeX", 193e9}}, {}};
  trials.own.library = folder / "lib.so";
  remember_trials(file, trials);
  const std::string whole = test::read_file(file);
  REQUIRE(remembered_trials(file));
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    test::write_file(file, whole.substr(0, length));
    CHECK_FALSE(remembered_trials(file));
  }
  for (const char* text : {"[]", "null", "{\"own\": 5}", "\x80\x81"}) {
    test::write_file(file, text);
    CHECK_FALSE(remembered_trials(file));
  }
  trials.others["SkylakeX"] = -1;
  remember_trials(file, trials);
  CHECK_FALSE(remembered_trials(file));
}

TEST_CASE("a choice comes back from a journal's header, and nothing from anything else",
          "[blas_core]") {
  const BlasTrials trials{trial_of("Prescott", 29e9), {{"SkylakeX", 193e9}}, {}};
  const auto back = blas_choice_from(choose(trials, order));
  REQUIRE(back);
  CHECK(back->set == "SkylakeX");
  CHECK(back->tried.size() == 2);
  const BlasTrials own{trial_of("Haswell", 29e9), {}, {}};
  CHECK(blas_choice_from(choose(own, order))->set.empty());
  for (const Json& odd : {Json(), Json("openblas"), Json{{"kind", 3}}, Json::object()}) {
    CHECK_FALSE(blas_choice_from(odd));
  }
}
