// Mechanisms written in Python: read, described, mixed, differentiated, checked, and refused.
#include "harness/worker/plugins.hpp"

#include "attention/conformance/conformance.hpp"
#include "attention/torch/torch.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

/// Attention without a softmax, a token's weight learned, and its continuation from a state.
constexpr const char* linear_methods = R"(
def forward(self, query, key, value, causal: bool, key_mask: Optional[Tensor] = None, power: float = 1.0):
    if key_mask is not None:
        key = key.masked_fill(~key_mask.unsqueeze(1).unsqueeze(-1), 0.0)
        value = value.masked_fill(~key_mask.unsqueeze(1).unsqueeze(-1), 0.0)
    scores = torch.matmul(query, key.transpose(-2, -1)) * power * self.gain
    if causal:
        scores = scores.tril()
    return torch.matmul(scores, value)

def empty_state(self, batch: int, heads: int, head_dim: int, value_dim: int) -> Dict[str, Tensor]:
    return {"memory": torch.zeros([batch, heads, head_dim, value_dim])}

def step(self, query, key, value, causal: bool, state: Dict[str, Tensor], power: float = 1.0) -> Tuple[Tensor, Dict[str, Tensor]]:
    memory = state["memory"]
    rows: List[Tensor] = []
    for t in range(query.size(2)):
        memory = memory + torch.matmul(key[:, :, t:t + 1].transpose(-2, -1), value[:, :, t:t + 1])
        rows.append(torch.matmul(query[:, :, t:t + 1], memory) * power * self.gain)
    return torch.cat(rows, 2), {"memory": memory}
)";

/// Saves a module of those methods with one parameter `gain`.
std::string save(const test::TemporaryFolder& folder, const std::string& name,
                 const std::string& methods, double gain = 0.5) {
  torch::jit::Module module("Mine");
  module.register_parameter("gain", at::full({1}, gain).requires_grad_(true), false);
  module.define(methods);
  const std::string file = folder / name;
  module.save(file);
  return file;
}

Registry registry_with(const std::string& file) {
  Registry registry = Registry::with_builtins();
  add_script(worker::describe_script(file), registry);
  return registry;
}

std::string broken(const Registry& registry, const std::string& name, Pattern pattern,
                   Dtype dtype) {
  const Entry& entry = registry.entry(name);
  std::string all;
  for (const auto& finding : conformance::check(entry, registry.reference(name),
                                                entry.implementations.front(), pattern, dtype)) {
    if (finding.status != conformance::Status::broken) continue;
    all += finding.property + ": " + finding.reason + "\n";
  }
  return all;
}

std::string refusal(const std::string& file) {
  Registry registry = Registry::with_builtins();
  try {
    add_script(worker::describe_script(file), registry);
  } catch (const PluginError& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("a scripted module is a mechanism with options, a state and gradients", "[script]") {
  const test::TemporaryFolder folder;
  const std::string file = save(folder, "mine.pt", linear_methods);
  test::write_file(folder / "mine.json",
                   R"({"title": "Mine", "claims": {"linear_in_value": true},
                       "options": {"power": "a factor"}})");
  const Registry registry = registry_with(file);
  const Entry& entry = registry.entry("mine");
  CHECK(entry.title == "Mine");
  CHECK_THAT(entry.citation, Contains("compared with itself in double"));
  REQUIRE(entry.options.size() == 1);
  CHECK(entry.options[0].name == "power");
  CHECK(entry.options[0].meaning == "a factor");
  CHECK(entry.claims.linear_in_value);
  CHECK_FALSE(entry.claims.rows_sum_to_one);
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    CHECK(broken(registry, "mine", pattern, Dtype::float64).empty());
    CHECK(broken(registry, "mine", pattern, Dtype::float32).empty());
  }

  Problem problem;
  problem.length = problem.key_length = 5;
  problem.head_dim = problem.value_dim = 4;
  const auto mechanism = entry.make(Options::resolve(entry.options, {{"power", 2.0}}), problem);
  Inputs inputs;
  for (const char* role : {"query", "key", "value"}) {
    inputs.tensors[role] = at::rand({1, 1, 5, 4}).set_requires_grad(true);
  }
  const at::Tensor output = entry.implementations.front().mix(*mechanism, inputs, nullptr).output;
  const at::Tensor scores =
      at::matmul(inputs["query"], inputs["key"].transpose(-2, -1)).tril() * 2.0 * 0.5;
  CHECK(at::allclose(output, at::matmul(scores, inputs["value"])));
  Inputs narrow;  // under autocast, beside a parameter in float32
  for (const auto& [role, x] : inputs.tensors) {
    narrow.tensors[role] = x.detach().to(at::kBFloat16);
  }
  const at::Tensor rounded = entry.implementations.front().mix(*mechanism, narrow, nullptr).output;
  CHECK(rounded.scalar_type() == at::kBFloat16);
  CHECK(at::allclose(rounded.to(at::kFloat), output.detach(), 2e-2, 2e-2));
  output.sum().backward();
  CHECK(mechanism->parameters().size() == 1);
  CHECK(mechanism->parameters()[0].grad().abs().sum().item<double>() > 0);
}

