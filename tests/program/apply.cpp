// attnbench apply, as a user runs it.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/apply/npy.hpp"
#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// A folder with arrays in it, and calls of the program there.
class Arrays {
 public:
  Arrays() {
    for (const char* role : {"query", "key", "value"}) put(role, {1, 2, 3, 43});
  }

  /// Numbers between -1 and 1 that differ from role to role.
  void put(const std::string& name, const npy::Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(npy::count_of(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<double>(i + name.size() * name[0]));
    }
    put(name, shape, values);
  }

  void put(const std::string& name, const npy::Shape& shape, const std::vector<double>& values) {
    npy::write_array(file(name), npy::Element::float64, shape, values.data());
  }

  std::vector<double> read(const std::string& name) const {
    const npy::Array array = npy::open_array(file(name));
    std::vector<double> values(static_cast<std::size_t>(npy::count_of(array.shape)));
    npy::read_array(array, values.data());
    return values;
  }

  std::string file(const std::string& name) const { return folder_ / (name + ".npy"); }
  fs::path out() const { return folder_ / "out"; }

  std::vector<std::string> softmax(const std::vector<std::string>& more = {}) const {
    return call(
        "softmax",
        {"--pattern", "causal", "--query", "query.npy", "--key", "key.npy", "--value", "value.npy"},
        more);
  }

  /// The plugin's mechanism, which hands back its values, told how to misbehave.
  std::vector<std::string> misbehave(const std::string& how,
                                     const std::vector<std::string>& more = {}) const {
    return call("misbehave",
                {"--value", "value.npy", "--plugin", misbehave_plugin(), "--set", "how=" + how},
                more);
  }

  Finished run(const std::vector<std::string>& words) const {
    return test::run(words, 120, environment(), folder_.path());
  }

  /// A cache of the tests' own, so that no test is answered by the user's.
  static std::map<std::string, std::string> environment() {
    return {{"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}};
  }

  /// Whether the call left nothing behind.
  bool untouched() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().extension() != ".npy") return false;
    }
    return true;
  }

 private:
  static std::vector<std::string> call(const std::string& mechanism,
                                       const std::vector<std::string>& words,
                                       const std::vector<std::string>& more) {
    std::vector<std::string> all{program(), "apply", mechanism, "--out", "out"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TemporaryFolder folder_;
};

void check_refused(const Arrays& arrays, const std::vector<std::string>& words,
                   const std::string& message) {
  const Finished finished = arrays.run(words);
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.err, Contains(message));
  CHECK(finished.out.empty());
  CHECK(arrays.untouched());
}

}  // namespace

TEST_CASE("apply writes the output, the gradients and what ran", "[program][apply]") {
  const Arrays arrays;
  const Finished finished =
      arrays.run(arrays.softmax({"--gradient", "ones", "--implementation", "composite"}));
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("softmax/composite (asked for)") && Contains("length 3") &&
                               Contains("head_dim 43") && Contains("gradients/key.npy"));
  // The first token sees itself alone.
  const std::vector<double> value = arrays.read("value");
  const std::vector<double> output = arrays.read("out/output");
  for (std::size_t d = 0; d < 43; ++d) CHECK(output[d] == Approx(value[d]).epsilon(1e-14));
  // Weights sum to one: upstream ones come back as that many, spread over the tokens.
  double sum = 0;
  for (const double each : arrays.read("out/gradients/value")) sum += each;
  CHECK(sum == Approx(2 * 3 * 43));
  const Json document = Json::parse(read_file(arrays.out() / "apply.json"));
  CHECK(document.at("problem").at("length") == 3);
  CHECK(document.at("check").at("error").get<double>() < 1e-10);
  CHECK(document.at("check").at("rows") == 6);
  CHECK(document.at("versions").contains("torch"));
  CHECK(document.at("files").size() == 4);
  CHECK(fs::exists(arrays.file("out/gradients/query")));
}

