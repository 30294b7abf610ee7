// Mechanisms in Python: the examples of docs/python.md as they stand there, through the commands
// that users give, and modules that misbehave.
#include <filesystem>
#include <regex>

#include "tests/end_to_end/python_bench.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

TEST_CASE("the module of docs/python.md is checked, timed, decoded and drawn",
          "[program][python]") {
  if (!have_python()) return;
  const PythonBench bench;
  const Finished checked =
      bench.run("check python:near.py:Near --no-growth --dtype float32 --out check.md");
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Catch::StartsWith("near: no reference, so held to itself in double"));
  CHECK_THAT(checked.out, Contains("all properties hold; near was compared with itself"));
  CHECK_THAT(read_file(bench / "check.md"), Contains("step") && Contains("causality"));

  const Finished described = bench.run("describe python:near.py:Near");
  INFO(described.out << described.err);
  CHECK_THAT(described.out, Contains("Attention that prefers what is near") && Contains("slope"));

  write_file(bench / "suite.json",
             R"({"name": "python", "tasks": {"kernel": {"set": {"pass": "forward+backward"}},
                                            "decode": {"set": {"steps": 4}}},
                 "set": {"heads": 2, "head_dim": 16, "length": 33, "pattern": "causal"},
                 "mechanisms": {"ours": {"use": "python:near.py:Near", "slope": [0.1, 0.5]},
                                "softmax": {}},
                 "measure": {"rounds": 1, "max_samples": 10, "max_seconds": 0.05}})");
  const Finished ran = bench.run("run suite.json --out run --no-ceilings");
  INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  const Json result = stored_result(bench / "run/result.json");
  CHECK(result["attnbench"]["cells"].size() == 6);
  for (const Json& cell : result["attnbench"]["cells"]) {
    INFO(cell.dump(1));
    CHECK(was_measured(cell));
    if (cell["label"] != "ours") {
      CHECK_FALSE(cell.contains("python"));
      continue;
    }
    CHECK(cell["check"]["verdict"] == "ok");
    CHECK(cell["timing"].contains(cell["task"] == "decode" ? "step" : "forward+backward"));
    const Json& python = cell["python"];
    CHECK(python["call_seconds"].get<double>() > 0);
    CHECK(python["compile_seconds"].get<double>() >= 0);
    CHECK(python["packages"].contains("torch"));
    CHECK(python["file_hash"].get<std::string>().size() >= 8);
  }
  CHECK_THAT(read_file(bench / "run/index.html"), Contains("ours"));
}

TEST_CASE("a Python mechanism is compared with C++, and measured anew where its file has changed",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  const Finished compared = bench.run(
      "ab softmax/composite python:near.py:Near --length 16 --rounds 1 --no-ceilings "
      "--no-report --out ab");
  INFO(compared.out << compared.err);
  CHECK(compared.exit_code == 4);  // one round cannot tell
  CHECK_THAT(compared.out, Contains("near"));

  bench.cells_of_run("python:near.py:Near --length 16");
  const auto again = [&] {
    const Finished resumed = bench.run("run --resume run --no-report");
    CHECK(resumed.exit_code == 0);
    return resumed.out + resumed.err;
  };
  CHECK_THAT(again(), !Contains("was built anew"));
  bench.write("near.py", documented("near.py") + "\n# changed\n");
  CHECK_THAT(again(), Contains("was built anew"));
}

TEST_CASE("the other examples of docs/python.md are measured or say what they need",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  for (const char* file : {"scaled.py", "library.py"}) bench.write(file, documented(file));
  const auto cells =
      bench.cells_of_run("python:scaled.py:running_mean python:library.py:sdpa --length 32");
  CHECK(was_measured(cells.at("library_sdpa")));
  CHECK(cells.at("library_sdpa")["check"]["verdict"] == "ok");
  const Json& kernel = cells.at("scaled_running_mean");
  INFO(kernel.dump(1));
  CHECK(kernel["status"] == "unsupported");
  CHECK_THAT(kernel["reason"].get<std::string>(),
             Matches("scaled.py:[0-9]+: (triton is missing.*|its kernel needs an NVIDIA card)"));
}

