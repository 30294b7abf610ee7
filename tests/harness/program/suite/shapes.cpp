#include "harness/program/suite/shapes.hpp"

#include <algorithm>

#include "tests/harness/program/suite/malformed.hpp"
#include "tests/support/files.hpp"

namespace {

using namespace attnbench;
using Catch::Contains;
using suite::Choices;
using suite::Json;
using suite::ModelShape;
using suite::Shapes;

/// The tests' catalogue, with layers for those who ask for a whole model.
Catalogue catalogue_with_layers() {
  Catalogue catalogue = test::catalogue();
  std::vector<Option>& settings = catalogue.tasks.front().settings;
  for (Option& one : settings) {
    if (one.name == "scope") one.choices.emplace_back("model");
  }
  settings.push_back(Option::integer("layers", 2, "", 1));
  return catalogue;
}

suite::Expanded shaped(const std::string& members, const Choices& choices = {}) {
  const std::string text = R"({"name": "s", )" + members + "}";
  return suite::expand(suite::parse_document("s.json", text), catalogue_with_layers(), choices);
}

Choices with_shape(const std::string& name, std::vector<std::string> sets = {}) {
  Choices choices;
  choices.shape = name;
  choices.set = std::move(sets);
  return choices;
}

/// "heads=32 kv_heads=8" of a suite's only cell.
std::string sizes_of(const suite::Expanded& suite, const std::vector<std::string>& names) {
  REQUIRE(suite.cells.size() == 1);
  std::string text;
  for (const std::string& name : names) {
    const Json settings = to_json(suite.cells.front().settings);
    text += (text.empty() ? "" : " ") + name + "=" + settings.at(name).dump();
  }
  return text;
}

std::vector<std::string> ids_of(const suite::Expanded& suite) {
  std::vector<std::string> ids;
  for (const Cell& cell : suite.cells) ids.push_back(cell.id);
  return ids;
}

const std::string of_kernel = R"("task": "kernel", "mechanisms": ["softmax"])";
const std::vector<std::string> head_sizes{"heads", "kv_heads", "head_dim"};

std::string complaint_of_file(const std::string& text) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "shapes.json", text);
  try {
    Shapes::read(folder / "shapes.json");
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return {};
}

/// A file of one shape, whose third line has these members.
std::string with_members(const std::string& members) {
  return "{\"m\": {\"title\": \"M\",\n\"source\": \"s\",\n" + members + "}}";
}

}  // namespace

TEST_CASE("Shapes: those that come with the program hold, and say their source", "[suite]") {
  const Shapes shapes = Shapes::known();
  CHECK(shapes.all().size() >= 20);
  for (const ModelShape& shape : shapes.all()) {
    INFO(shape.name);
    CHECK_THAT(shape.source, Contains("/") || Contains("arXiv"));
    const suite::Expanded suite = shaped(of_kernel, with_shape(shape.name));
    CHECK(suite.cells.size() ==
          std::max<std::size_t>(1, shape.sizes.value("length", Json()).size()));
  }
  CHECK(shapes.find("llama3-8b")->sizes_text() ==
        "heads=32 kv_heads=8 head_dim=128 layers=32 length=8192 pattern=causal");
}