TEST_CASE("apply finds sizes and options in the arrays", "[program][apply]") {
  Arrays arrays;
  arrays.put("ql", {1, 2, 3, 7});
  arrays.put("kl", {1, 2, 3, 7});
  const Finished finished = arrays.run(
      {program(), "apply", "latte", "--pattern", "causal", "--role", "query_logits=ql.npy",
       "--role", "key_logits=kl.npy", "--value", "value.npy", "--out", "out"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("latents_per_head 7") && Contains("value_dim 43"));
}

TEST_CASE("apply refuses names that are not known", "[program][apply]") {
  Arrays arrays;
  check_refused(arrays, {program(), "apply", "sofmax", "--out", "out"}, "softmax");
  check_refused(arrays, {program(), "apply", "softmax", "--out", "out"}, "--pattern is missing");
  check_refused(arrays, arrays.softmax({"--pattern", "causal"}), "pattern");
  check_refused(arrays, arrays.softmax({"--implementation", "tilde"}), "tiled");
  check_refused(arrays, arrays.softmax({"--set", "scal=1"}), "did you mean \"scale\"?");
  check_refused(arrays, arrays.softmax({"--set", "scale=1,2"}), "expected one value");
  check_refused(arrays, arrays.softmax({"--set", "query_chunk=length"}), "whole number");
  check_refused(arrays, arrays.softmax({"--role", "quary=query.npy"}), "no role \"quary\"");
  check_refused(arrays, arrays.softmax({"--role", "query=key.npy"}), "given twice");
  check_refused(arrays, arrays.softmax({"--param", "w=key.npy"}), "no parameter \"w\"");
  check_refused(arrays, arrays.softmax({"--param", "w"}), "expected NAME=FILE");
  check_refused(arrays,
                {program(), "apply", "softmax", "--pattern", "causal", "--query", "query.npy",
                 "--out", "out"},
                "--key FILE");
}

TEST_CASE("apply refuses arrays that do not go together", "[program][apply]") {
  Arrays arrays;
  const auto refuse = [&](const npy::Shape& shape, const std::string& role,
                          const std::string& message) {
    INFO(role << " " << npy::to_string(shape));
    Arrays own;
    own.put(role, shape);
    check_refused(own, own.softmax(), message);
  };
  refuse({2, 3, 43}, "key", "expected [batch, heads, tokens, width]");
  refuse({1, 2, 0, 43}, "value", "is empty");
  refuse({2, 2, 3, 43}, "value", "expected one batch size");
  refuse({1, 2, 4, 43}, "value", "expected the same batch, heads and tokens");
  refuse({1, 2, 4, 43}, "query", "expected as many key tokens as query tokens");
  refuse({1, 2, 3, 42}, "key", "expected [1, 2, 3, 43]");
  refuse({1, 3, 3, 43}, "query", "divides that of the query heads");
  arrays.put("mask", {1, 3});
  check_refused(arrays, arrays.softmax({"--mask", "mask.npy"}), "expected bool or uint8");
  arrays.put("gradient", {1, 2, 3, 42});
  check_refused(arrays, arrays.softmax({"--gradient", "gradient.npy"}),
                "expected the output's shape, [1, 2, 3, 43]");
}

TEST_CASE("apply gives no advice that it cannot take", "[program][apply]") {
  Arrays arrays;
  std::vector<double> values = arrays.read("query");
  values[5] = std::nan("");
  arrays.put("query", {1, 2, 3, 43}, values);
  const Finished query = arrays.run(arrays.softmax());
  CHECK(query.exit_code == 2);
  CHECK_THAT(query.err, Contains("query.npy") && Contains("mend them or pass --allow-nan") &&
                            !Contains("--mask"));
  Arrays upstream;
  upstream.put("gradient", {1, 2, 3, 43}, values);
  const Finished gradient = upstream.run(upstream.softmax({"--gradient", "gradient.npy"}));
  CHECK(gradient.exit_code == 2);
  CHECK_THAT(gradient.err, Contains("gradient.npy") && !Contains("--mask"));
  Arrays key;
  key.put("key", {1, 2, 3, 43}, values);
  CHECK_THAT(key.run(key.softmax()).err, Contains("hide their tokens with --mask"));
  check_refused(key, key.softmax({"--gradient", "zeros"}), "expected the word ones");
}

TEST_CASE("apply says where sizes that do not fit come from", "[program][apply]") {
  Arrays arrays;
  arrays.put("latent", {1, 4, 2, 8});
  arrays.put("query", {1, 4, 3, 8});
  arrays.put("pack_key", {1, 2, 3, 8});
  const std::vector<std::string> luna{program(),
                                      "apply",
                                      "luna",
                                      "--out",
                                      "out",
                                      "--pattern",
                                      "bidirectional",
                                      "--query",
                                      "query.npy",
                                      "--role",
                                      "latent_query=latent.npy",
                                      "--role",
                                      "pack_key=pack_key.npy"};
  const Finished grouped = arrays.run(luna);
  INFO(grouped.err);
  CHECK(grouped.exit_code == 2);
  CHECK_THAT(grouped.err, Contains("kv_heads is dimension 1 of the arrays of key tokens") &&
                              !Contains("set kv_heads"));
}

TEST_CASE("apply refuses what comes before the projections", "[program][apply]") {
  Arrays arrays;
  arrays.put("query_logits", {1, 2, 3, 8});
  arrays.put("key_logits", {1, 2, 3, 7});
  const std::vector<std::string> macchiato{program(),
                                           "apply",
                                           "macchiato",
                                           "--out",
                                           "out",
                                           "--pattern",
                                           "causal",
                                           "--value",
                                           "value.npy",
                                           "--role",
                                           "local_query=query.npy",
                                           "--role",
                                           "local_key=key.npy",
                                           "--role",
                                           "query_logits=query_logits.npy",
                                           "--role",
                                           "key_logits=key_logits.npy"};
  REQUIRE(arrays.run(macchiato).exit_code == 0);
  Arrays own;
  own.put("query_logits", {1, 2, 3, 8});
  own.put("key_logits", {1, 2, 3, 7});
  auto with_conv = macchiato;
  with_conv.insert(with_conv.end(), {"--set", "before=conv"});
  check_refused(own, with_conv, "which are given as arrays here; leave it out");
}

TEST_CASE("apply names a refused implementation once", "[program][apply]") {
  const Arrays arrays;
  auto words = arrays.softmax({"--implementation", "scan"});
  words[2] = "linear";
  *std::find(words.begin(), words.end(), "causal") = "bidirectional";
  const Finished finished = arrays.run(words);
  INFO(finished.err);
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.err, Contains("linear/scan: ") && !Contains("linear/scan: linear:"));
}

