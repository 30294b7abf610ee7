// Files in Python that are wrong or misbehave: each costs one cell, whose reason names the file and
// the line.
#include <nlohmann/json.hpp>

#include "tests/end_to_end/python_faults.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

namespace {

const char* const faulty = R"(
import ctypes, glob, os, shutil, signal, sys, threading, time
import torch

def plain(query, key, value):
    logits = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    return torch.matmul(torch.softmax(logits, -1), value)

number = 3

class Wants(torch.nn.Module):
    patterns = ["bidirectional"]
    def __init__(self, size):
        super().__init__()
    def forward(self, query, key, value):
        return plain(query, key, value)

def no_query(key, value, causal):
    return value

def unknown(query, key, value, causal, gate):
    return value

def no_pattern(query, key, value):
    return value

def shape(query, key, value):
    return plain(query, key, value)[..., :1]

def dtype(query, key, value):
    return plain(query, key, value).double()

def device(query, key, value):
    return plain(query, key, value).to("meta")

def no_tensor(query, key, value):
    return 3

def pair(query, key, value):
    return plain(query, key, value), None

def closes(query, key, value):
    os.closerange(3, 4096)
    return plain(query, key, value)

def exits(query, key, value):
    sys.exit(3)

def ends(query, key, value):
    os._exit(3)

def default(query, key, value):
    torch.set_default_dtype(torch.float64)
    return plain(query, key, value)

def threads(query, key, value):
    torch.set_num_threads(torch.get_num_threads() + 1)
    return plain(query, key, value)

def graph(query, key, value):
    with torch.enable_grad():
        return plain(query, key, value) * torch.ones(1, requires_grad=True)

def leaf(query, key, value):
    result = plain(query, key, value)
    query.requires_grad_()
    return result

kept = {}
def remembers(query, key, value):
    if query.shape not in kept:
        kept[query.shape] = plain(query, key, value)
    return kept[query.shape].clone()

def overwrites(query, key, value):
    result = plain(query, key, value)
    value.zero_()
    return result

def openmp(query, key, value):
    if not kept.get("omp"):
        copy = os.path.join(os.path.dirname(__file__), "libgomp-other.so")
        kept["omp"] = ctypes.CDLL(shutil.copy(glob.glob("/usr/lib/*/libgomp.so.1")[0], copy))
    return plain(query, key, value)

def text(query, key, value):
    raise ValueError("broken \udcff text")

def recurses(query, key, value):
    return recurses(query, key, value)

def sleeps(query, key, value):
    time.sleep(600)

def refuses(query, key, value):
    raise NotImplementedError("only on Tuesdays")

def claims(query, key, value):
    return plain(query, key, value)
claims.claims = ["rows_sum_to_two"]

def reference(query, key, value):
    return plain(query, key, value)
reference.reference = "softmx"

def harmless(query, key, value):
    print("x" * 1000000)
    os.chdir("/")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSEGV):
        signal.signal(number, lambda *a: None)
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    os.fork()
    return plain(query, key, value)

for one in (shape, dtype, device, no_tensor, pair, closes, exits, ends, default, threads, graph, leaf,
            remembers, overwrites, openmp, text, recurses, sleeps, refuses, claims, reference,
            harmless):
    one.patterns = ["bidirectional"]
    if not hasattr(one, "reference"):
        one.reference = "softmax"

def both(query, key, value):
    form = query.shape, query.dtype
    if form not in kept:
        kept[form] = plain(query, key, value)
    return kept[form].clone()
both.patterns = ["bidirectional"]

def faults(query, key, value):
    return ctypes.string_at(0)
faults.patterns = ["bidirectional"]
faults.reference = "softmax"

def lines(query, key, value):
    raise ValueError("what is wrong\n  a long story")
lines.patterns = ["bidirectional"]
lines.reference = "softmax"

def gap(query, key, value):
    raise RuntimeError("\nwhat is wrong\n  a long story")
gap.patterns = ["bidirectional"]
gap.reference = "softmax"

def parent(query, key, value):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
parent.patterns = ["bidirectional"]
parent.reference = "softmax"
)";

const char* const declared = R"(import torch

def plain(query, key, value):
    logits = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    return torch.matmul(torch.softmax(logits, -1), value)

def cost(batch, length):
    return {"model_flops": batch * length}

def why(what):
    return None

class Body:
    patterns = ["bidirectional"]
    cost = cost
    reference = plain
    def __call__(self, query, key, value, head_dim: int = 64):
        assert head_dim == query.size(-1)
        return plain(query, key, value)

body = Body()

class Still(torch.nn.Module):
    patterns = ["bidirectional"]
    reference = "softmax"
    @staticmethod
    def forward(query, key, value):
        return plain(query, key, value)

class Asks(Body):
    unavailable = why

class Costs(Body):
    def cost(self, batch):
        return {}

def infinite(query, key, value, causal, slope: float = float("inf")):
    return value

class Complex(torch.nn.Module):
    patterns = ["bidirectional"]
    def __init__(self):
        super().__init__()
        self.turn = torch.nn.Parameter(torch.ones(3, dtype=torch.complex64))
    def forward(self, query, key, value):
        return value

class Twice(Still):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2)
        self.a_weight = torch.nn.Parameter(torch.ones(2))

