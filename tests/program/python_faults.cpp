// Files in Python that are wrong or misbehave: each costs one cell, whose reason names the file and
// the line.
#include <nlohmann/json.hpp>

#include "tests/program/python_bench.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

namespace {

const char* const faulty = R"(
import ctypes, os, shutil, signal, sys, tempfile, threading, time
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

def prints(query, key, value):
    print("x" * 1000000)
    return plain(query, key, value)

def closes(query, key, value):
    os.closerange(3, 4096)
    return plain(query, key, value)

def moves(query, key, value):
    os.chdir("/")
    return plain(query, key, value)

def exits(query, key, value):
    sys.exit(3)

def ends(query, key, value):
    os._exit(3)

def forks(query, key, value):
    os.fork()
    return plain(query, key, value)

def waits(query, key, value):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return plain(query, key, value)

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

def handles(query, key, value):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSEGV):
        signal.signal(number, lambda *a: None)
    return plain(query, key, value)

def openmp(query, key, value):
    if not kept.get("omp"):
        copy = os.path.join(tempfile.mkdtemp(), "libgomp-other.so")
        kept["omp"] = ctypes.CDLL(shutil.copy("/usr/lib/x86_64-linux-gnu/libgomp.so.1", copy))
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

for one in (shape, dtype, device, no_tensor, pair, prints, closes, moves, exits, ends, forks, waits,
            default, threads, graph, leaf, remembers, overwrites, handles, openmp, text, recurses,
            sleeps, refuses, claims, reference):
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
)";

struct Expected {
  std::string name;    ///< of the object in bad.py, or FILE.py:NAME
  std::string status;  ///< "measured" for one that does no harm
  std::string reason;  ///< an expression that the reason matches
};

const std::vector<Expected>& expectations() {
  static const std::vector<Expected> all{
      {"nothing", "error", "bad.py:1: there is no nothing; .*"},
      {"number", "error", "bad.py:9: number is int, which cannot be called; .*"},
      {"Wants", "error", "bad.py:11: its constructor wants size; .*"},
      {"no_query", "error", "bad.py:18: it takes no parameter query; .*"},
      {"unknown", "error", "bad.py:21: its parameter gate has no default .*"},
      {"no_pattern", "error", "bad.py:24: it takes neither causal nor pattern.*"},
      {"shape", "error",
       "bad.py:27: shape returned \\[1, 2, 16, 1\\] Float on cpu; expected "
       "\\[1, 2, 16, 8\\] Float on cpu.*"},
      {"dtype", "error", "bad.py:30: dtype returned .* Double on cpu; expected .*"},
      {"device", "error", "bad.py:33: device returned .* on meta; expected .*"},
      {"no_tensor", "error", "bad.py:36: no_tensor returned int; expected .*"},
      {"pair", "error", "bad.py:39: pair returned tuple; expected .*"},
      {"prints", "measured", ""},
      {"closes", "crashed", "bad.py:46: the .*"},
      {"moves", "measured", ""},
      {"exits", "error", "bad.py:55: SystemExit: 3.*"},
      {"ends", "crashed", "bad.py:57: .*exit code 3.*"},
      {"forks", "measured", ""},
      {"waits", "measured", ""},
      {"default", "error", "bad.py:68: default changed the default dtype.*"},
      {"threads", "error", "bad.py:72: threads changed PyTorch's threads from .*"},
      {"graph", "error", "bad.py:76: graph returned an output with a graph .*"},
      {"leaf", "error", "bad.py:80: leaf changed requires_grad of its input query.*"},
      {"remembers", "wrong", "bad.py:86: .*"},
      {"both", "error", "bad.py:134: bad_both returned the same output for other inputs.*"},
      {"faults", "crashed", "bad.py:141: the process .*"},
      {"lines", "error", "bad.py:147: ValueError: what is wrong(;.*)?"},
      {"gap", "error", "bad.py:152: RuntimeError: what is wrong(;.*)?"},
      {"overwrites", "wrong", "bad.py:91: .*"},
      {"handles", "measured", ""},
      {"openmp", "measured", ""},
      {"text", "error", "bad.py:108: ValueError: broken .*udcff text.*"},
      {"recurses", "error", "bad.py:111: RecursionError: .*"},
      {"sleeps", "timeout", "bad.py:113: no end within 20.*"},
      {"refuses", "unsupported", "bad.py:117: NotImplementedError: only on Tuesdays.*"},
      {"claims", "error", "bad.py:119: its attribute claims has 'rows_sum_to_two'.*"},
      {"reference", "error", "bad.py:123: its reference: .*softmx.*"},
      {"syntax.py:f", "error", "syntax.py:3: SyntaxError: .*"},
      {"import.py:f", "unsupported", "import.py:2: ModuleNotFoundError: .*pip install no_such.*"},
      {"leaves.py:f", "error", "leaves.py:2: SystemExit: 1.*"},
      {"falls.py:f", "crashed", ".*while python:.*falls.py:f was imported: .*"},
      {"no_such_package.inner:f", "unsupported",
       "there is no module no_such_package in Python .*"}};
  return all;
}

}  // namespace

TEST_CASE("a file in Python that is wrong costs its own cell, and is named", "[program][python]") {
  if (!have_python()) return;
  const TemporaryFolder folder;
  write_file(folder / "bad.py", faulty);
  write_file(folder / "syntax.py", "\n\ndef f(:\n");
  write_file(folder / "import.py", "import torch\nimport no_such_library\n");
  write_file(folder / "leaves.py", "import sys\nsys.exit(1)\n");
  write_file(folder / "falls.py", "import os\nos.kill(os.getpid(), 11)\n");
  Json mechanisms = Json::object();
  for (const Expected& one : expectations()) {
    const bool elsewhere = one.name.find(':') != std::string::npos;
    mechanisms[one.name]["use"] = "python:" + (elsewhere ? "" : std::string("bad.py:")) + one.name;
  }
  mechanisms["Wants"]["its_option"] = {1, 2};  // of which nobody knows whether there is one
  const Json suite = {
      {"name", "bad"},
      {"task", "kernel"},
      {"set", {{"heads", 2}, {"head_dim", 8}, {"length", 16}, {"pattern", "bidirectional"}}},
      {"mechanisms", mechanisms},
      {"measure",
       {{"rounds", 1}, {"max_samples", 10}, {"max_seconds", 0.02}, {"cell_timeout_seconds", 20}}}};
  write_file(folder / "suite.json", suite.dump(1));
  const Finished ran =
      run({program(), "run", "suite.json", "--out", "run", "--no-ceilings"}, 580,
          {{"XDG_CACHE_HOME", folder / "cache"}, {"VIRTUAL_ENV", ""}}, folder.path());
  INFO(ran.out << ran.err);
  REQUIRE((ran.exit_code == 1 || ran.exit_code == 5));
  std::map<std::string, Json> cells;
  const Json result = stored_result(folder / "run/result.json");
  for (const Json& cell : result["attnbench"]["cells"]) cells[cell["label"]] = cell;
  CHECK(cells.size() == expectations().size());
  for (const Expected& one : expectations()) {
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
  CHECK_THAT(cells.at("openmp")["python"].dump(), Contains("more than one OpenMP runtime"));
  CHECK_THAT(cells.at("text").value("detail", ""), Contains("Traceback"));
  CHECK_THAT(cells.at("faults").value("detail", ""), Contains("bad.py\", line 142 in faults"));
  CHECK_THAT(read_file(folder / "run/index.html"), Contains("bad.py:55: SystemExit"));
}