TEST_CASE("apply takes masks of bool and uint8 that fit", "[program][apply]") {
  const Arrays arrays;
  const auto put = [&](npy::Element element, const npy::Shape& shape, const std::string& values) {
    npy::write_array(arrays.file("mask"), element, shape, values.data());
  };
  const auto masked = arrays.softmax({"--mask", "mask.npy"});
  put(npy::Element::uint8, {1, 3}, std::string("\1\1\2"));
  check_refused(arrays, masked, "neither 0 nor 1 at [0, 2]");
  put(npy::Element::boolean, {1, 4}, std::string("\1\1\1\1"));
  check_refused(arrays, masked, "expected [1, 3]");
  put(npy::Element::boolean, {1, 3, 1}, std::string("\1\1\1"));
  check_refused(arrays, masked, "expected [batch, key tokens]");
  put(npy::Element::uint8, {1, 3}, std::string("\0\1\1", 3));
  const Finished finished = arrays.run(masked);
  CHECK(finished.exit_code == 0);
  CHECK(arrays.read("out/output")[0] == 0);  // the first token sees nothing
}

TEST_CASE("apply refuses NaN unless it is allowed", "[program][apply]") {
  Arrays arrays;
  std::vector<double> values = arrays.read("value");
  values[2 * 43 + 5] = std::nan("");
  arrays.put("value", {1, 2, 3, 43}, values);
  check_refused(arrays, arrays.softmax(), "NaN or infinity at [0, 0, 2, 5]");
  const Finished finished = arrays.run(arrays.softmax({"--allow-nan"}));
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  const Json document = Json::parse(read_file(arrays.out() / "apply.json"));
  // The other head's rows at least are as ever; the last of this one cannot be.
  const int checked = document.at("check").at("rows");
  CHECK(checked >= 3);
  CHECK(checked <= 5);
  CHECK(document.at("check").at("rows_not_finite") == 6 - checked);
}

