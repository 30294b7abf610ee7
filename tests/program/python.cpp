// Mechanisms in Python: the examples of docs/python.md as they stand there, through the commands
// that users give, and modules that misbehave.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/program/python_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

TEST_CASE("the module of docs/python.md is checked, timed, decoded and compared",
          "[program][python]") {
  if (!have_python()) return;
  const PythonBench bench;
  const Finished checked = bench.run({"check", "python:near.py:Near", "--no-growth", "--dtype",
                                      "float64", "float32", "--out", "check.md"});
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("all properties hold; near was compared with itself"));
  CHECK_THAT(read_file(bench / "check.md"), Contains("step") && Contains("causality"));

  const Finished described = bench.run({"describe", "python:near.py:Near"});
  INFO(described.out << described.err);
  CHECK_THAT(described.out, Contains("Attention that prefers what is near") && Contains("slope"));

  write_file(bench / "suite.json",
             R"({"name": "python", "tasks": {"kernel": {"set": {"pass": "forward+backward"}},
                                            "decode": {}},
                 "set": {"heads": 2, "head_dim": 16, "length": [16, 33], "pattern": "causal"},
                 "mechanisms": {"ours": {"use": "python:near.py:Near", "slope": [0.1, 0.5]},
                                "softmax": {}},
                 "measure": {"rounds": 2, "max_samples": 10, "max_seconds": 0.05}})");
  const Finished ran = bench.run({"run", "suite.json", "--out", "run", "--no-ceilings"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  const Json result = stored_result(bench / "run/result.json");
  CHECK(result["attnbench"]["cells"].size() == 12);
  for (const Json& cell : result["attnbench"]["cells"]) {
    INFO(cell.dump(1));
    CHECK(was_measured(cell));
    if (cell["label"] != "ours") {
      CHECK_FALSE(cell.contains("python"));
      continue;
    }
    CHECK(cell["check"]["verdict"] == "ok");
    const Json& python = cell["python"];
    CHECK(python["call_seconds"].get<double>() > 0);
    CHECK(python["call_seconds"].get<double>() < 1e-3);
    CHECK(python["compile_seconds"].get<double>() >= 0);
    CHECK(python["packages"].contains("torch"));
    CHECK(python["file_hash"].get<std::string>().size() >= 8);
  }
  CHECK_THAT(read_file(bench / "run/index.html"), Contains("ours"));
}

TEST_CASE("a Python mechanism is measured anew by --resume where its file has changed",
          "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  const std::vector<std::string> first{
      "run", "python:near.py:Near", "softmax",    "--length", "16", "--rounds", "1", "--out",
      "run", "--no-ceilings",       "--no-report"};
  REQUIRE(bench.run(first).exit_code == 0);
  const auto again = [&] {
    const Finished resumed = bench.run({"run", "--resume", "run", "--no-report"});
    CHECK(resumed.exit_code == 0);
    return resumed.out + resumed.err;
  };
  CHECK_THAT(again(), !Contains("was built anew"));
  bench.write("near.py", documented("near.py") + "\n# changed\n");
  CHECK_THAT(again(), Contains("was built anew"));
}

TEST_CASE("a Python mechanism stands beside a suite's own and against C++", "[program][python]") {
  if (!have_python()) return;
  const PythonBench bench;
  const Finished ran =
      bench.run({"run", "quickstart", "--with", "python:near.py:Near", "--only", R"(\bnear\b)",
                 "--set", "length=256", "--rounds", "1", "--out", "run", "--no-ceilings"});
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  CHECK(was_measured(bench.cells().at("near")));

  const Finished compared = bench.run({"ab", "softmax/composite", "python:near.py:Near", "--length",
                                       "64", "--rounds", "2", "--out", "ab"});
  INFO(compared.out << compared.err);
  CHECK((compared.exit_code == 0 || compared.exit_code == 1 || compared.exit_code == 4));
  CHECK_THAT(compared.out, Contains("near"));
}

TEST_CASE("the module of docs/python.md goes through the suites of decoding and of recall",
          "[program][python]") {
  if (!have_python()) return;
  const PythonBench bench;
  const auto require_near = [&](const std::string& folder, const char* section) {
    const auto cells = bench.cells(folder);
    REQUIRE(cells.count("near") == 1);
    INFO(cells.at("near").dump(1).substr(0, 2000));
    CHECK(was_measured(cells.at("near")));
    CHECK(cells.at("near").contains(section));
  };
  const Finished decoded =
      bench.run({"run",           "decode",           "--with",    "python:near.py:Near",
                 "--only",        R"(\bnear\b)",      "--profile", "quick",
                 "--set",         "length=64",        "--set",     "steps=4",
                 "--set",         "max_seconds=0.05", "--rounds",  "1",
                 "--no-ceilings", "--no-report",      "--out",     "decode"});
  INFO(decoded.out << decoded.err);
  REQUIRE(decoded.exit_code == 0);
  require_near("decode", "timing");
  CHECK(bench.cells("decode").at("near")["timing"].contains("step"));

  const Finished trained = bench.run(
      {"run", "mqar_smoke", "--with", "python:near.py:Near", "--only", R"(\bnear\b)", "--profile",
       "quick", "--set", "train_mix=64x8:256", "--set", "validation_mix=64x8:64", "--set",
       "test_mix=64x8:64", "--set", "epochs=1", "--out", "recall"});
  INFO(trained.out << trained.err);
  REQUIRE(trained.exit_code == 0);
  require_near("recall", "training");
}