TEST_CASE("a module beside it is its definition, and finds that it computes the wrong thing",
          "[script]") {
  const test::TemporaryFolder folder;
  const std::string file = save(folder, "mine.pt", linear_methods);
  save(folder, "mine.reference.pt", linear_methods);
  CHECK(broken(registry_with(file), "mine", Pattern::causal, Dtype::float64).empty());
  std::string other = linear_methods;
  other.replace(other.find("* power * self.gain"), 19, "* power + self.gain");
  save(folder, "mine.reference.pt", other);
  const Registry registry = registry_with(file);
  CHECK_THAT(broken(registry, "mine", Pattern::causal, Dtype::float64),
             Contains("value_equals_reference"));
  CHECK_THAT(registry.entry("mine").citation, !Contains("itself"));
}

TEST_CASE("a module that cannot be a mechanism is refused with the reason", "[script]") {
  const test::TemporaryFolder folder;
  const auto with = [&](const std::string& methods) { return save(folder, "bad.pt", methods); };
  const std::string body = ":\n    return value\n";
  CHECK_THAT(refusal(folder / "no.pt"), Contains("there is no such file"));
  test::write_file(folder / "text.pt", "not a module");
  CHECK_THAT(refusal(folder / "text.pt"), Contains("it is no TorchScript module"));
  CHECK_THAT(refusal(with("def step(self, value)" + body)), Contains("it has no forward"));
  CHECK_THAT(refusal(with("def forward(self, value)" + body)), Contains("\"patterns\" must say"));
  CHECK_THAT(refusal(with("def forward(self, value, gate, causal: bool)" + body)),
             Contains("its argument gate is not one of query, key and value"));
  CHECK_THAT(refusal(with("def forward(self, value, causal: bool, sizes: List[int])" + body)),
             Contains("its argument sizes of type List[int]"));
  CHECK_THAT(refusal(with("def forward(self, value, causal: bool, power: float)" + body)),
             Contains("with a default"));
  std::filesystem::copy(with("def forward(self, value, causal: bool)" + body),
                        std::filesystem::path(folder / "Bad-Name.pt"));
  CHECK_THAT(refusal(folder / "Bad-Name.pt"), Contains("must be lower-case letters"));
}

TEST_CASE("the description beside a module is validated", "[script]") {
  const test::TemporaryFolder folder;
  const std::string file =
      save(folder, "mine.pt", "def forward(self, value, gate):\n    return value * gate\n");
  const std::vector<std::pair<std::string, std::string>> texts{
      {"{", "in the middle of a value"},
      {"[]", "expected an object"},
      {R"({"titel": "x"})", "did you mean \"title\""},
      {R"({"title": 3})", "\"title\" is 3"},
      {R"({"patterns": ["sideways"]})", "sideways"},
      {R"({"claims": {"linear": true}})", "there is no \"linear\""},
      {R"({"roles": {"gate": {"source": "elsewhere"}}})", "expected \"query_tokens\""},
      {R"({"roles": {"gate": {"width": "wide"}}})", "expected \"head_dim\""},
      {R"({"roles": {"gate": {"width": -1}}})", "expected \"head_dim\""},
      {R"({"growth": {"time_in_length": "fast"}})", "\"time_in_length\""}};
  for (const auto& [text, complaint] : texts) {
    test::write_file(folder / "mine.json", text);
    INFO(text);
    CHECK_THAT(refusal(file), Contains(complaint) && Contains("mine.json"));
  }
  test::write_file(folder / "mine.json",
                   R"({"patterns": ["causal"], "roles": {"gate": {"width": "value_dim"}}})");
  CHECK(refusal(file) == "taken");
  CHECK(broken(registry_with(file), "mine", Pattern::causal, Dtype::float64).empty());
}

TEST_CASE("TorchScript's message about a failure is cut to its last line", "[script]") {
  const test::TemporaryFolder folder;
  const Registry registry = registry_with(save(folder, "mine.pt",
                                               "def forward(self, query, value, causal: bool):\n"
                                               "    return torch.matmul(query, value)\n"));
  const Entry& entry = registry.entry("mine");
  Problem problem;
  problem.length = problem.key_length = 5;
  problem.head_dim = problem.value_dim = 4;
  const auto mechanism = entry.make({}, problem);
  Inputs inputs;
  for (const char* role : {"query", "value"}) inputs.tensors[role] = at::rand({1, 1, 5, 4});
  CHECK_THROWS_WITH(entry.implementations.front().mix(*mechanism, inputs, nullptr),
                    Contains("mine.pt: RuntimeError: ") && Contains("batch2"));
}