TEST_CASE("Shapes: a cell by shape has the id of one with the same sizes said by hand", "[suite]") {
  const Shapes shapes = Shapes::known();
  for (const ModelShape& shape : shapes.all()) {
    INFO(shape.name);
    nlohmann::ordered_json sizes = shape.sizes;
    sizes.erase("layers");  // no part of one call
    const std::string mechanisms = R"("task": "kernel", "mechanisms": ["softmax"], )";
    sizes.erase("window");
    CHECK(ids_of(shaped(of_kernel, with_shape(shape.name))) ==
          ids_of(shaped(mechanisms + "\"set\": " + sizes.dump())));
  }
  const std::string window = R"("task": "kernel", "mechanisms": ["window"])";
  CHECK(ids_of(shaped(window, with_shape("mistral-7b"))) ==
        ids_of(shaped(window + R"(, "set": {"heads": 32, "kv_heads": 8, "head_dim": 128,
                                              "length": 8192, "window": 4096})")));
  const std::string model = R"(, "set": {"scope": "model"})";
  CHECK(ids_of(shaped(of_kernel + model, with_shape("gpt2"))) ==
        ids_of(shaped(of_kernel + R"(, "set": {"scope": "model", "heads": 12, "head_dim": 64,
                                              "length": 1024, "layers": 12})")));
}

TEST_CASE("Shapes: precedence is preset, shape, set, the task's set, entry, --set", "[suite]") {
  const auto length = [](const std::string& members, const Choices& choices = {}) {
    return sizes_of(shaped(members, choices), {"length"});
  };
  std::string members = R"("preset": "latte_v1.figure_4", )" + of_kernel;
  CHECK(length(members) == "length=5000");
  members = R"("shape": "gpt2", )" + members;
  CHECK(length(members) == "length=1024");
  // Not the width of the preset, which GPT-2's heads do not divide.
  CHECK(sizes_of(shaped(members), {"width", "heads", "head_dim"}) ==
        "width=0 heads=12 head_dim=64");
  members = R"("shape": "gpt2", "set": {"length": 10}, )";
  CHECK(length(members + of_kernel) == "length=10");
  const std::string tasks = R"("tasks": {"a": {"task": "kernel", "set": {"length": 20}}}, )";
  CHECK(length(members + tasks + R"("mechanisms": ["softmax"])") == "length=20");
  const std::string entry = tasks + R"("mechanisms": {"softmax": {"length": 30}})";
  CHECK(length(members + entry) == "length=30");
  Choices flag;
  flag.set = {"length=40"};
  CHECK(length(members + entry, flag) == "length=40");
}

TEST_CASE("Shapes: a task's is in place of the suite's, --shape in place of both", "[suite]") {
  const std::string of_suite = R"("shape": "llama3-8b", "mechanisms": ["softmax"], "tasks": )";
  CHECK(sizes_of(shaped(of_suite + R"({"a": {"task": "kernel"}})"), head_sizes) ==
        "heads=32 kv_heads=8 head_dim=128");
  // Nothing of Llama's is left: GPT-2 has as many key heads as heads.
  const std::string of_task = of_suite + R"({"a": {"task": "kernel", "shape": "gpt2"}})";
  CHECK(sizes_of(shaped(of_task), head_sizes) == "heads=12 kv_heads=0 head_dim=64");
  CHECK(sizes_of(shaped(of_task, with_shape("qwen3-next-80b")), head_sizes) ==
        "heads=16 kv_heads=2 head_dim=256");
}

TEST_CASE("Shapes: what is used of one, and what is not, is said", "[suite]") {
  const suite::Expanded two = shaped(R"("mechanisms": ["softmax", "window"], "tasks":
      {"kernel": {}, "decode": {}}, "shape": "gemma2-9b", "set": {"length": 64, "heads": 16})");
  REQUIRE(two.notes.size() == 1);
  CHECK(two.notes.front() ==
        "shape gemma2-9b (Gemma 2 9B: its local layers, every other one): heads=16 kv_heads=8 "
        "head_dim=256 window=4096 pattern=causal; said otherwise: length; not taken: layers; "
        "window by softmax");
  const Json of_header = two.header.at("shapes").at(0);
  CHECK(of_header["replaced"] == Json::array({"length"}));
  CHECK(of_header["sizes"]["window"] == 4096);
  CHECK_THAT(of_header["source"].get<std::string>(), Contains("gemma_pytorch"));
  const suite::Expanded vit = shaped(
      R"("mechanisms": ["softmax"], "tasks": {"kernel": {}, "decode": {}}, "shape": "vit-b-16")");
  CHECK_THAT(vit.notes.at(0), Contains("not taken: layers; pattern by decode"));
  const suite::Expanded whole =
      shaped(of_kernel + R"(, "set": {"scope": ["mix", "model"]})", with_shape("gpt2"));
  REQUIRE(whole.cells.size() == 2);
  CHECK(to_json(whole.cells[0].settings)["layers"] == 2);
  CHECK(to_json(whole.cells[1].settings)["layers"] == 12);
  CHECK_THAT(whole.notes.at(0), Contains(" layers=12 "));
  const suite::Expanded ragged =
      shaped(of_kernel + R"(, "set": {"lengths": "9+5"})", with_shape("gpt2"));
  CHECK(to_json(ragged.cells.at(0).settings)["length"] == 9);
  CHECK_THAT(ragged.notes.at(0), Contains("said otherwise: length"));
  CHECK(shaped(of_kernel).notes.empty());
  CHECK_FALSE(shaped(of_kernel).header.contains("shapes"));
}

TEST_CASE("Shapes: a profile may name one, or take it away", "[suite]") {
  const std::string members = of_kernel + R"(, "shape": "gpt2", "profiles": {
      "other": {"shape": "bert-base"}, "none": {"shape": null}})";
  Choices choices;
  CHECK(sizes_of(shaped(members, choices), {"heads", "length"}) == "heads=12 length=1024");
  choices.profile = "other";
  CHECK(sizes_of(shaped(members, choices), {"heads", "length"}) == "heads=12 length=512");
  choices.profile = "none";
  CHECK(sizes_of(shaped(members, choices), {"heads", "head_dim"}) == "heads=4 head_dim=0");
}

