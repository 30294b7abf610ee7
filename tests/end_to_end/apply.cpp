// attnbench apply, as a user runs it.
#include <signal.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/arrays/npy.hpp"
#include "tests/end_to_end/runs.hpp"
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
  void put(const std::string& name, const arrays::Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(arrays::count_of(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<double>(i + name.size() * name[0]));
    }
    put(name, shape, values);
  }

  void put(const std::string& name, const arrays::Shape& shape, const std::vector<double>& values) {
    arrays::write_array(file(name), arrays::Element::float64, shape, values.data());
  }

  std::vector<double> read(const std::string& name) const {
    const arrays::ArrayFile array = arrays::open_array(file(name));
    std::vector<double> values(static_cast<std::size_t>(arrays::count_of(array.shape)));
    arrays::read_array(array, values.data());
    return values;
  }

  std::string file(const std::string& name) const { return folder_ / (name + ".npy"); }
  fs::path out() const { return folder_ / "out"; }

  /// attnbench apply LINE --out out.
  Finished apply(const std::string& line) const {
    return call("apply " + line + " --out out", {}, folder_.path());
  }
  Finished softmax(const std::string& more = {}) const { return apply(softmax_line + more); }
  /// The plugin's mechanism, which hands back its values, told how to misbehave.
  Finished misbehave(const std::string& how, const std::string& more = {}) const {
    return apply("misbehave --value value.npy --plugin " + misbehave_plugin() +
                 " --set how=" + how + " " + more);
  }

  /// Whether the call left nothing behind.
  bool untouched() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().extension() != ".npy") return false;
    }
    return true;
  }

  inline static const std::string softmax_line =
      "softmax --pattern causal --query query.npy --key key.npy --value value.npy ";

 private:
  TemporaryFolder folder_;
};

void check_refused(const Arrays& arrays, const std::string& line, const std::string& message) {
  const Finished finished = arrays.apply(line);
  INFO(line << "\n" << finished.err);
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.err, Contains(message));
  CHECK(finished.out.empty());
  CHECK(arrays.untouched());
}

}  // namespace

// Sizes and options that are found in the arrays: tests/harness/worker/apply.cpp.
TEST_CASE("apply writes the output, the gradients and what ran", "[program][apply]") {
  const Arrays arrays;
  const Finished finished = arrays.softmax("--gradient ones --implementation composite");
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
  // A folder that holds files: tests/harness/program/apply/out_folder.cpp.
  const Finished again = arrays.softmax();
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Contains("--force"));
}

TEST_CASE("apply refuses names that are not known", "[program][apply]") {
  const Arrays arrays;
  const std::string softmax = Arrays::softmax_line;
  for (const auto& [line, message] : std::map<std::string, std::string>{
           {"sofmax", "softmax"},
           {"softmax", "--pattern is missing"},
           {softmax + "--pattern causal", "pattern"},
           {softmax + "--implementation tilde", "tiled"},
           {softmax + "--set scal=1", "did you mean \"scale\"?"},
           {softmax + "--set scale=1,2", "expected one value"},
           {softmax + "--set query_chunk=length", "whole number"},
           {softmax + "--role quary=query.npy", "no role \"quary\""},
           {softmax + "--role query=key.npy", "given twice"},
           {softmax + "--param w=key.npy", "no parameter \"w\""},
           {softmax + "--param w", "expected NAME=FILE"},
           {"softmax --pattern causal --query query.npy", "--key FILE"}}) {
    check_refused(arrays, line, message);
  }
}

TEST_CASE("apply refuses arrays that do not go together", "[program][apply]") {
  const std::vector<std::tuple<arrays::Shape, std::string, std::string>> shapes{
      {{2, 3, 43}, "key", "expected [batch, heads, tokens, width]"},
      {{1, 2, 0, 43}, "value", "is empty"},
      {{2, 2, 3, 43}, "value", "expected one batch size"},
      {{1, 2, 4, 43}, "value", "expected the same batch, heads and tokens"},
      {{1, 2, 4, 43}, "query", "expected as many key tokens as query tokens"},
      {{1, 2, 3, 42}, "key", "expected [1, 2, 3, 43]"},
      {{1, 3, 3, 43}, "query", "divides that of the query heads"}};
  for (const auto& [shape, role, message] : shapes) {
    Arrays own;
    own.put(role, shape);
    check_refused(own, Arrays::softmax_line, message);
  }
  Arrays arrays;
  arrays.put("mask", {1, 3});
  check_refused(arrays, Arrays::softmax_line + "--mask mask.npy", "expected bool or uint8");
  arrays.put("gradient", {1, 2, 3, 42});
  check_refused(arrays, Arrays::softmax_line + "--gradient gradient.npy",
                "expected the output's shape, [1, 2, 3, 43]");
  check_refused(arrays, Arrays::softmax_line + "--gradient zeros", "expected the word ones");
}

