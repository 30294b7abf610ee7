#include "harness/suite/document.hpp"

#include "tests/harness/suite/malformed.hpp"

using attnbench::test::check_malformed;
using attnbench::test::complaint;
using attnbench::test::Malformed;

namespace {

/// A suite whose second line is `set`, the rest in order.
std::string problem_with_set(const std::string& set) {
  return "{\"name\": \"s\", \"task\": \"kernel\",\n\"set\": {" + set +
         "},\n\"mechanisms\": [\"softmax\", \"window\", \"latte\"]}";
}

std::string with_mechanisms(const std::string& mechanisms) {
  return "{\"name\": \"s\", \"task\": \"kernel\",\n\"mechanisms\": " + mechanisms + "}";
}

std::string with_member(const std::string& member) {
  return "{\"name\": \"s\", \"task\": \"kernel\", \"mechanisms\": [\"latte\"],\n" + member + "}";
}

const std::vector<Malformed> ill_formed = {
    {"[]", 1, "/", {"[]", "expected a suite"}},
    {"\"kernel\"", 1, "/", {"expected a suite"}},
    {"{\"task\": \"kernel\", \"mechanisms\": [\"latte\"]}", 1, "/", {"\"name\" is missing"}},
    {"{\"name\": \"s\", \"task\": \"kernel\"}", 1, "/", {"\"mechanisms\" is missing"}},
    {"{\"name\": \"s\",\n\"mechanisms\": [\"latte\"]}", 1, "/", {"\"task\" is missing", "kernel"}},
    {with_member("\"name2\": 1"), 2, "/name2", {"unknown key", "did you mean \"name\""}},
    {with_member("\"sets\": {}"), 2, "/sets", {"unknown key", "\"set\""}},
    {with_member("\"set\": []"), 2, "/set", {"[]", "expected an object"}},
    {with_member("\"title\": 3"), 2, "/title", {"3", "expected a text"}},
    {with_member("\"tasks\": {}"), 2, "/tasks", {"at least one task"}},
    {with_member("\"tasks\": {\"a\": {\"task\": \"kernel\"}}"), 2, "/tasks", {"one of the two"}},
    {with_member("\"tasks\": {\"a\": {\"sett\": {}}}"), 2, "/tasks/a/sett", {"unknown", "\"set\""}},
    {with_member("\"profiles\": {\"quick\": 1}"), 2, "/profiles/quick", {"merge patch"}},
    {with_member("\"measure\": {\"round\": 1}"), 2, "/measure/round", {"\"rounds\""}},
    {with_member("\"measure\": {\"rounds\": 0}"), 2, "/measure/rounds", {"is 0", "1 to 1000"}},
    {with_member("\"measure\": {\"rounds\": 2.5}"), 2, "/measure/rounds", {"2.5"}},
    {with_member("\"measure\": {\"max_seconds\": \"1\"}"), 2, "/measure/max_seconds", {"seconds"}},
    {with_member("\"measure\": {\"min_samples\": 9999}"), 2, "/measure", {"no greater"}},
    {with_member("\"gate\": {\"relative_change\": -1}"), 2, "/gate/relative_change", {"0.03"}},
    {with_member("\"figures\": \"time\""), 2, "/figures", {"expected a list"}},
    {with_member("\"figures\": [\"tine\"]"), 2, "/figures/0", {"figure", "\"time\""}},
    {with_member("\"preset\": \"latte_v1.figure2\""), 2, "/preset", {"latte_v1.figure_2"}},
    {with_member("\"device\": \"gpu\""), 2, "/device", {"gpu", "cuda"}},
    {"{\"name\": \"a b\", \"task\": \"kernel\", \"mechanisms\": [\"latte\"]}",
     1,
     "/name",
     {"letters"}},
    {"{\"name\": \"../x\", \"task\": \"kernel\", \"mechanisms\": [\"latte\"]}",
     1,
     "/name",
     {"letters"}},
    {"{\"name\": \"s\",\n\"task\": \"kernal\", \"mechanisms\": [\"latte\"]}",
     2,
     "/task",
     {"\"kernel\""}},
    {with_mechanisms("[]"), 2, "/mechanisms", {"at least one"}},
    {with_mechanisms("{}"), 2, "/mechanisms", {"at least one"}},
    {with_mechanisms("\"latte\""), 2, "/mechanisms", {"\"latte\"", "list of different names"}},
    {with_mechanisms("[\"latte\", \"latte\"]"), 2, "/mechanisms", {"different names"}},
    {with_mechanisms("[\"late\"]"), 2, "/mechanisms/0", {"\"late\"", "mean \"latte\""}},
    {with_mechanisms("[\"flsh\"]"), 2, "/mechanisms/0", {"mean \"flash\""}},
    {with_mechanisms("[3]"), 2, "/mechanisms/0", {"is 3", "name of a mechanism"}},
    {with_mechanisms("[\"latte/scann\"]"), 2, "/mechanisms/0", {"implementation", "\"scan\""}},
    {with_mechanisms("[\"flash/composite\"]"), 2, "/mechanisms/0", {"softmax/tiled"}},
    {with_mechanisms("{\"a\": {\"use\": \"lattte\"}}"), 2, "/mechanisms/a/use", {"\"latte\""}},
    {with_mechanisms("{\"a\": []}"), 2, "/mechanisms/a", {"what the mechanism uses"}},
    {with_mechanisms("{\"latte\": {\"implementation\": \"chunk\"}}"),
     2,
     "/mechanisms/latte/implementation",
     {"chunk", "composite, scan, chunked, fused, auto"}},
    {with_mechanisms("{\"flash\": {\"implementation\": \"chunked\"}}"),
     2,
     "/mechanisms/flash/implementation",
     {"one of tiled"}},
    {with_mechanisms("{\"latte\": {\"query_chunk\": 3}}"),
     2,
     "/mechanisms/latte/query_chunk",
     {"unknown key", "latte"}},
    {with_mechanisms("{\"latte\": {\"latents\": 3}}"),
     2,
     "/mechanisms/latte/latents",
     {"latents_total", "latents_per_head"}},
    {with_mechanisms("{\"latte\": {\"device\": \"tpu\"}}"), 2, "/mechanisms/latte/device", {"tpu"}},
};

const std::vector<Malformed> ill_valued = {
    {problem_with_set("\"lenght\": 5"), 2, "/set/lenght", {"unknown key", "mean \"length\""}},
    {problem_with_set("\"latents\": 64"), 2, "/set/latents", {"two ways", "latents_total"}},
    {problem_with_set("\"normalise\": true"), 2, "/set/normalise", {"unknown key"}},
    {problem_with_set("\"steps\": 3"), 2, "/set/steps", {"unknown key"}},
    {problem_with_set("\"length\": []"), 2, "/set/length", {"[]", "at least one value"}},
    {problem_with_set("\"length\": null"), 2, "/set/length", {"null", "a value"}},
    {problem_with_set("\"length\": [1, [2]]"), 2, "/set/length/1", {"[2]"}},
    {problem_with_set("\"length\": [1,\n\n2.5]"), 4, "/set/length/1", {"2.5", "an integer"}},
    {problem_with_set("\"length\": -5"), 2, "/set/length", {"-5", "from 1"}},
    {problem_with_set("\"length\": 0"), 2, "/set/length", {"is 0", "from 1"}},
    {problem_with_set("\"length\": 2000000000"), 2, "/set/length", {"to 1073741824"}},
    {problem_with_set("\"length\": true"), 2, "/set/length", {"true", "an integer"}},
    {problem_with_set("\"batch\": [2, -1]"), 2, "/set/batch/1", {"-1", "from 1 to"}},
    {problem_with_set("\"pattern\": \"casual\""), 2, "/set/pattern", {"casual", "mean \"causal\""}},
    {problem_with_set("\"pattern\": 1"), 2, "/set/pattern", {"one of bidirectional"}},
    {problem_with_set("\"dtype\": \"float8\""), 2, "/set/dtype", {"float8", "float64"}},
    {problem_with_set("\"input_scale\": \"big\""),
     2,
     "/set/input_scale",
     {"a number of at least 0"}},
    {problem_with_set("\"input_scale\": -0.5"), 2, "/set/input_scale", {"-0.5"}},
    {problem_with_set("\"width\": 130"), 2, "/set/width", {"130", "heads 4", "multiple"}},
    {problem_with_set("\"width\": 128, \"heads\": [4,\n3]"), 2, "/set/width", {"heads 3"}},
    {problem_with_set("\"width\": 128, \"head_dim\": 64"), 2, "/set/head_dim", {"disagree"}},
    {problem_with_set("\"kv_heads\": 3"), 2, "/set/kv_heads", {"does not divide"}},
    {problem_with_set("\"latents_total\": 130"), 2, "/set/latents_total", {"130", "heads 4"}},
    {problem_with_set("\"latents_total\": 128, \"latents_per_head\": 64"),
     2,
     "/set/latents_per_head",
     {"disagree"}},
    {problem_with_set("\"length\": \"lenth/2\""),
     2,
     "/set/length",
     {"no size \"lenth\"", "length"}},
    {problem_with_set("\"length\": \"length/2\""), 2, "/set/length", {"depends on itself"}},
    {problem_with_set("\"width\": \"length\", \"length\": \"width\""),
     2,
     "/set/length",
     {"itself"}},
    {problem_with_set("\"length\": 1001, \"query_chunk\": \"length/2\""),
     2,
     "/set/query_chunk",
     {"not an integer", "1001"}},
    {problem_with_set("\"length\": \"width/(2)\""), 2, "/set/length", {"does not expect '('"}},
    {problem_with_set("\"length\": \"2*\""), 2, "/set/length", {"ends too early"}},
    {problem_with_set("\"length\": \"heads/0\""), 2, "/set/length", {"divides by zero"}},
    {problem_with_set("\"length\": \"1 - width\""), 2, "/set/length", {"-255", "from 1"}},
    {problem_with_set("\"length\": \"4611686018427387904*width\""), 2, "/set/length", {"overflow"}},
    {problem_with_set("\"length\": \"99999999999999999999\""), 2, "/set/length", {"overflow"}},
    {problem_with_set("\"window\": 0"), 2, "/set/window", {"is 0", "keys"}},
    {problem_with_set("\"window\": {\"left\": 3}"), 2, "/set/window", {"\"right\" is missing"}},
    {problem_with_set("\"window\": {\"left\": 3, \"rigth\": 3}"),
     2,
     "/set/window/rigth",
     {"\"right\""}},
    {problem_with_set("\"window\": {\"left\": 3, \"right\": \"performer\"}"),
     2,
     "/set/window",
     {"performer"}},
    {problem_with_set("\"window\": {\"left\": -3, \"right\": 0}"),
     2,
     "/set/window/left",
     {"0 or more"}},
    {with_member("\"zip\": {\"length\": [1, 2],\n\"batch\": [1]}"),
     3,
     "/zip/batch",
     {"1 values", "2", "equal length"}},
    {with_member("\"zip\": {\"length\": 3}"), 2, "/zip/length", {"list of at least one value"}},
    {with_member("\"zip\": {\"length\": []}"), 2, "/zip/length", {"list of at least one value"}},
    {with_member("\"zip\": [{\"length\": [1], \"bach\": [2]}]"), 2, "/zip/0/bach", {"\"batch\""}},
    {with_member("\"set\": {\"batch\": 1}, \"zip\": {\"batch\": [1]}"), 2, "/zip/batch", {"twice"}},
    {with_member("\"set\": {\"length\": [1,2,3,4,5,6,7,8,9,10], \"batch\": [1,2,3,4,5,6,7,8,9,10],"
                 "\"heads\": [1,2,3,4,5,6,7,8,9,10], \"head_dim\": [1,2,3,4,5,6,7,8,9,10],"
                 "\"value_dim\": [1,2,3,4,5,6,7,8,9,10]}"),
     2,
     "/set",
     {"more than 20000 cells"}},
};

}  // namespace

