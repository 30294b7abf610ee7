// The forms in which Python may give a mechanism, each held to a definition written otherwise, and
// what a mechanism of plain tensor operations allocates beside the same in C++.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/arrays/npy.hpp"
#include "tests/end_to_end/python_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const char* const forms = R"(
import torch

def mixed(query, key, value, hidden=None):
    logits = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    if hidden is not None:
        logits = logits.masked_fill(hidden, float("-inf"))
    return torch.matmul(torch.softmax(logits, -1), value)

def by_pattern(query, key, value, pattern):
    tokens, keys = query.size(2), key.size(2)
    later = torch.ones(tokens, keys, dtype=torch.bool).triu(keys - tokens + 1)
    return mixed(query, key, value, {"causal": later, "bidirectional": None}[pattern])

def cost(batch, heads, length, key_length, head_dim, value_dim):
    scores = batch * heads * length * key_length
    return {"model_flops": 2 * scores * (head_dim + value_dim), "workspace_bytes": 8 * scores}

by_pattern.reference = "softmax"
by_pattern.cost = cost

class Weighed:
    def __call__(self, query, key, value, gate):
        weights = torch.exp(torch.einsum("bhtd,bhsd->bhts", query, key) / query.size(-1) ** 0.5)
        weights = weights / weights.sum(-1, keepdim=True)
        return torch.einsum("bhts,bhsv->bhtv", weights, value) / (1 + torch.exp(-gate))

def gated(query, key, value, gate):
    return mixed(query, key, value) * torch.sigmoid(gate)

gated.patterns = ["bidirectional"]
gated.roles = {"gate": {"source": "query_tokens", "width": "value_dim"}}
gated.reference = Weighed

def three_times_as_sharp(query, key, value):
    return mixed(3 * query, key, value)

class Sharpened(torch.nn.Module):
    patterns = ["bidirectional"]
    reference = staticmethod(three_times_as_sharp)

    def __init__(self, factor):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor([factor]))

    def forward(self, query, key, value):
        return mixed(query * self.factor, key, value)

sharpened = Sharpened(3.0)
)";

const char* const parts = R"(
import torch

def average(query, key, value):
    return value.mean(2, keepdim=True).expand(-1, -1, query.size(2), -1).contiguous()

def by_sums(query, key, value):
    return torch.einsum("bhsv,t->bhtv", value, torch.ones_like(query[0, 0, :, 0])) / value.size(2)

average.patterns = ["bidirectional"]
average.reference = by_sums
)";

/// The one cell with that label and setting.
Json only_cell(const Json& result, const std::string& label, const std::string& setting,
               const std::string& value) {
  Json found;
  for (const Json& cell : result.at("cells")) {
    if (cell.at("label") != label || cell.at("settings").value(setting, "") != value) continue;
    REQUIRE(found.is_null());
    found = cell;
  }
  REQUIRE_FALSE(found.is_null());
  return found;
}

}  // namespace

