// The setting `lengths`: a batch of sequences of several lengths, padded and masked.
#include "tasks/ragged.hpp"

#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Contains;

namespace {

Settings ragged_call(const Settings& more = {}) {
  return with({{"lengths", s("20+96+51")},
               {"batch", n(3)},
               {"length", n(96)},
               {"heads", n(2)},
               {"head_dim", n(16)}},
              more);
}

tasks::TaskForecast ragged_forecast(const char* mechanism, const Settings& settings,
                                    const char* implementation = "composite") {
  const auto cell = make_cell("kernel", mechanism, implementation, settings);
  return tasks::find_task("kernel").forecast(registry(), cell);
}

Ran ragged_run(const Registry& registry, const std::string& mechanism, const Settings& more) {
  return run_cell(registry, "kernel", make_cell("kernel", mechanism, "auto", ragged_call(more)));
}

std::string ragged_refusal(const Settings& more) {
  try {
    ragged_forecast("softmax", ragged_call(more));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every mechanism mixes a ragged batch, checked on the sequences' own rows",
          "[kernel][ragged]") {
  for (const std::string& name : registry().mechanisms()) {
    for (const char* pattern : {"causal", "bidirectional"}) {
      for (const char* pass : {"forward", "forward+backward"}) {
        INFO(name << " " << pattern << " " << pass);
        const Settings settings = ragged_call({{"pattern", s(pattern)}, {"pass", s(pass)}});
        if (!ragged_forecast(name.c_str(), settings, "auto").support) continue;
        const Ran ran = run_cell(registry(), "kernel", make_cell("kernel", name, "auto", settings));
        INFO(ran.check.dump() << "\n" << ran.sections["timed_check"].dump());
        CHECK(ran.check["verdict"] == "ok");
        CHECK(ran.check["rows"].get<int>() >= 8);  // up to 32, in 0.25 s
        CHECK(ran.sections["timed_check"]["verdict"] == "ok");
        CHECK(ran.sections["metrics"]["real_tokens"] == 20 + 96 + 51);
        CHECK(ran.sections["metrics"]["executed_tokens"] == 3 * 96);
      }
    }
  }
}

TEST_CASE("projections and whole models take a ragged batch", "[kernel][ragged]") {
  for (const char* scope : {"projected", "layer", "model"}) {
    for (const char* pattern : {"causal", "bidirectional"}) {
      INFO(scope << " " << pattern);
      const Ran ran = ragged_run(
          registry(), "softmax",
          {{"scope", s(scope)}, {"pattern", s(pattern)}, {"pass", s("forward+backward")}});
      INFO(ran.check.dump() << "\n" << ran.sections["timed_check"].dump());
      CHECK(ran.check["verdict"] == "ok");
      CHECK(ran.sections["timed_check"]["verdict"] == "ok");
    }
  }
}

TEST_CASE("the work of a ragged batch is that of its tokens, and it executes the padded one",
          "[kernel][ragged]") {
  const Settings padded = with(ragged_call(), {{"lengths", s("")}});
  for (const char* mechanism : {"softmax", "latte", "performer"}) {
    for (const char* scope : {"mix", "layer", "model"}) {
      INFO(mechanism << " " << scope);
      const Settings more{{"scope", s(scope)}, {"pass", s("forward+backward")}};
      const Cost whole = ragged_forecast(mechanism, with(padded, more)).cost;
      const Cost cost = ragged_forecast(mechanism, with(ragged_call(), more)).cost;
      double flops = 0;
      double bytes = 0;
      for (const std::int64_t length : {20, 96, 51}) {
        const Settings alone{{"lengths", s("")}, {"batch", n(1)}, {"length", n(length)}};
        const Cost one = ragged_forecast(mechanism, with(with(ragged_call(), more), alone)).cost;
        flops += one.model_flops;
        bytes += one.minimal_bytes;
      }
      CHECK(cost.model_flops == Approx(flops));
      CHECK(cost.model_flops < whole.model_flops);
      CHECK(cost.executed_flops == whole.executed_flops);
      CHECK(cost.workspace_bytes == whole.workspace_bytes);
      // Weights are read once for the batch, and once by each sequence alone.
      const bool has_weights = std::string(scope) != "mix" || std::string(mechanism) == "performer";
      CHECK(cost.minimal_bytes < whole.minimal_bytes);
      if (has_weights) {
        CHECK(cost.minimal_bytes < bytes);
      } else {
        CHECK(cost.minimal_bytes == Approx(bytes));
      }
    }
  }
  CHECK(ragged_forecast("softmax", ragged_call()).peak_bytes ==
        ragged_forecast("softmax", padded).peak_bytes);
  // Equal sequences are an ordinary batch.
  const Settings equal = with(padded, {{"lengths", s("3x96")}});
  CHECK(ragged_forecast("softmax", equal).cost.model_flops ==
        Approx(ragged_forecast("softmax", padded).cost.model_flops));
}

TEST_CASE("a mix that does not see the mask is wrong, and padding is no row", "[kernel][ragged]") {
  const Registry blind = with_changed_softmax(
      "blind", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Inputs unmasked = inputs;
        unmasked.key_mask.reset();
        return mix(mechanism, unmasked, state);
      });
  CHECK(ragged_run(blind, "blind", {{"pattern", s("bidirectional")}}).check["verdict"] == "wrong");
  // Padding stands behind the tokens, which causal rows do not see.
  CHECK(ragged_run(blind, "blind", {}).check["verdict"] == "ok");
  const Registry careless = with_changed_softmax(
      "careless", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Mixed mixed = mix(mechanism, inputs, state);
        mixed.output[0].narrow(1, 20, 96 - 20).fill_(7);
        return mixed;
      });
  const Ran ran = ragged_run(careless, "careless", {});
  CHECK(ran.check["verdict"] == "ok");
  CHECK(ran.sections["timed_check"]["verdict"] == "ok");
}