TEST_CASE("Malformed suites: form and names", "[suite]") {
  for (const Malformed& wrong : ill_formed) check_malformed(wrong);
}

TEST_CASE("Malformed suites: values and sizes", "[suite]") {
  for (const Malformed& wrong : ill_valued) check_malformed(wrong);
}

TEST_CASE("A mistake in a profile is placed in the profile", "[suite]") {
  attnbench::suite::Choices quick;
  quick.profile = "quick";
  check_malformed({with_member("\"set\": {\"length\": 5},\n\"profiles\": {\"quick\": {\n"
                               "\"set\": {\"length\": -1, \"batch\": \"x\"}}}"),
                   4,
                   "/profiles/quick/set/length",
                   {"-1"}},
                  quick);
  check_malformed({with_member("\"profiles\": {\"quick\": {\"sett\": {}}}"),
                   2,
                   "/profiles/quick/sett",
                   {"\"set\""}},
                  quick);
  quick.profile = "quik";
  CHECK_THAT(complaint(with_member("\"profiles\": {\"quick\": {}}"), quick),
             Catch::Contains("did you mean \"quick\""));
}

TEST_CASE("All problems are told at once, at most twenty and two kilobytes", "[suite]") {
  const std::string message =
      complaint(problem_with_set("\"lenght\": 5, \"pattern\": \"casual\", \"batch\": 0"));
  CHECK_THAT(message, Catch::Contains("/set/lenght") && Catch::Contains("/set/pattern") &&
                          Catch::Contains("/set/batch"));
  std::string many;
  for (int i = 0; i < 25; ++i) many += (i ? ",\"q" : "\"q") + std::to_string(i) + "\": 1";
  const std::string told = complaint(problem_with_set(many));
  CHECK_THAT(told, Catch::Contains("\"q0\"") && Catch::Contains(" more problems"));
  CHECK(told.size() <= 2000);
}