TEST_CASE("what a Python mechanism declares is asked once", "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  const std::string counting = documented("near.py") + R"(
import os
with open(os.path.join(os.path.dirname(__file__), "imports"), "a") as file:
    file.write("x")
)";
  bench.write("near.py", counting);
  const std::map<std::string, std::string> own_cache{{"XDG_CACHE_HOME", bench / "cache"}};
  const auto imports_after = [&](const std::string& line) {
    const Finished finished = bench.run(line, own_cache);
    INFO(finished.out << finished.err);
    CHECK(finished.exit_code == 0);
    return contents(bench / "imports").size();
  };
  const std::string describe = "describe python:near.py:Near";
  const std::size_t first = imports_after(describe);
  CHECK(first > 0);
  CHECK(imports_after(describe) == first);
  // A plan makes the mechanism, in a child of the worker, and is remembered as well.
  const std::string plan = "plan python:near.py:Near --length 16..64";
  const std::size_t then = imports_after(plan);
  CHECK(imports_after(plan) == then);
  bench.write("near.py", counting + "# changed\n");
  CHECK(imports_after(describe) > first);
}

TEST_CASE("a table says where getting into Python weighs", "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("idle.py", R"(
def idle(query, key, value):
    return value.clone()

idle.patterns = ["causal"]
)");
  const Finished ran = bench.run(
      "run python:idle.py:idle --length 4 --rounds 1 --out run --no-ceilings --no-report");
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  // The note is wrapped, elsewhere where the cell was disturbed.
  const std::string flat = std::regex_replace(ran.out, std::regex("\\s+"), " ");
  CHECK_THAT(flat, Contains("idle: getting into Python takes "));
  CHECK(cells_of(bench / "run").at("idle")["python"]["call_share"].get<double>() > 0.05);
}

TEST_CASE("a second call that compiles, too, hides nothing of the first one's",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("slow.py", R"(
import time

calls = 0

def slow(query, key, value):
    global calls
    calls += 1
    if calls <= 2:
        time.sleep(0.3)
    return value.clone()

slow.patterns = ["causal"]
)");
  const Finished ran = bench.run(
      "run python:slow.py:slow --length 4 --rounds 1 --out run --no-ceilings --no-report");
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  CHECK(cells_of(bench / "run").at("slow")["python"]["compile_seconds"].get<double>() > 0.2);
}

TEST_CASE("a worker without its bridge to Python says what to install", "[program][python]") {
  const PythonBench bench;
  // The bridge is looked for beside the library of mechanisms, which is alone in this folder.
  std::filesystem::create_directories(bench / "lib");
  const std::filesystem::path built = test::build_folder();
  std::filesystem::create_symlink(built / "lib/libattnbench_attention.so",
                                  bench / "lib/libattnbench_attention.so");
  const auto cells =
      bench.cells_of_run("python:near.py:Near softmax --length 16",
                         {{"LD_LIBRARY_PATH", bench / "lib"}, {"XDG_CACHE_HOME", bench / "cache"}});
  CHECK(was_measured(cells.at("softmax")));
  CHECK(cells.at("near")["status"] == "unsupported");
  CHECK_THAT(cells.at("near")["reason"].get<std::string>(),
             Contains("install python3-torch, libpython3-dev and pybind11-dev") &&
                 Contains("ATTNBENCH_TORCH") && Contains("build again"));
}

