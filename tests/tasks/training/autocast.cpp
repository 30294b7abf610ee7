#include "attention/torch/autocast.hpp"

#include "tasks/training/record.hpp"
#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

ModelOptions narrow() {
  ModelOptions options = comparison();
  options.autocast = Autocast::bfloat16;
  return options;
}

}  // namespace

TEST_CASE("a model learns under autocast", "[autocast]") {
  const RecallData data = small_data();
  const auto model = small_model("softmax", narrow());
  TrainerOptions options = quick();
  options.epochs = 60;
  options.embedding_dropout = 0;
  options.optimiser.learning_rate = 1e-2;
  options.checkpoint_seconds = 1e9;
  Trainer trainer(*model, data, options, nullptr);
  trainer.train();
  const Json half = training_record(*model, data, trainer, 8, 32);
  CHECK(half["metrics"]["train_accuracy"].get<double>() > 0.9);  // as in float32
  // Keys and values of 32 tokens, of two heads of 8, and the convolution's two tokens of 16.
  CHECK(half["training"]["state_bytes"]["mechanism"] == 2 * 32 * 16 * 2);
  CHECK(half["training"]["state_bytes"]["convolution"] == 2 * 16 * 2);
}

TEST_CASE("mixes get bfloat16 in every step and every score, weights stay float32", "[autocast]") {
  const RecallData data = small_data();
  const Entry& entry = registry().entry("softmax");
  std::map<at::ScalarType, int> given;
  Implementation spy = entry.implementations.front();
  spy.mix = [&](Mechanism& mechanism, const Inputs& inputs, State* state) {
    for (const auto& [role, tensor] : inputs.tensors) ++given[tensor.scalar_type()];
    return entry.implementations.front().mix(mechanism, inputs, state);
  };
  Problem problem = small();
  problem.batch = 8;
  problem.length = problem.key_length = 32;
  problem.dtype = Dtype::float32;
  problem.gradient = true;
  ModelOptions options = narrow();
  options.vocabulary = 40;
  const Options chosen = entry.derive(Options::resolve(entry.options, {}), problem);
  Model model(everywhere([&] { return entry.make(chosen, problem); }, spy), options, 1);
  const test::TemporaryFolder folder;
  Checkpoints checkpoints(folder.path(), {{"test", 4}});
  Trainer trainer(model, data, quick(), &checkpoints);
  trainer.train();
  // One mix of three roles in each of 15 steps and, after three epochs, of 3 batches of scores.
  CHECK(given == std::map<at::ScalarType, int>{{at::kBFloat16, 3 * (15 + 3 * 3)}});
  evaluate(model, data, Split::test, 0, 20, 20);
  CHECK(given == std::map<at::ScalarType, int>{{at::kBFloat16, 3 * (15 + 3 * 3 + 1)}});
  const auto kept = checkpoints.load();
  REQUIRE(kept.has_value());
  CHECK(kept->tensors.size() > 30);
  for (const auto& [name, tensor] : kept->tensors) {
    INFO(name);
    CHECK(tensor.scalar_type() == at::kFloat);
  }
  std::vector<std::int64_t> numbers{0, 1, 2};
  const Batch batch = data.questions(Split::test, 0, numbers);
  CHECK(labelled_logits(model, batch).scalar_type() == at::kFloat);
  CHECK(product_type(at::ones({1})) == at::kFloat);  // nothing of it is left behind
}

TEST_CASE("logits under autocast are those of float32, to bfloat16's accuracy", "[autocast]") {
  for (const Mlp mlp : {Mlp::plain, Mlp::gated, Mlp::identity}) {
    for (const char* mechanism : {"softmax", "latte", "luna"}) {
      INFO(mechanism << ", " << to_string(mlp));
      ModelOptions options;
      options.mlp = mlp;
      const auto logits = [&](Autocast autocast) {
        options.autocast = autocast;
        const at::NoGradGuard no_grad;
        const at::Tensor ids = (at::arange(64, at::kLong) * 7).remainder(40).view({2, 32});
        return small_model(mechanism, options)->forward(ids);
      };
      const at::Tensor want = logits(Autocast::off);
      const at::Tensor got = logits(Autocast::bfloat16);
      CHECK(got.scalar_type() == at::kFloat);
      const double error = ((got - want).norm() / want.norm()).item<double>();
      CHECK(error > 1e-5);
      CHECK(error < 3e-2);
    }
  }
}

TEST_CASE("a killed and resumed training under autocast gives the bits of an unbroken one",
          "[autocast]") {
  const auto unbroken = trained("latte", {}, narrow());
  const auto broken = trained("latte", {2, 5, 6, 12}, narrow());
  CHECK(broken.first == unbroken.first);
  CHECK(broken.second == unbroken.second);
  CHECK(unbroken.first != trained("latte", {}).first);
}

TEST_CASE("autocast needs weights in float32, and refuses unknown names", "[autocast]") {
  CHECK_THROWS_WITH(small_model("softmax", narrow(), Dtype::float64),
                    Contains("float64") && Contains("say dtype float32, or autocast off"));
  CHECK_THROWS_WITH(autocast_from("float16"),
                    "autocast must be one of off, bfloat16, not \"float16\"");
}
