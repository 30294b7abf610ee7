// Mechanisms that are right in the check and wrong in timed calls.
#include <chrono>
#include <memory>
#include <thread>

#include "tasks/call/timed_call.hpp"
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Contains;

namespace {

/// State of a cheat between calls.
struct Memory {
  int calls = 0;
  std::map<const void*, at::Tensor> kept;
};

/// A registry with softmax/composite wrapped in `cheat`, as cheating/cheating.
Registry cheating(const std::function<at::Tensor(const Mix&, Mechanism&, const Inputs&)>& cheat) {
  Registry registry = Registry::with_builtins();
  Entry entry = registry.entry("softmax");
  entry.name = "cheating";
  entry.aliases.clear();
  Implementation own = entry.implementations.front();
  entry.implementations.resize(1);
  const Mix honest = own.mix;
  own.name = "cheating";
  own.rank = 1000;
  own.mix = [=](Mechanism& mechanism, const Inputs& inputs, State*) {
    return Mixed{cheat(honest, mechanism, inputs), {}};
  };
  entry.implementations.push_back(own);
  registry.add(entry, registry.reference("softmax"));
  return registry;
}

struct Found {
  test::Json check;
  test::Json timed;
};

Found found(const Registry& registry, const Settings& more = {}, int round = 0) {
  const auto cell =
      make_cell("kernel", "cheating", "cheating",
                with({{"length", n(48)}, {"heads", n(2)}, {"head_dim", n(16)}}, more));
  const Ran ran = run_cell(registry, "kernel", cell, round);
  return {ran.check, ran.sections["timed_check"]};
}

void require_wrong(const Found& cheat, const std::string& reason) {
  INFO(cheat.check.dump() << "\n" << cheat.timed.dump());
  CHECK(cheat.timed["verdict"] == "wrong");
  CHECK_THAT(cheat.timed["reason"].get<std::string>(), Contains(reason));
}

const char* const passes[] = {"forward", "backward", "forward+backward"};

using SpoilGradient = std::function<at::Tensor(const at::Tensor&)>;

/// The same values, with a gradient changed by *spoil, which must outlive the pass.
struct Spoiling : torch::autograd::Function<Spoiling> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& y,
                            const SpoilGradient* spoil) {
    context->saved_data["spoil"] = reinterpret_cast<std::int64_t>(spoil);
    return y.clone();
  }
  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          std::vector<at::Tensor> gradients) {
    const auto* spoil =
        reinterpret_cast<const SpoilGradient*>(context->saved_data["spoil"].toInt());
    return {(*spoil)(gradients[0]), at::Tensor()};
  }
};

}  // namespace

TEST_CASE("an honest mechanism is right in timed calls", "[cheats]") {
  const Registry honest = cheating([](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
    return mix(mechanism, inputs, nullptr).output;
  });
  for (const char* pass : passes) {
    for (const char* scope : {"mix", "projected", "layer"}) {
      for (const int round : {0, 3}) {
        const Found ran = found(honest, {{"pass", s(pass)}, {"scope", s(scope)}}, round);
        INFO(pass << " " << scope << " " << ran.timed.dump());
        CHECK(ran.timed["verdict"] == "ok");
        CHECK(ran.timed["rows"].get<int>() >= 5);  // 4, and one for each input that is renewed
        CHECK_FALSE(ran.timed.contains("skipped"));
      }
    }
  }
  for (const Settings& more :
       {Settings{{"pattern", s("bidirectional")}},
        Settings{{"pattern", s("cross")}, {"key_length", n(40)}}, Settings{{"kv_heads", n(1)}},
        Settings{{"dtype", s("float64")}}, Settings{{"dtype", s("bfloat16")}},
        Settings{{"input_scale", 15.0}}, Settings{{"length", n(1)}},
        Settings{{"scope", s("model")}, {"layers", n(2)}, {"vocabulary", n(64)}}}) {
    const Found ran = found(honest, more);
    INFO(more.begin()->first << " " << ran.check.dump() << " " << ran.timed.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.timed["verdict"] == "ok");
  }
}

TEST_CASE("an output kept from an earlier call is found", "[cheats]") {
  for (const char* pass : passes) {
    for (const char* pattern : {"causal", "bidirectional"}) {
      const auto memory = std::make_shared<Memory>();
      const Registry registry =
          cheating([memory](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
            at::Tensor& kept = memory->kept[inputs["query"].data_ptr()];
            const at::Tensor output = mix(mechanism, inputs, nullptr).output;
            if (!kept.defined()) kept = output.detach();
            return kept + (output - output.detach());  // with a right gradient
          });
      INFO(pass << " " << pattern);
      require_wrong(found(registry, {{"pass", s(pass)}, {"pattern", s(pattern)}}), "differ");
    }
  }
}

TEST_CASE("a mechanism that is right in its first calls only is found", "[cheats]") {
  for (const char* scope : {"mix", "projected", "layer"}) {
    const auto memory = std::make_shared<Memory>();
    const Registry registry =
        cheating([memory](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
          const at::Tensor output = mix(mechanism, inputs, nullptr).output;
          return ++memory->calls <= 2 ? output : at::zeros_like(output);
        });
    INFO(scope);
    const Found cheat = found(registry, {{"scope", s(scope)}});
    CHECK(cheat.check["verdict"] == "ok");
    require_wrong(cheat, "in a timed call its values differ from the reference");
  }
}