def ours(query, key, value):
    return plain(query, key, value)
ours.patterns = ["bidirectional"]
ours.reference = "latte"

def mode(query, key, value):
    result = plain(query, key, value)
    torch.autocast("cpu").__enter__()
    return result
mode.patterns = ["bidirectional"]
mode.reference = "softmax"

def algorithms(query, key, value):
    torch.use_deterministic_algorithms(True)
    return plain(query, key, value)
algorithms.patterns = ["bidirectional"]
algorithms.reference = "softmax"

from typing import Annotated, Literal

def ranged(query, key, value, causal, slope: Annotated[float, (2, 3)] = 1.0):
    return value

def worded(query, key, value, causal, mode: Literal["a", "b"] = "c"):
    return value
)";

const std::vector<Fault> some_faults{
    {"number", "error", "bad.py:9: number is int, which cannot be called; .*"},
    {"shape", "error",
     "bad.py:27: shape returned \\[1, 2, 16, 1\\] Float on cpu; expected "
     "\\[1, 2, 16, 8\\] Float on cpu.*"},
    {"closes", "crashed", "bad.py:42: the .*"},
    {"exits", "error", "bad.py:47: SystemExit: 3.*"},
    {"remembers", "wrong", "bad.py:70: .*"},
    {"both", "error", "bad.py:122: bad_both returned the same output for other inputs.*"},
    {"faults", "crashed", "bad.py:129: the process .*"},
    {"parent", "crashed", "bad.py:144: the process was killed by .*"},
    {"openmp", "measured", ""},
    {"text", "error", "bad.py:87: ValueError: broken .*udcff text.*"},
    {"refuses", "unsupported", "bad.py:96: NotImplementedError: only on Tuesdays.*"},
    {"syntax.py:f", "error", "syntax.py:3: SyntaxError: .*"},
    {"import.py:f", "unsupported", "import.py:2: ModuleNotFoundError: .*pip install no_such.*"},
    {"kinds.py:Body", "measured", ""},
    {"kinds.py:ours", "error", "kinds.py:54: its attribute reference names latte, which takes .*"},
    {"harmless", "measured", ""}};

}  // namespace

namespace attnbench::test {

std::pair<std::map<std::string, Json>, std::string> held_to(const std::vector<Fault>& expected) {
  const TemporaryFolder folder;
  write_file(folder / "bad.py", faulty);
  write_file(folder / "kinds.py", declared);
  write_file(folder / "zero.py", std::string("\nx = '\0'\n", 9));
  write_file(folder / "deep.py", "x = " + std::string(200000, '-') + "1\n");
  write_file(folder / "syntax.py", "\n\ndef f(:\n");
  write_file(folder / "import.py", "import torch\nimport no_such_library\n");
  write_file(folder / "leaves.py", "import sys\nsys.exit(1)\n");
  write_file(folder / "falls.py", "import os\nos.kill(os.getpid(), 11)\n");
  Json mechanisms = Json::object();
  for (const Fault& one : expected) {
    const bool elsewhere = one.name.find(':') != std::string::npos;
    mechanisms[one.name]["use"] = "python:" + (elsewhere ? "" : std::string("bad.py:")) + one.name;
  }
  // Nobody knows whether it has that option.
  if (mechanisms.contains("Wants")) mechanisms["Wants"]["its_option"] = {1, 2};
  const Json suite = {
      {"name", "bad"},
      {"task", "kernel"},
      {"set", {{"heads", 2}, {"head_dim", 8}, {"length", 16}, {"pattern", "bidirectional"}}},
      {"mechanisms", mechanisms},
      {"measure",
       {{"rounds", 1}, {"max_samples", 10}, {"max_seconds", 0.02}, {"cell_timeout_seconds", 40}}}};
  write_file(folder / "suite.json", suite.dump(1));
  const Finished ran = run(words(program() + " run suite.json --out run --no-ceilings"), 580,
                           {{"VIRTUAL_ENV", ""}}, folder.path());
  INFO(ran.out << ran.err);
  REQUIRE((ran.exit_code == 1 || ran.exit_code == 5));
  const std::map<std::string, Json> cells = cells_of(folder / "run");
  CHECK(cells.size() == expected.size());
  for (const Fault& one : expected) {
    const Json& cell = cells.at(one.name);
    INFO(one.name << ": " << cell.dump(1).substr(0, 3000));
    if (one.status == "measured") {
      CHECK(was_measured(cell));
      continue;
    }
    CHECK(cell["status"] == one.status);
    const std::string reason = cell.value("reason", "");
    CHECK_THAT(reason.substr(0, reason.find('\n')), Matches(one.reason));
  }
  return {cells, read_file(folder / "run/index.html")};
}

}  // namespace attnbench::test

TEST_CASE("a file in Python that is wrong costs its own cell, and is named", "[program][python]") {
  if (!have_python()) return;
  const auto [cells, page] = held_to(some_faults);
  CHECK_THAT(cells.at("openmp")["python"].dump(), Contains("more than one OpenMP runtime"));
  CHECK_THAT(cells.at("text").value("detail", ""), Contains("Traceback"));
  CHECK_THAT(cells.at("faults").value("detail", ""), Contains("bad.py\", line 130 in faults"));
  CHECK_THAT(page, Contains("bad.py:47: SystemExit"));
}