TEST_CASE("an object, a package's function, roles, a pattern, a cost and a class as definition",
          "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("forms.py", forms);
  std::filesystem::create_directories(bench / "kit");
  bench.write("kit/__init__.py", "");
  bench.write("kit/parts.py", parts);
  bench.write("suite.json", R"({
    "name": "forms", "task": "kernel",
    "set": {"batch": 2, "heads": 2, "head_dim": 8, "length": 16, "pattern": "bidirectional"},
    "mechanisms": {
      "by pattern": {"use": "python:forms.py:by_pattern", "pattern": ["bidirectional", "causal"]},
      "gated": {"use": "python:forms.py:gated"},
      "sharpened": {"use": "python:forms.py:sharpened"},
      "average": {"use": "python:kit.parts:average"}},
    "measure": {"rounds": 1, "max_samples": 10, "max_seconds": 0.02}})");
  bench.cells_of_run("suite.json");
  const Json result = stored_result(bench / "run/result.json").at("attnbench");
  CHECK(result.at("cells").size() == 5);
  for (const Json& cell : result.at("cells")) {
    INFO(cell.dump(1));
    REQUIRE(was_measured(cell));
    CHECK(cell["check"]["verdict"] == "ok");
  }
  for (const char* pattern : {"bidirectional", "causal"}) {
    const Json cost = only_cell(result, "by pattern", "pattern", pattern).at("cost");
    CHECK(cost.at("model_flops") == 2 * (2 * 2 * 16 * 16) * (8 + 8));
    CHECK(cost.at("workspace_bytes") == 8 * (2 * 2 * 16 * 16));
  }
  // Four inputs, the gate among them, and the output, in float32.
  CHECK(only_cell(result, "gated", "pattern", "bidirectional").at("cost").at("minimal_bytes") ==
        4 * 5 * (2 * 2 * 16 * 8));
  const Json average = only_cell(result, "average", "pattern", "bidirectional");
  CHECK(average.at("mechanism") == "kit_average");
  CHECK(average.at("python").at("word") == "python:kit.parts:average");
}

TEST_CASE(
    "a word in Python is what it says beside namesakes, of its file, its helpers and built in",
    "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  for (const auto& [folder, factor] : {std::pair{"a", "1.0"}, {"b", "2.0"}}) {
    bench.write(std::string(folder) + "/helper.py", std::string("FACTOR = ") + factor + "\n");
    bench.write(std::string(folder) + "/softmax.py", R"(
import torch
from helper import FACTOR

FACTOR *= getattr(torch, "changed_by_another", 1)
torch.changed_by_another = 3

def softmax(query, key, value, factor: float = FACTOR):
    return factor * value.mean(2, keepdim=True).expand(-1, -1, query.size(2), -1).contiguous()

softmax.patterns = ["bidirectional"]
)");
  }
  bench.write("suite.json", R"({
    "name": "namesakes", "task": "kernel",
    "set": {"heads": 2, "head_dim": 8, "length": 16, "pattern": "bidirectional"},
    "mechanisms": {
      "mine": {"use": "python:a/softmax.py:softmax", "as": "mine"},
      "theirs": {"use": "python:b/softmax.py:softmax"},
      "softmax": {}},
    "measure": {"rounds": 1, "max_samples": 10, "max_seconds": 0.02}})");
  const auto cells = bench.cells_of_run("suite.json");
  CHECK(cells.at("mine").at("mechanism") == "mine");
  CHECK(cells.at("theirs").at("mechanism") == "softmax_py");
  CHECK(cells.at("mine").at("options").at("factor") == 1);
  CHECK(cells.at("theirs").at("options").at("factor") == 2);
  CHECK(cells.at("mine").at("id") != cells.at("theirs").at("id"));
  CHECK(cells.at("mine").at("python").at("file_hash") !=
        cells.at("theirs").at("python").at("file_hash"));
  CHECK_FALSE(cells.at("softmax").contains("python"));

  bench.write("performer.py",
              "class Performer:\n    patterns = ['causal']\n\n"
              "    def __call__(self, query, key, value):\n        raise ValueError('mine')\n");
  const Finished checked =
      bench.run("check python:performer.py:Performer --no-growth --dtype float32");
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 1);
  CHECK_THAT(checked.out, Contains("performer_py") && Contains("performer.py:5: ValueError: mine"));
  const Finished compared = bench.run(
      "ab python:a/softmax.py:softmax python:b/softmax.py:softmax --pattern bidirectional "
      "--length 16 --rounds 1 --no-ceilings --no-report --out ab");
  INFO(compared.out << compared.err);
  CHECK(compared.exit_code == 4);  // one round cannot tell
  CHECK_THAT(compared.out, Contains("b_softmax"));
}