TEST_CASE("Sizes that no machine can have are refused before anything is expanded", "[suite]") {
  for (const std::string& member :
       {std::string("\"value_dim\": 68719476736"),
        std::string("\"batch\": [1, 4611686018427387904]"),
        std::string("\"length\": 9223372036854775807"),
        std::string("\"head_dim\": \"length*length\""), std::string("\"width\": 2e9"),
        std::string("\"window\": 9000000000000000000")}) {
    const bool says_length = member.find("\"length\"") == 0;
    const std::string message =
        complaint(problem_with_set(says_length ? member : "\"length\": 1048576, " + member));
    INFO(member << " said: " << message);
    CHECK_THAT(message, Catch::StartsWith("s.json:2: ") && Catch::Contains("expected"));
  }
  attnbench::suite::Choices choices;
  choices.set = {"value_dim=1..9223372036854775807"};
  CHECK_THAT(complaint(with_mechanisms("[\"latte\"]"), choices),
             Catch::StartsWith("--set value_dim=1..9223372036854775807: ") &&
                 Catch::Contains("from 0 to 1048576"));
  // Each is within its bounds, all together are not.
  CHECK_THAT(
      complaint(problem_with_set("\"batch\": 65536, \"length\": 16777216, \"head_dim\": 4096")),
      Catch::Contains("numbers of one input"));
  CHECK(complaint(problem_with_set("\"length\": 4194304, \"head_dim\": 128")).empty());
}

