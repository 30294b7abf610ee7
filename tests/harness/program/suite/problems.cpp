#include "harness/program/suite/document.hpp"

#include "tests/harness/program/suite/malformed.hpp"

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

/// A text with a fault, and what must be said of it: "LINE POINTER: WORDS|MORE WORDS", of line 2
/// where none is named.
using Faults = std::vector<std::pair<std::string, std::string>>;

// clang-format off: a line each
const Faults whole_faults = {
    {"[]", "1 /: []|expected a suite"},
    {R"("kernel")", "1 /: expected a suite"},
    {R"({"task": "kernel", "mechanisms": ["latte"]})", R"(1 /: "name" is missing)"},
    {R"({"name": "s", "task": "kernel"})", R"(1 /: "mechanisms" is missing)"},
    {"{\"name\": \"s\",\n\"mechanisms\": [\"latte\"]}", R"(1 /: "task" is missing|kernel)"},
    {R"({"name": "a b", "task": "kernel", "mechanisms": ["latte"]})", "1 /name: letters"},
    {R"({"name": "../x", "task": "kernel", "mechanisms": ["latte"]})", "1 /name: letters"},
    {"{\"name\": \"s\",\n\"task\": \"kernal\", \"mechanisms\": [\"latte\"]}",
     R"(2 /task: "kernel")"},
};

const Faults member_faults = {
    {R"("name2": 1)", R"(/name2: unknown key|did you mean "name")"},
    {R"("sets": {})", R"(/sets: unknown key|"set")"},
    {R"("set": [])", "/set: []|expected an object"},
    {R"("title": 3)", "/title: 3|expected a text"},
    {R"("tasks": {})", "/tasks: at least one task"},
    {R"("tasks": {"a": {"task": "kernel"}})", "/tasks: one of the two"},
    {R"("tasks": {"a": {"sett": {}}})", R"(/tasks/a/sett: unknown|"set")"},
    {R"("profiles": {"quick": 1})", "/profiles/quick: merge patch"},
    {R"("measure": {"round": 1})", R"(/measure/round: "rounds")"},
    {R"("measure": {"rounds": 0})", "/measure/rounds: is 0|1 to 1000"},
    {R"("measure": {"rounds": 2.5})", "/measure/rounds: 2.5"},
    {R"("measure": {"max_seconds": "1"})", "/measure/max_seconds: seconds"},
    {R"("measure": {"min_samples": 9999})", "/measure: no greater"},
    {R"("gate": {"relative_change": -1})", "/gate/relative_change: 0.03"},
    {R"("figures": "time")", "/figures: expected a list"},
    {R"("figures": ["tine"])", R"(/figures/0: figure|"time")"},
    {R"("preset": "latte_v1.figure2")", "/preset: latte_v1.figure_2"},
    {R"("device": "gpu")", "/device: gpu|cuda"},
    {"\"zip\": {\"length\": [1, 2],\n\"batch\": [1]}", "3 /zip/batch: 1 values|2|equal length"},
    {R"("zip": {"length": 3})", "/zip/length: list of at least one value"},
    {R"("zip": {"length": []})", "/zip/length: list of at least one value"},
    {R"("zip": [{"length": [1], "bach": [2]}])", R"(/zip/0/bach: "batch")"},
    {R"("set": {"batch": 1}, "zip": {"batch": [1]})", "/zip/batch: twice"},
    {R"("set": {"length": [1,2,3,4,5,6,7,8,9,10], "batch": [1,2,3,4,5,6,7,8,9,10],)"
     R"("heads": [1,2,3,4,5,6,7,8,9,10], "head_dim": [1,2,3,4,5,6,7,8,9,10],)"
     R"("value_dim": [1,2,3,4,5,6,7,8,9,10]})",
     "/set: more than 20000 cells"},
};

const Faults mechanism_faults = {
    {"[]", "/mechanisms: at least one"},
    {"{}", "/mechanisms: at least one"},
    {R"("latte")", R"(/mechanisms: "latte"|list of different names)"},
    {R"(["latte", "latte"])", "/mechanisms/1: \"latte\" stands in the list already"},
    {R"(["late"])", R"(/mechanisms/0: "late"|mean "latte")"},
    {R"(["flsh"])", R"(/mechanisms/0: mean "flash")"},
    {"[3]", "/mechanisms/0: is 3|name of a mechanism"},
    {R"(["latte/scann"])", R"(/mechanisms/0: implementation|"scan")"},
    {R"(["flash/composite"])", "/mechanisms/0: softmax/tiled"},
    {R"({"a": {"use": "lattte"}})", R"(/mechanisms/a/use: "latte")"},
    {R"({"a": []})", "/mechanisms/a: what the mechanism uses"},
    {R"({"latte": {"implementation": "chunk"}})",
     "/mechanisms/latte/implementation: chunk|composite, scan, chunked, fused, auto"},
    {R"({"flash": {"implementation": "chunked"}})",
     "/mechanisms/flash/implementation: one of tiled"},
    {R"({"latte": {"query_chunk": 3}})", "/mechanisms/latte/query_chunk: unknown key|latte"},
    {R"({"latte": {"latents": 3}})", "/mechanisms/latte/latents: latents_total|latents_per_head"},
    {R"({"latte": {"device": "tpu"}})", "/mechanisms/latte/device: tpu"},
};