TEST_CASE("a mechanism that takes no mask is unsupported, with its reason", "[kernel][ragged]") {
  const Registry maskless = with_changed_softmax(
      "maskless", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        if (inputs.key_mask.defined()) throw UnsupportedError("maskless: it takes no key_mask");
        return mix(mechanism, inputs, state);
      });
  CHECK_THROWS_AS(ragged_run(maskless, "maskless", {}), UnsupportedError);
  // Nothing is padded here.
  CHECK(ragged_run(maskless, "maskless", {{"lengths", s("3x96")}}).check["verdict"] == "ok");
}

TEST_CASE("lengths that go with nothing else that is said are refused", "[kernel][ragged]") {
  CHECK_THAT(ragged_refusal({{"batch", n(4)}}),
             Contains("batch 4 disagree; expected batch 3, the number of sequences"));
  CHECK_THAT(ragged_refusal({{"length", n(100)}}),
             Contains("length 100 disagree; expected length 96, the longest sequence"));
  CHECK_THAT(ragged_refusal({{"lengths", s("20+0+96")}}), Contains("0 is no length"));
  CHECK_THAT(ragged_refusal({{"lengths", s("20+-1+96")}}), Contains("-1 is no length"));
  CHECK_THAT(ragged_refusal({{"pattern", s("cross")}, {"key_length", n(96)}}),
             Contains("the pattern cross has keys of others"));
}

TEST_CASE("padding stands after what is read whole, and before what is continued", "[ragged]") {
  const auto row = [](const at::Tensor& mask, std::int64_t b) {
    std::string text;
    for (std::int64_t t = 0; t < mask.size(1); ++t) text += mask[b][t].item<bool>() ? '1' : '0';
    return text;
  };
  const std::vector<std::int64_t> lengths{2, 4, 1};
  const at::Tensor after = tasks::real_tokens(lengths, 4, tasks::Padding::after, "cpu");
  CHECK(row(after, 0) + " " + row(after, 1) + " " + row(after, 2) == "1100 1111 1000");
  const at::Tensor before = tasks::real_tokens(lengths, 6, tasks::Padding::before, "cpu");
  CHECK(row(before, 0) + " " + row(before, 1) + " " + row(before, 2) == "001111 111111 000111");
  CHECK_FALSE(tasks::real_tokens({4, 4}, 4, tasks::Padding::after, "cpu").defined());
  CHECK_FALSE(tasks::real_tokens({}, 4, tasks::Padding::after, "cpu").defined());
}