TEST_CASE("a file of a package imports its neighbours, and annotations limit its options",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  std::filesystem::create_directories(bench / "kit/inner");
  bench.write("kit/__init__.py", "");
  bench.write("kit/parts.py", "def scaled(x, by):\n    return x * by\n");
  bench.write("kit/inner/__init__.py", "");
  bench.write("kit/inner/mean.py", R"(
from __future__ import annotations
from typing import Annotated, Literal
from ..parts import scaled

def mean(query, key, value, factor: Annotated[float, (0.5, None)] = 1, mode: Literal["plain", "twice"] = "plain"):
    count = 1 + query.new_ones(query.size(2)).cumsum(0).sub(1)
    return scaled(value.cumsum(2) / count.unsqueeze(-1), factor * (2 if mode == "twice" else 1))

mean.patterns = ["causal"]
)");
  const auto run = [&](const std::string& flags) {
    return bench.run(
        "run python:kit/inner/mean.py:mean --length 8 --rounds 1 --now --no-report "
        "--no-ceilings --out run " +
        flags);
  };
  CHECK(run("--factor 2 --mode twice").exit_code == 0);
  const auto small = run("--factor 0.1");
  CHECK(small.exit_code == 2);
  CHECK_THAT(small.err, Contains("factor") && Contains("0.5"));
  const auto word = run("--mode thrice");
  CHECK(word.exit_code == 2);
  CHECK_THAT(word.err, Contains("thrice") && Contains("twice"));
}

TEST_CASE("a check prints each property that is broken", "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("off.py", R"(
def off(query, key, value):
    return value.cumsum(2) + query.mean()

def definition(query, key, value):
    return value

off.patterns = ["causal"]
off.claims = ["rows_sum_to_one", "heads_independent"]
off.reference = definition
)");
  const Finished checked = bench.run("check python:off.py:off --no-growth --dtype float64");
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 1);
  for (const char* property : {"value_equals_reference: ", "causality: ", "rows_sum_to_one: ",
                               "batch_and_head_independence: "}) {
    CHECK_THAT(checked.out, Contains(property));
  }
}

TEST_CASE("a check says which side is not finite", "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("sides.py", R"(
def spoilt(value):
    value = value.clone()
    value[0, 0, 0, 0] = float("nan")
    return value

def plain(query, key, value):
    return value.clone()

def mine(query, key, value):
    return spoilt(value)

def theirs(query, key, value):
    return value.clone()

mine.patterns = theirs.patterns = ["causal"]
mine.reference = plain
theirs.reference = lambda query, key, value: spoilt(value)
)");
  for (const auto& [name, side] : std::map<std::string, std::string>{
           {"mine", "the mechanism holds NaN or infinity in 1 of "},
           {"theirs", "the definition holds NaN or infinity in 1 of "}}) {
    const Finished checked =
        bench.run("check python:sides.py:" + name + " --no-growth --dtype float64");
    INFO(checked.out << checked.err);
    CHECK(checked.exit_code == 1);
    CHECK_THAT(checked.out, Contains("value_equals_reference: ") && Contains(side));
  }
  bench.run(
      "run python:sides.py:theirs --length 16 --rounds 1 --out run --no-ceilings --no-report");
  CHECK_THAT(
      cells_of(bench / "run").at("sides_theirs")["reason"].get<std::string>(),
      Contains("its reference returned numbers that are not finite (") && Contains("it did not"));
}

TEST_CASE("a file that is long imported is named meanwhile, a slow reference afterwards",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("slow.py", R"(
import time

time.sleep(2.3)

def slow(query, key, value):
    return value.clone()

def definition(query, key, value):
    time.sleep(1.1)
    return value.clone()

slow.patterns = ["causal"]
slow.differentiable = False
slow.reference = definition
)");
  const Finished described = bench.run("describe python:slow.py:slow");
  CHECK(described.exit_code == 0);
  CHECK_THAT(described.err, Contains("  importing slow.py: 2 s\n"));
  const Finished ran = bench.run(
      "run python:slow.py:slow --length 4 --rounds 1 --out run --no-ceilings --no-report");
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Contains("its check took ") && Contains("without loops over tokens"));
}