const Faults set_faults = {
    {R"("lenght": 5)", R"(/set/lenght: unknown key|mean "length")"},
    {R"("latents": 64)", "/set/latents: two ways|latents_total"},
    {R"("normalise": true)", "/set/normalise: unknown key"},
    {R"("steps": 3)", "/set/steps: unknown key"},
    {R"("length": [])", "/set/length: []|at least one value"},
    {R"("length": null)", "/set/length: null|a value"},
    {R"("length": [1, [2]])", "/set/length/1: [2]"},
    {"\"length\": [1,\n\n2.5]", "4 /set/length/1: 2.5|an integer"},
    {R"("length": -5)", "/set/length: -5|from 1"},
    {R"("length": 0)", "/set/length: is 0|from 1"},
    {R"("length": 2000000000)", "/set/length: to 1073741824"},
    {R"("length": true)", "/set/length: true|an integer"},
    {R"("batch": [2, -1])", "/set/batch/1: -1|from 1 to"},
    {R"("pattern": "casual")", R"(/set/pattern: casual|mean "causal")"},
    {R"("pattern": 1)", "/set/pattern: one of bidirectional"},
    {R"("dtype": "float8")", "/set/dtype: float8|float64"},
    {R"("input_scale": "big")", "/set/input_scale: a number of at least 0"},
    {R"("input_scale": -0.5)", "/set/input_scale: -0.5"},
    {R"("width": 130)", "/set/width: 130|heads 4|multiple"},
    {"\"width\": 128, \"heads\": [4,\n3]", "/set/width: heads 3"},
    {R"("width": 128, "head_dim": 64)", "/set/head_dim: disagree"},
    {R"("kv_heads": 3)", "/set/kv_heads: does not divide"},
    {R"("latents_total": 130)", "/set/latents_total: 130|heads 4"},
    {R"("latents_total": 128, "latents_per_head": 64)", "/set/latents_per_head: disagree"},
    {R"("length": "lenth/2")", R"(/set/length: no size "lenth"|length)"},
    {R"("length": "length/2")", "/set/length: depends on itself"},
    {R"("width": "length", "length": "width")", "/set/length: itself"},
    {R"("length": 1001, "query_chunk": "length/2")", "/set/query_chunk: not an integer|1001"},
    {R"-("length": "width/(2)")-", "/set/length: does not expect '('"},
    {R"("length": "2*")", "/set/length: ends too early"},
    {R"("length": "heads/0")", "/set/length: divides by zero"},
    {R"("length": "1 - width")", "/set/length: -255|from 1"},
    {R"("length": "4611686018427387904*width")", "/set/length: overflow"},
    {R"("length": "99999999999999999999")", "/set/length: overflow"},
    {R"("window": 0)", "/set/window: is 0|keys"},
    {R"("window": {"left": 3})", R"(/set/window: "right" is missing)"},
    {R"("window": {"left": 3, "rigth": 3})", R"(/set/window/rigth: "right")"},
    {R"("window": {"left": 3, "right": "performer"})", "/set/window: performer"},
    {R"("window": {"left": -3, "right": 0})", "/set/window/left: 0 or more"},
    {R"("past": -1)", "/set/past: -1|from 0 to"},
    {R"("lengths": "100+0")", "/set/lengths: 0 is no length|joined by +"},
    {R"("lengths": "100+-5")", "/set/lengths: -5 is no length|joined by +"},
    {R"("lengths": "100+67108865")", "/set/lengths: 67108865 is no length|1 to 67108864"},
    {R"("lengths": [100, 2000])", "/set/lengths/0: is 100|a word|joined by +"},
    {R"("lengths": "100+2000", "batch": 3)", "/set/batch: is 3|100+2000|make it 2"},
    {R"("lengths": "100+2000", "length": [2000, 64])", "/set/length/1: is 64|make it 2000"},
};
// clang-format on

void check_faults(const Faults& faults, std::string (*around)(const std::string&)) {
  for (const auto& [text, expected] : faults) {
    const bool placed = expected[0] != '/';
    const std::string said = placed ? expected.substr(2) : expected;
    Malformed wrong{
        around(text), placed ? expected[0] - '0' : 2, said.substr(0, said.find(": ")), {}};
    std::istringstream words(said.substr(said.find(": ") + 2));
    for (std::string word; std::getline(words, word, '|');) wrong.words.push_back(word);
    check_malformed(wrong);
  }
}

}  // namespace

TEST_CASE("Malformed suites: form, names, values and sizes", "[suite]") {
  check_faults(whole_faults, [](const std::string& text) { return text; });
  check_faults(member_faults, with_member);
  check_faults(mechanism_faults, with_mechanisms);
  check_faults(set_faults, problem_with_set);
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

TEST_CASE("Of tens of thousands of wrong values the first are named, the others counted",
          "[suite]") {
  // In quadratic time each of these would take minutes.
  constexpr int many = 40000;
  std::string lists, names, entries;
  for (int i = 0; i < many; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    lists += comma + "[1]";
    names += comma + "\"lattx" + std::to_string(i) + "\"";
    entries += comma + "\"m" + std::to_string(i) + "\":{\"use\":5}";
  }
  for (const std::string& suite :
       {problem_with_set("\"length\": [" + lists + "]"), with_mechanisms("[" + names + "]"),
        with_mechanisms("{" + entries + "}")}) {
    const std::string message = complaint(suite);
    CHECK_THAT(message, Catch::StartsWith("s.json:") && Catch::Contains("more problems"));
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

TEST_CASE("a setting that is given twice is refused, where the last alone would count", "[suite]") {
  attnbench::suite::Choices choices;
  choices.set = {"length=16", "heads=2", "length=32"};
  const std::string message = complaint(with_mechanisms("[\"latte\"]"), choices);
  CHECK_THAT(message, Catch::StartsWith("--set length=32: ") && Catch::Contains("length=A,B"));
}