TEST_CASE("apply gives no advice that it cannot take", "[program][apply]") {
  Arrays arrays;
  std::vector<double> values = arrays.read("query");
  values[5] = std::nan("");
  arrays.put("query", {1, 2, 3, 43}, values);
  const Finished query = arrays.softmax();
  CHECK(query.exit_code == 2);
  CHECK_THAT(query.err, Contains("query.npy") && Contains("mend them or pass --allow-nan") &&
                            !Contains("--mask"));
  Arrays key;
  key.put("key", {1, 2, 3, 43}, values);
  CHECK_THAT(key.softmax().err, Contains("hide their tokens with --mask"));

  // Sizes of latents follow from arrays, not from a setting.
  arrays.put("latent", {1, 4, 2, 8});
  arrays.put("query", {1, 4, 3, 8});
  arrays.put("pack_key", {1, 2, 3, 8});
  const Finished grouped = arrays.apply(
      "luna --pattern bidirectional --query query.npy "
      "--role latent_query=latent.npy --role pack_key=pack_key.npy");
  INFO(grouped.err);
  CHECK(grouped.exit_code == 2);
  CHECK_THAT(grouped.err, Contains("kv_heads is dimension 1 of the arrays of key tokens") &&
                              !Contains("set kv_heads"));
  const Finished refused = Arrays().apply(
      "linear --implementation scan --pattern bidirectional --query query.npy "
      "--key key.npy --value value.npy");
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("linear/scan: ") && !Contains("linear/scan: linear:"));

  Arrays own;
  own.put("query_logits", {1, 2, 3, 8});
  own.put("key_logits", {1, 2, 3, 7});
  check_refused(own,
                "macchiato --pattern causal --value value.npy --role local_query=query.npy "
                "--role local_key=key.npy --role query_logits=query_logits.npy "
                "--role key_logits=key_logits.npy --set before=conv",
                "which are given as arrays here; leave it out");
}

TEST_CASE("apply takes masks of bool and uint8 that fit", "[program][apply]") {
  const Arrays arrays;
  const auto put = [&](arrays::Element element, const arrays::Shape& shape,
                       const std::string& values) {
    arrays::write_array(arrays.file("mask"), element, shape, values.data());
  };
  const std::string masked = Arrays::softmax_line + "--mask mask.npy";
  put(arrays::Element::uint8, {1, 3}, std::string("\1\1\2"));
  check_refused(arrays, masked, "neither 0 nor 1 at [0, 2]");
  put(arrays::Element::boolean, {1, 4}, std::string("\1\1\1\1"));
  check_refused(arrays, masked, "expected [1, 3]");
  put(arrays::Element::boolean, {1, 3, 1}, std::string("\1\1\1"));
  check_refused(arrays, masked, "expected [batch, key tokens]");
  put(arrays::Element::uint8, {1, 3}, std::string("\0\1\1", 3));
  CHECK(arrays.apply(masked).exit_code == 0);
  CHECK(arrays.read("out/output")[0] == 0);  // the first token sees nothing
}

TEST_CASE("apply refuses NaN unless it is allowed", "[program][apply]") {
  Arrays arrays;
  std::vector<double> values = arrays.read("value");
  values[2 * 43 + 5] = std::nan("");
  arrays.put("value", {1, 2, 3, 43}, values);
  check_refused(arrays, Arrays::softmax_line, "NaN or infinity at [0, 0, 2, 5]");
  const Finished finished = arrays.softmax("--allow-nan");
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  const Json document = Json::parse(read_file(arrays.out() / "apply.json"));
  // The other head's rows at least are as ever; the last of this one cannot be.
  const int checked = document.at("check").at("rows");
  CHECK(checked >= 3);
  CHECK(checked <= 5);
  CHECK(document.at("check").at("rows_not_finite") == 6 - checked);
}

TEST_CASE("a wrong output is written and said, with exit code 1", "[program][apply]") {
  const Arrays arrays;
  const Finished finished = arrays.misbehave("wrong");
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 1);
  CHECK_THAT(finished.err, Contains("wrong") && Contains("differ from the reference"));
  CHECK(arrays.read("out/output")[0] == Approx(1.5 * arrays.read("value")[0]));
  CHECK(Json::parse(read_file(arrays.out() / "apply.json")).at("status") == "wrong");
  CHECK(arrays.misbehave("wrong", "--force --check-rows 0").exit_code == 0);
  const Finished changed = arrays.misbehave("in_place", "--force");
  CHECK(changed.exit_code == 1);
  CHECK_THAT(changed.err, Contains("it changed its input \"value\" in place"));
}

TEST_CASE("whatever happens in the worker leaves a reason and no folder", "[program][apply]") {
  const Arrays arrays;
  const std::vector<std::tuple<std::string, int, std::string>> ways{
      {"segfault", 5, "SIGSEGV"},
      {"exit", 5, "exit code 7"},
      {"throw", 1, "I was told to throw"},
      {"allocate", 3, "out_of_memory"},
      {"unsupported", 2, "told to refuse"}};
  for (const auto& [how, code, message] : ways) {
    const Finished finished = arrays.misbehave(how, "--memory-limit 256M");
    INFO(how << ": " << finished.out << finished.err);
    CHECK(finished.exit_code == code);
    CHECK_THAT(finished.err, Contains(message));
    CHECK(arrays.untouched());
  }
  // The machine's fault.
  const Finished nowhere = call("apply " + Arrays::softmax_line + "--out /proc/attnbench", {},
                                arrays.out().parent_path());
  CHECK(nowhere.exit_code == 3);
  CHECK_THAT(nowhere.err, Contains("cannot write to /proc/attnbench"));
}

TEST_CASE("Ctrl-C ends apply and leaves nothing", "[program][apply][processes]") {
  const Arrays arrays;
  const TemporaryFolder elsewhere;
  Running running(
      words(program() + " apply misbehave --set how=hang --value " + arrays.file("value") +
            " --plugin " + misbehave_plugin() + " --out " + (elsewhere / "out").string()),
      elsewhere / "log");
  REQUIRE(wait_until([&] { return child_of(running) > 0; }));
  running.signal(SIGINT);
  CHECK(running.wait() == 130);
  CHECK_THAT(read_file(elsewhere / "log"), Contains("nothing was written"));
  CHECK_FALSE(fs::exists(elsewhere / "out"));
}