TEST_CASE("apply gives arrays to a mechanism in Python", "[program][python][apply]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("forms.py", forms);
  const arrays::Shape shape{1, 2, 5, 4};
  const auto count = static_cast<std::size_t>(arrays::count_of(shape));
  std::string arrays = " --pattern causal";
  for (const std::string role : {"query", "key", "value"}) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::sin(static_cast<double>(3 * i) + role[0]);
    }
    arrays::write_array(bench / (role + ".npy"), arrays::Element::float64, shape, values.data());
    arrays += " --" + role + " " + role + ".npy";
  }
  const auto applied = [&](const std::string& mechanism, const std::string& out) {
    const Finished finished = bench.run("apply " + mechanism + " --out " + out + arrays);
    INFO(finished.out << finished.err);
    REQUIRE(finished.exit_code == 0);
    CHECK_THAT(finished.out, Contains("from the definition in double"));
    const Json told = Json::parse(read_file(bench / (out + "/apply.json")));
    CHECK_THAT(told.at("origin").get<std::string>(),
               Contains(out == "ours" ? "built in" : "/forms.py:by_pattern"));
    const arrays::ArrayFile array = arrays::open_array(bench / (out + "/output.npy"));
    REQUIRE(array.shape == shape);
    std::vector<double> values(count);
    arrays::read_array(array, values.data());
    return values;
  };
  const std::vector<double> python = applied("python:forms.py:by_pattern", "python");
  const std::vector<double> ours = applied("softmax", "ours");
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(python[i] == Approx(ours[i]).epsilon(1e-12).margin(1e-12));
  }
  // Noise is held to itself alone, and by no tolerance.
  bench.write("noise.py",
              "import torch\n\ndef noise(query, key, value, causal):\n    return "
              "torch.randn_like(query)\n");
  const Finished noise = bench.run("apply python:noise.py:noise --out noise" + arrays);
  INFO(noise.out << noise.err);
  CHECK(noise.exit_code == 4);
  CHECK_THAT(noise.err, Contains("cannot be checked: the definition itself moves by"));
}

TEST_CASE("the same tensor operations take the same bytes in Python and in C++",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("same.py", R"(
import torch

def same(query, key, value):
    # The overload that C++ takes: query * 0.25 keeps the number in a tensor for the backward pass.
    scaled = torch.ops.aten.mul.Scalar
    scores = torch.matmul(scaled(query, query.size(-1) ** -0.5), key.transpose(-2, -1))
    weights = torch.softmax(scores, -1)
    del scores
    return torch.matmul(weights, value)

same.patterns = ["bidirectional"]
same.reference = "softmax"
)");
  bench.write("suite.json", R"({
    "name": "same", "task": "kernel",
    "set": {"batch": 2, "heads": 2, "head_dim": 16, "length": 96, "pattern": "bidirectional",
            "pass": ["forward", "forward+backward"]},
    "mechanisms": {"python": {"use": "python:same.py:same"}, "ours": {"use": "softmax/composite"}},
    "measure": {"rounds": 1, "max_samples": 10, "max_seconds": 0.02}})");
  bench.cells_of_run("suite.json");
  const Json result = stored_result(bench / "run/result.json").at("attnbench");
  for (const char* pass : {"forward", "forward+backward"}) {
    const Json python = only_cell(result, "python", "pass", pass);
    const Json ours = only_cell(result, "ours", "pass", pass);
    INFO(pass << ": " << python.dump(1) << ours.dump(1));
    CHECK(python.at("check").at("verdict") == "ok");
    CHECK(python.at("memory").at("peak_bytes") > 0);
    CHECK(python.at("memory") == ours.at("memory"));
  }
}
