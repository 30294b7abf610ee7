#include "harness/worker/python_plugins.hpp"

#include "attention/python/bridge.hpp"
#include "attention/torch/torch.hpp"
#include "harness/worker/child.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

/// Files in Python, and what they do to a process: a child of this one, since a process that has
/// started Python does not fork.
class PythonFiles {
 public:
  void write(const std::string& name, const std::string& text) {
    test::write_file(folder_ / name, text);
  }
  std::string word(const std::string& of) const { return "python:" + (folder_ / of).string(); }
  /// How `body` ended, and what it sent; nothing where there is no Python.
  std::optional<worker::Outcome> in_child(const worker::Child::Body& body) {
    if (!std::filesystem::exists(test::build_folder() + "/lib/libattnbench-python.so")) {
      WARN("needs Python: the worker was built without it");
      return std::nullopt;
    }
    worker::ChildSetup setup;
    setup.limit_seconds = 120;
    return worker::run_child(setup, body,
                             [&](const worker::Json& message) { messages.push_back(message); });
  }
  std::vector<worker::Json> messages;

 private:
  test::TemporaryFolder folder_;
  test::Variable environment_{"VIRTUAL_ENV", std::nullopt};
};

const char* const mechanism = R"(
def f(query, key, value, causal):
    return value
)";

/// What decides how a cell is computed: the precision of products and the numbers drawn next.
worker::Json surroundings() {
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  const auto* const bytes = state.data_ptr<std::uint8_t>();
  return {{"type", "state"},
          {"precision", static_cast<int>(at::globalContext().float32MatmulPrecision())},
          {"generator", std::vector<std::uint8_t>(bytes, bytes + state.numel())}};
}

}  // namespace

TEST_CASE("a file whose helper has the name of another file's is refused in the same process",
          "[python]") {
  PythonFiles files;
  for (const std::string folder : {"one/", "two/"}) {
    files.write(folder + "helper.py", "size = 1\n");
    files.write(folder + folder.substr(0, 3) + ".py", std::string("import helper\n") + mechanism);
  }
  files.write("one/alone.py", std::string("import helper\n") + mechanism);
  const auto outcome = files.in_child([&](process::Channel& channel) {
    for (const char* of : {"one/one.py:f", "one/alone.py:f", "two/two.py:f"}) {
      python::bridge().describe(files.word(of));
      channel.send({{"type", "described"}, {"word", of}});
    }
  });
  if (!outcome) return;
  CHECK(files.messages.size() == 2);
  CHECK(outcome->status == Status::error);
  CHECK_THAT(outcome->reason, Contains("two/helper.py cannot be imported") &&
                                  Contains("one/helper.py is helper in this process") &&
                                  Contains("another name"));
}

TEST_CASE("what a file in Python changes in torch is put back for the next mechanism", "[python]") {
  PythonFiles files;
  const std::string changes =
      "torch.set_float32_matmul_precision('medium'); torch.manual_seed(99); torch.rand(3)\n";
  files.write("file.py", "import torch\n" + changes + mechanism);
  files.write("made.py", "import torch\nclass Made(torch.nn.Module):\n    def __init__(self):\n" +
                             ("        super().__init__()\n        " + changes) +
                             "    def forward(self, query, key, value, causal):\n"
                             "        return value\n");
  const auto outcome = files.in_child([&](process::Channel& channel) {
    channel.send(surroundings());
    python::bridge().describe(files.word("file.py:f"));
    channel.send(surroundings());
    const Problem problem;
    const auto made = python::bridge().make(files.word("made.py:Made"), python::Which::mechanism,
                                            Options(), problem);
    channel.send(surroundings());
    made->draw(5);
    channel.send(surroundings());
  });
  if (!outcome) return;
  INFO(outcome->reason);
  REQUIRE(outcome->status == Status::ok);
  REQUIRE(files.messages.size() == 4);
  for (const worker::Json& after : files.messages) CHECK(after == files.messages.front());
}

TEST_CASE("a reference in Python that takes longer than the samples is noted", "[python]") {
  python::Description description;
  description.reference = "python";
  CHECK_THAT(worker::note_on_reference(description, 12.34, 1.5),
             Contains("its check took 12.3 s, its samples 1.5 s") &&
                 Contains("without loops over tokens"));
  CHECK(worker::note_on_reference(description, 12, 13).empty());
  CHECK(worker::note_on_reference(description, 0.9, 0.1).empty());
  description.reference = "softmax";
  CHECK(worker::note_on_reference(description, 12, 1).empty());
}