TEST_CASE("apply keeps a folder that holds files, unless it is forced", "[program][apply]") {
  const Arrays arrays;
  REQUIRE(arrays.run(arrays.softmax()).exit_code == 0);
  write_file(arrays.out() / "notes.txt", "mine");
  const Finished refused = arrays.run(arrays.softmax({"--gradient", "ones"}));
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("--force"));
  CHECK_FALSE(fs::exists(arrays.out() / "gradients"));
  CHECK(arrays.run(arrays.softmax({"--gradient", "ones", "--force"})).exit_code == 0);
  CHECK(fs::exists(arrays.out() / "gradients"));
  CHECK(read_file(arrays.out() / "notes.txt") == "mine");
}

TEST_CASE("a wrong output is written and said, with exit code 1", "[program][apply]") {
  const Arrays arrays;
  const Finished finished = arrays.run(arrays.misbehave("wrong"));
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 1);
  CHECK_THAT(finished.err, Contains("wrong") && Contains("differ from the reference"));
  CHECK(arrays.read("out/output")[0] == Approx(1.5 * arrays.read("value")[0]));
  CHECK(Json::parse(read_file(arrays.out() / "apply.json")).at("status") == "wrong");
  CHECK(arrays.run(arrays.misbehave("wrong", {"--force", "--check-rows", "0"})).exit_code == 0);
}

TEST_CASE("arrays that a mechanism changes in place are named", "[program][apply]") {
  const Arrays arrays;
  const Finished finished = arrays.run(arrays.misbehave("in_place"));
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 1);
  CHECK_THAT(finished.err, Contains("it changed its input \"value\" in place"));
}

TEST_CASE("whatever happens in the worker leaves a reason and no folder", "[program][apply]") {
  const Arrays arrays;
  const auto [how, code, message] =
      GENERATE(table<std::string, int, std::string>({{"segfault", 5, "SIGSEGV"},
                                                     {"exit", 5, "exit code 7"},
                                                     {"throw", 1, "I was told to throw"},
                                                     {"allocate", 3, "out_of_memory"},
                                                     {"unsupported", 2, "told to refuse"}}));
  const Finished finished = arrays.run(arrays.misbehave(how, {"--memory-limit", "256M"}));
  INFO(how << ": " << finished.out << finished.err);
  CHECK(finished.exit_code == code);
  CHECK_THAT(finished.err, Contains(message));
  CHECK(arrays.untouched());
}

TEST_CASE("a folder that cannot be made is the machine's fault", "[program][apply]") {
  const Arrays arrays;
  const Finished finished =
      arrays.run({program(), "apply", "softmax", "--pattern", "causal", "--query", "query.npy",
                  "--key", "key.npy", "--value", "value.npy", "--out", "/proc/attnbench"});
  CHECK(finished.exit_code == 3);
  CHECK_THAT(finished.err, Contains("cannot write to /proc/attnbench"));
}

TEST_CASE("Ctrl-C ends apply and leaves nothing", "[program][apply]") {
  const Arrays arrays;
  const TemporaryFolder elsewhere;
  std::vector<std::string> words = {
      program(),          "apply", "misbehave", "--value", arrays.file("value"), "--plugin",
      misbehave_plugin(), "--set", "how=hang",  "--out",   elsewhere / "out"};
  Running running(words, elsewhere / "log", Arrays::environment());
  REQUIRE(wait_until([&] { return child_of(running) > 0; }));
  running.signal(SIGINT);
  CHECK(running.wait(20) == 130);
  CHECK_THAT(read_file(elsewhere / "log"), Contains("nothing was written"));
  std::size_t left = 0;
  for (const auto& entry : fs::directory_iterator(elsewhere.path())) left += entry.exists() ? 1 : 0;
  CHECK(left == 1);  // the log
}

TEST_CASE("apply --help tells what goes in and what comes out", "[program][apply]") {
  const Finished finished = test::run({program(), "apply", "--help"});
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("numpy") && Contains("--gradient") && Contains("--role") &&
                               Contains("parameters/NAME.npy") && Contains("Exit codes"));
}