TEST_CASE("the other examples of docs/python.md are measured or say what they need",
          "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  for (const char* file : {"scaled.py", "library.py"}) bench.write(file, documented(file));
  const Finished ran =
      bench.run({"run", "python:scaled.py:running_mean", "python:library.py:sdpa", "--length", "32",
                 "--rounds", "1", "--out", "run", "--no-ceilings", "--no-report"});
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  const auto cells = bench.cells();
  CHECK(was_measured(cells.at("library_sdpa")));
  CHECK(cells.at("library_sdpa")["check"]["verdict"] == "ok");
  const Json& kernel = cells.at("scaled_running_mean");
  INFO(kernel.dump(1));
  CHECK(kernel["status"] == "unsupported");
  CHECK_THAT(kernel["reason"].get<std::string>(),
             Matches("scaled.py:[0-9]+: (triton is missing.*|its kernel needs an NVIDIA card)"));
}

TEST_CASE("what a Python mechanism declares is asked once", "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  const std::string counting = documented("near.py") + R"(
import os
with open(os.path.join(os.path.dirname(__file__), "imports"), "a") as file:
    file.write("x")
)";
  bench.write("near.py", counting);
  const auto imports = [&] { return read_file(bench / "imports").size(); };
  REQUIRE(bench.run({"describe", "python:near.py:Near"}).exit_code == 0);
  const std::size_t first = imports();
  CHECK(first > 0);
  CHECK(bench.run({"describe", "python:near.py:Near"}).exit_code == 0);
  CHECK(imports() == first);
  // A plan makes the mechanism, in a child of the worker, and is remembered as well.
  const auto plan = [&] {
    const Finished planned = bench.run({"plan", "python:near.py:Near", "--length", "16..64"});
    INFO(planned.out << planned.err);
    CHECK(planned.exit_code == 0);
    return imports();
  };
  const std::size_t then = plan();
  CHECK(plan() == then);
  bench.write("near.py", counting + "# changed\n");
  CHECK(bench.run({"describe", "python:near.py:Near"}).exit_code == 0);
  CHECK(imports() > first);
}

TEST_CASE("a table says where getting into Python weighs", "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("idle.py", R"(
def idle(query, key, value):
    return value.clone()

idle.patterns = ["causal"]
)");
  const Finished ran = bench.run({"run", "python:idle.py:idle", "--length", "4", "--rounds", "1",
                                  "--out", "run", "--no-ceilings", "--no-report"});
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Contains("idle: getting into Python takes "));
  CHECK(bench.cells().at("idle")["python"]["call_share"].get<double>() > 0.05);
}

TEST_CASE("a worker without its bridge to Python says what to install", "[program][python]") {
  const PythonBench bench;
  // The bridge is looked for beside the library of mechanisms, which is alone in this folder.
  std::filesystem::create_directories(bench / "lib");
  const std::filesystem::path built = test::build_folder();
  std::filesystem::create_symlink(built / "lib/libattnbench_attention.so",
                                  bench / "lib/libattnbench_attention.so");
  const Finished ran = bench.run({"run", "python:near.py:Near", "softmax", "--length", "16",
                                  "--rounds", "1", "--out", "run", "--no-ceilings", "--no-report"},
                                 300, {{"LD_LIBRARY_PATH", bench / "lib"}});
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  const auto cells = bench.cells();
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
  const Finished ran = bench.run({"run", "python:near.py:Near", "softmax", "--length", "16",
                                  "--rounds", "1", "--out", "run", "--no-ceilings", "--no-report"},
                                 300, {{"VIRTUAL_ENV", other}});
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  const auto cells = bench.cells();
  CHECK(was_measured(cells.at("softmax")));
  CHECK(cells.at("near")["status"] == "unsupported");
  CHECK_THAT(cells.at("near")["reason"].get<std::string>(),
             Contains("has Python 3.99.1 and PyTorch 9.8.7") &&
                 Contains("was built with Python 3.") && Contains("ATTNBENCH_TORCH="));

  // The same Python, but another PyTorch comes first.
  std::filesystem::create_directories(bench / "more/torch/lib");
  write_file(bench / "more/torch/__init__.py", "");
  write_file(bench / "more/torch/version.py", "__version__ = '9.8.7'\n");
  const Finished shadowed = bench.run({"run", "python:near.py:Near", "--length", "16", "--rounds",
                                       "1", "--out", "again", "--no-ceilings", "--no-report"},
                                      300, {{"PYTHONPATH", bench / "more"}});
  INFO(shadowed.out << shadowed.err);
  CHECK_THAT(bench.cells("again").at("near")["reason"].get<std::string>(),
             Contains("has PyTorch 9.8.7 in ") && Contains("was built with Python 3."));
}

TEST_CASE("parameters of a Python class train, and are drawn from the seed", "[program][python]") {
  if (!have_python()) return;
  PythonBench bench;
  bench.write("gated.py", R"(
import torch

class Gated(torch.nn.Module):
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
  const Finished checked =
      bench.run({"check", "python:gated.py:Gated", "--no-growth", "--dtype", "float64"});
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);
  const Finished suite = bench.run(
      {"run", "mqar_smoke", "--with", "python:gated.py:Gated", "--only", "gated", "--profile",
       "quick", "--set", "train_mix=64x8:256", "--set", "validation_mix=64x8:64", "--set",
       "test_mix=64x8:64", "--set", "epochs=1", "--out", "learn"});
  INFO(suite.out << suite.err);
  CHECK(suite.exit_code == 0);
  for (const auto& [label, cell] : bench.cells("learn")) {
    INFO(cell.dump(1).substr(0, 2000));
    CHECK(was_measured(cell));
    CHECK(cell.contains("training"));
  }
}