TEST_CASE("A text of forty kilobytes is refused, wherever it stands", "[suite]") {
  const std::string text(40000, 'a');
  for (const std::string& suite :
       {"{\"name\": \"" + text + "\", \"task\": \"kernel\", \"mechanisms\": [\"latte\"]}",
        with_mechanisms("[\"" + text + "\"]"), with_mechanisms("{\"" + text + "\": {}}"),
        problem_with_set("\"" + text + "\": 1"), problem_with_set("\"pattern\": \"" + text + "\""),
        with_member("\"" + text + "\": 1")}) {
    const std::string message = complaint(suite);
    CHECK_THAT(message, Catch::StartsWith("s.json:") && Catch::Contains("40000 bytes"));
    CHECK(message.size() < 2000);
  }
}

TEST_CASE("No message of a suite is long or has control characters", "[suite]") {
  const std::string word = "\\u001b[31m" + std::string(3000, 'a');
  for (const std::string& suite :
       {with_mechanisms("[\"" + word + "\"]"), problem_with_set("\"" + word + "\": 1"),
        problem_with_set("\"pattern\": \"" + word + "\""),
        problem_with_set("\"length\": \"" + word + "\""),
        with_member("\"figures\": [\"" + word + "\"]"), with_member("\"" + word + "\": 1"),
        with_member("\"preset\": \"" + word + "\""), with_member("\"device\": \"" + word + "\"")}) {
    const std::string message = complaint(suite);
    CHECK_THAT(message, Catch::StartsWith("s.json:") && !Catch::Contains("\x1b"));
    CHECK(message.size() < 2000);
  }
}

TEST_CASE("A value of --set may be nested only as deep as one can be", "[suite]") {
  attnbench::suite::Choices choices;
  for (const std::string& begin : {std::string("window="), std::string("window= ")}) {
    choices.set = {begin + std::string(50000, '[')};
    const std::string message = complaint(with_mechanisms("[\"window\"]"), choices);
    CHECK_FALSE(message.empty());
    CHECK(message.size() < 2000);
  }
}

TEST_CASE("A wrong --set is placed at the flag", "[suite]") {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"length", "expected NAME=VALUE"},
      {"=3", "expected NAME=VALUE"},
      {"length=", "value is missing"},
      {"length=1,,2", "value is missing"},
      {"lenght=3", "mean \"length\""},
      {"latents=3", "latents_total"},
      {"length=-3", "from 1"},
      {"length=8..4", "not a range"},
      {"length=0..4", "not a range"},
      {"length=1..9:0", "not a range"},
      {"length=a..b", "not a range"},
      {"length=1..99999999:1", "greater step"},
      {"pattern=casual", "causal"},
      {"implementation=fast", "composite"},
      {"rounds=0", "1 to 1000"},
      {"rounds=1,2", "expected one value"},
      {"task=kernal", "mean \"kernel\""},
      {"window={\"left\":1", "not JSON"},
      {"device=gpu", "no device"}};
  for (const auto& [flag, words] : wrong) {
    attnbench::suite::Choices choices;
    choices.set = {flag};
    const std::string message = complaint(with_mechanisms("[\"latte\", \"window\"]"), choices);
    INFO(flag << " said: " << message);
    CHECK_THAT(message, Catch::StartsWith("--set " + flag + ": ") && Catch::Contains(words));
  }
}