TEST_CASE("a wrong row or NaN anywhere in a timed call is found", "[cheats]") {
  for (const double factor : {1.5, std::nan("")}) {
    const auto memory = std::make_shared<Memory>();
    const Registry registry =
        cheating([=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
          const at::Tensor output = mix(mechanism, inputs, nullptr).output.clone();
          if (++memory->calls > 2) output[0][1][37].mul_(factor);
          return output;
        });
    Found cheat = found(registry);
    CHECK(cheat.check["verdict"] == "ok");
    // On a busy core a round has time for a part of the rows, and each round takes other rows.
    for (int round = 1; round < 20 && cheat.timed["verdict"] == "ok"; ++round) {
      cheat = found(registry, {}, round);
    }
    require_wrong(cheat, factor > 1 ? "differ from the reference" : "not finite: 16 of 1536");
  }
}

TEST_CASE("inputs changed in timed calls are named", "[cheats]") {
  const auto memory = std::make_shared<Memory>();
  const Registry registry =
      cheating([memory](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
        const at::Tensor output = mix(mechanism, inputs, nullptr).output;
        if (++memory->calls > 2) at::Tensor(inputs["key"])[0][1][3][0].add_(1);
        return output;
      });
  require_wrong(found(registry), "a timed call changed its input \"key\" in place");
}

TEST_CASE("an output that another thread fills in later is found", "[cheats]") {
  const Registry registry =
      cheating([](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
        const at::Tensor right = mix(mechanism, inputs, nullptr).output;
        const at::Tensor output = at::zeros_like(right);
        std::thread([output, right] {
          std::this_thread::sleep_for(std::chrono::milliseconds(4));
          at::Tensor(output).copy_(right);
        }).detach();
        return output;
      });
  // On a busy core the thread may write before the check looks, or too late for it to see.
  const auto is_found = [](const test::Json& section) {
    return section.value("verdict", "") == "wrong" &&
           section["reason"].get<std::string>().find("after the call had returned") !=
               std::string::npos;
  };
  bool first = false;
  bool later = false;
  for (int i = 0; i < 20 && !first; ++i) first = is_found(found(registry).check);
  for (int i = 0; i < 20 && !later; ++i) later = is_found(found(registry, {}, 1).timed);
  CHECK(first);
  CHECK(later);
}

TEST_CASE("another dtype in timed calls is named", "[cheats]") {
  const auto memory = std::make_shared<Memory>();
  const Registry registry =
      cheating([memory](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
        const at::Tensor output = mix(mechanism, inputs, nullptr).output;
        return ++memory->calls > 2 ? output.to(at::kDouble) : output;
      });
  const Found cheat = found(registry);
  CHECK(cheat.check["verdict"] == "ok");
  require_wrong(cheat, "an output of float64, expected float32");
}

TEST_CASE("a gradient kept from an earlier pass is found, and one right in the first passes only",
          "[cheats]") {
  for (const char* pass : {"backward", "forward+backward"}) {
    for (const bool keeps : {true, false}) {
      const auto memory = std::make_shared<Memory>();
      const SpoilGradient spoil = [=](const at::Tensor& gradient) {
        ++memory->calls;
        if (!keeps) return memory->calls <= 2 ? gradient : gradient * 1.5;
        at::Tensor& kept = memory->kept[gradient.data_ptr()];
        if (!kept.defined()) kept = gradient.clone();
        return kept;
      };
      const Registry registry =
          cheating([&spoil](const Mix& mix, Mechanism& mechanism, const Inputs& inputs) {
            return Spoiling::apply(mix(mechanism, inputs, nullptr).output, &spoil);
          });
      const Found cheat = found(registry, {{"pass", s(pass)}});
      INFO(pass << " " << keeps << " " << cheat.check.dump() << " " << cheat.timed.dump());
      CHECK(cheat.check["verdict"] == "ok");
      CHECK(cheat.timed["verdict"] == "wrong");
      CHECK_THAT(cheat.timed["reason"].get<std::string>(), Contains("gradient"));
    }
  }
}

TEST_CASE("where copies do not fit, the check of timed calls is reported as skipped", "[cheats]") {
  worker::install_counting_allocator();
  const auto cell = make_cell("kernel", "softmax", "composite",
                              {{"length", n(96)}, {"heads", n(2)}, {"head_dim", n(16)}});
  const tasks::TaskForecast forecast = tasks::find_task("kernel").forecast(registry(), cell);
  tasks::call::TimedCall timed_call(registry(), cell, forecast,
                                    tasks::call::settings_from(cell.settings));
  timed_call.prepare(1);
  worker::set_memory_limit(worker::cpu_memory().live_bytes() + 1024);
  const tasks::Body body = timed_call.body();
  worker::set_memory_limit(0);
  body.refresh();
  body.call();
  const test::Json found = timed_call.timed_check(1, 0);
  CHECK(found["verdict"] == "ok");
  CHECK(found["skipped"] == "copies of its inputs did not fit in memory");
}