TEST_CASE("Shapes: each fault of a suite is told with its place", "[suite]") {
  const std::string head = R"({"name": "s", "task": "kernel", "mechanisms": ["softmax"],)";
  const auto with = [&](const std::string& members) { return head + "\n" + members + "}"; };
  const std::vector<test::Malformed> faults = {
      {with(R"("shape": "lama3-8b")"),
       2,
       "/shape",
       {"there is no shape \"lama3-8b\"", "did you mean \"llama3-8b\"?"}},
      {with(R"("shape": 3)"), 2, "/shape", {"is 3", "the name of one shape"}},
      {with(R"("shape": ["gpt2", "vit-b-16"])"), 2, "/shape", {"the name of one shape"}},
      {with("\"shape\": \"gpt2\",\n\"shape\": \"vit-b-16\""),
       3,
       "/shape",
       {"a second time", "line 2"}},
      {with(R"("set": {"shape": "gpt2"})"),
       2,
       "/set/shape",
       {"a shape is no setting", "beside \"set\"", "--shape NAME"}},
      {with(R"("shape": "llama3-8b", "set": {"heads": 12})"),
       2,
       "/shape",
       {"llama3-8b: kv_heads 8 does not divide heads 12", "the shape's"}},
      {with(R"("shape": "gpt2", "set": {"width": 512})"),
       2,
       "/set/width",
       {"width 512 is not a multiple of heads 12", "the shape's"}},
      {with(R"("shape": "gpt2", "set": {"width": 1536})"),
       2,
       "/shape",
       {"gpt2: width 1536 and head_dim 64 disagree with heads 12", "the shape's"}},
      {with(
           R"("shape": "sd1.5-self", "set": {"heads": 4, "head_dim": 32, "length": 8, "pattern": "causal"})"),
       2,
       "/shape",
       {"sd1.5-self: no cell takes any of its sizes", "leave the shape out"}},
  };
  for (const test::Malformed& fault : faults) test::check_malformed(fault);
  const std::string text = head + R"("set": {"length": 8}})";
  CHECK_THAT(test::complaint(text, with_shape("gpt3")),
             Contains("--shape gpt3: there is no shape \"gpt3\"; did you mean \"gpt2\"?"));
  CHECK_THAT(test::complaint(text, with_shape("llama3-8b", {"heads=12"})),
             Contains("--shape llama3-8b: kv_heads 8 does not divide heads 12"));
  CHECK_THAT(test::complaint(text, with_shape("", {"shape=gpt2"})),
             Contains("--set shape=gpt2: ") && Contains("--shape NAME"));
}

TEST_CASE("Shapes: each fault of their file is told with its place", "[suite]") {
  const std::string sizes = R"("heads": 4, "head_dim": 8, "pattern": "causal")";
  CHECK(complaint_of_file(with_members(sizes)).empty());
  const std::vector<std::pair<std::string, std::vector<std::string>>> faults = {
      {"", {"shapes.json:1: /: ", "empty"}},
      {"{\"m\": {\n\"title\"", {"shapes.json:2: ", "cut off"}},
      {"[]", {"shapes.json:1: /: ", "an object of shapes"}},
      {"{}", {"shapes.json:1: /: ", "an object of shapes"}},
      {"{\n\"m\": 3}", {"shapes.json:2: /m: ", "an object with title"}},
      {"{\n\"m\": {\"title\": \"M\", " + sizes + "}}",
       {"shapes.json:2: /m: ", "\"source\" is missing"}},
      {with_members(R"("head_dim": 8, "pattern": "causal")"),
       {"shapes.json:1: /m: ", "\"heads\" is missing"}},
      {with_members(sizes + R"(, "kv_head": 2)"),
       {"shapes.json:3: /m/kv_head: ", "did you mean \"kv_heads\"?"}},
      {with_members(sizes + R"(, "kv_heads": 3)"),
       {"shapes.json:3: /m/kv_heads: ", "does not divide heads 4"}},
      {with_members(sizes + R"(, "layers": 0)"), {"shapes.json:3: /m/layers: ", "1 or more"}},
      {with_members(sizes + R"(, "length": [])"),
       {"shapes.json:3: /m/length: ", "count of query tokens"}},
      {with_members(sizes + R"(, "length": "8")"),
       {"shapes.json:3: /m/length: ", "count of query tokens"}},
      {with_members(sizes + R"(, "key_length": 8)"),
       {"shapes.json:1: /m: ", "without the pattern cross"}},
      {with_members(R"("heads": 4, "head_dim": 8, "pattern": "cross")"),
       {"shapes.json:1: /m: ", "needs key_length"}},
      {with_members(R"("heads": 4, "head_dim": 8, "pattern": "casual")"),
       {"shapes.json:3: /m/pattern: ", "causal"}},
      {with_members(sizes).insert(1, R"("m": {},)"), {"shapes.json:1: /m: ", "a second time"}},
  };
  for (const auto& [text, words] : faults) {
    const std::string said = complaint_of_file(text);
    INFO(text << "\nsaid: " << said);
    for (const std::string& word : words) CHECK_THAT(said, Contains(word));
  }
  CHECK_THROWS_WITH(Shapes::read("/none/shapes.json"), Contains("/none/shapes.json"));
}