TEST_CASE("an environment of another Python is named with what it has", "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  const std::filesystem::path other = bench / "venv";
  for (const char* folder : {"bin", "lib/python3.99/site-packages/torch"}) {
    std::filesystem::create_directories(other / folder);
  }
  write_file(other / "bin/python3", "");
  write_file(other / "pyvenv.cfg", "home = /usr/bin\nversion = 3.99.1\n");
  write_file(other / "lib/python3.99/site-packages/torch/version.py", "__version__ = '9.8.7'\n");
  const auto cells =
      bench.cells_of_run("python:near.py:Near softmax --length 16", {{"VIRTUAL_ENV", other}});
  CHECK(was_measured(cells.at("softmax")));
  CHECK(cells.at("near")["status"] == "unsupported");
  CHECK_THAT(cells.at("near")["reason"].get<std::string>(),
             Contains("has Python 3.99.1 and PyTorch 9.8.7") &&
                 Contains("was built with Python 3.") && Contains("ATTNBENCH_TORCH="));

  // The same Python, but another PyTorch comes first.
  std::filesystem::create_directories(bench / "more/torch/lib");
  write_file(bench / "more/torch/__init__.py", "");
  write_file(bench / "more/torch/version.py", "__version__ = '9.8.7'\n");
  bench.run("run python:near.py:Near --length 16 --rounds 1 --out again --no-ceilings --no-report",
            {{"PYTHONPATH", bench / "more"}});
  CHECK_THAT(cells_of(bench / "again").at("near")["reason"].get<std::string>(),
             Contains("has PyTorch 9.8.7 in ") && Contains("was built with Python 3."));
}

TEST_CASE("parameters of a Python class train beside a suite's own, and are drawn from the seed",
          "[program][python][night]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("scaled.py", R"(
import torch

class Scaled(torch.nn.Module):
    patterns = ["causal"]

    def __init__(self, heads, head_dim, start: float = 0.5):
        super().__init__()
        self.scale = torch.nn.Parameter(start + torch.rand(heads, 1, head_dim))

    def forward(self, query, key, value, key_mask):
        if key_mask is not None:  # padding may hold anything
            real = key_mask[:, None, :, None]
            key, value = key.masked_fill(~real, 0), value.masked_fill(~real, 0)
        logits = torch.matmul(query * self.scale, key.transpose(-2, -1))
        tokens = query.size(2)
        seen = torch.ones(tokens, tokens, dtype=torch.bool, device=query.device).tril()
        if key_mask is not None:
            seen = seen & key_mask[:, None, None, :]
        weights = torch.softmax(logits.masked_fill(~seen, -1e30), -1) * seen
        return torch.matmul(weights, value)
)");
  const Finished checked = bench.run("check python:scaled.py:Scaled --no-growth --dtype float64");
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);
  const auto cells = bench.cells_of_run(
      "mqar_smoke --with python:scaled.py:Scaled --only scaled --profile quick "
      "--set train_mix=64x8:256 --set validation_mix=64x8:64 --set test_mix=64x8:64 "
      "--set epochs=1");
  REQUIRE(cells.size() == 1);
  for (const auto& [label, cell] : cells) {
    INFO(cell.dump(1).substr(0, 2000));
    CHECK(was_measured(cell));
    CHECK(cell.contains("training"));
  }
}

TEST_CASE("describe refuses what could not be registered, and shows what is not to be had here",
          "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("words.py", R"(number = 3

def needs(query, key, value, causal):
    return value
needs.unavailable = lambda: "needs a card of 2030"
)");
  const Finished number = bench.run("describe python:words.py:number");
  INFO(number.out << number.err);
  CHECK(number.exit_code == 2);
  CHECK(number.out.empty());
  CHECK_THAT(number.err, Contains("words.py:1: number is int, which cannot be called"));
  const Finished needs = bench.run("describe python:words.py:needs");
  INFO(needs.out << needs.err);
  CHECK(needs.exit_code == 0);
  CHECK_THAT(needs.out, Contains("unavailable: words.py:") && Contains("needs a card of 2030"));
  CHECK(bench.run("describe latte --plugin python:words.py:number").exit_code == 0);
}
