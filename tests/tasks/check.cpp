#include "tasks/check.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "attention/layer.hpp"
#include "core/tolerance.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

Problem small_problem(Dtype dtype) {
  Problem problem;
  problem.dtype = dtype;
  problem.batch = 1;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 70;
  problem.head_dim = problem.value_dim = 8;
  return problem;
}

/// Softmax with the output of its composite form changed.
struct Spoiled {
  using Spoil = std::function<at::Tensor(const at::Tensor&)>;

  explicit Spoiled(Spoil spoil, double scale = 1, Dtype dtype = Dtype::float32)
      : registry(Registry::with_builtins()), entry(registry.entry("softmax")) {
    options = Options::resolve(entry.options, {});
    mechanism = entry.make(options, small_problem(dtype));
    const Implementation honest = entry.implementations.front();
    implementation = honest;
    implementation.name = "spoiled";
    implementation.mix = [honest, spoil](Mechanism& m, const Inputs& i, State* s) {
      return Mixed{spoil(honest.mix(m, i, s).output), {}};
    };
    inputs = random_inputs(*mechanism, 5, scale, false);
  }

  tasks::Json check(bool with_gradient = true) {
    return tasks::check_mix({entry, implementation, reference, *mechanism, inputs, 9},
                            with_gradient);
  }

  /// Puts NaN into the first number that the definition returns.
  Spoiled& with_spoilt_reference() {
    reference = [honest = reference](const Options& given, const Problem& problem,
                                     const attnbench::reference::ReferenceInputs& with,
                                     const std::vector<attnbench::reference::RowIndex>& rows) {
      std::vector<double> values = honest(given, problem, with, rows);
      values.front() = std::nan("");
      return values;
    };
    return *this;
  }

  Registry registry;
  Entry entry;
  Options options;
  std::shared_ptr<Mechanism> mechanism;
  Implementation implementation;
  Inputs inputs;
  attnbench::reference::Reference reference = registry.reference("softmax");
};

/// The same values and gradients; its backward pass empties `value`.
struct Emptying : torch::autograd::Function<Emptying> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& y,
                            const at::Tensor& value) {
    context->saved_data["value"] = value;
    return y.clone();
  }
  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          std::vector<at::Tensor> gradients) {
    context->saved_data["value"].toTensor().variable_data().zero_();
    return {gradients[0], at::Tensor()};
  }
};

}  // namespace

TEST_CASE("an honest mix is found right", "[check]") {
  const tasks::Json section = Spoiled([](const at::Tensor& y) { return y; }).check();
  INFO(section.dump());
  CHECK(section["verdict"] == "ok");
  CHECK(section["error"].get<double>() < 1e-6);
  CHECK(section["gradient"]["error"].get<double>() < 1e-6);
}

TEST_CASE("in double the definition's gradient is exact enough for the check", "[check]") {
  // A difference of second order was off by 3e-11 to 2e-10, where 1e-10 is allowed.
  const auto same = [](const at::Tensor& y) { return y; };
  const tasks::Json section = Spoiled(same, 1, Dtype::float64).check();
  INFO(section.dump());
  CHECK(section["verdict"] == "ok");
  CHECK(section["gradient"]["error"].get<double>() < 5e-12);
}

TEST_CASE("values off by a thousandth are found wrong", "[check]") {
  const tasks::Json section = Spoiled([](const at::Tensor& y) { return y * 1.001; }).check(false);
  CHECK(section["verdict"] == "wrong");
  CHECK(section["error"].get<double>() == Approx(1e-3).epsilon(0.01));
  CHECK_FALSE(section["reason"].get<std::string>().empty());
}

TEST_CASE("numbers that are not finite are found wrong, and stay out of the JSON", "[check]") {
  const tasks::Json section =
      Spoiled([](const at::Tensor& y) { return y / at::zeros_like(y); }).check(false);
  CHECK(section["verdict"] == "wrong");
  CHECK(section["reason"].get<std::string>().find("not finite") != std::string::npos);
  CHECK_FALSE(section.contains("error"));
  CHECK(section.dump().find("null") == std::string::npos);
}

TEST_CASE("a reference that is not finite is named as the side that is not", "[check]") {
  const tasks::Json section =
      Spoiled([](const at::Tensor& y) { return y; }).with_spoilt_reference().check(false);
  CHECK(section["verdict"] == "wrong");
  CHECK(section["reason"].get<std::string>().find("its reference returned numbers that are not "
                                                  "finite (1 of ") == 0);
}

TEST_CASE("NaN in a row that is not sampled is found", "[check]") {
  const tasks::Rows sampled = tasks::sampled_rows(small_problem(Dtype::float32), 32, 9);
  const auto spoil = [&](double factor) {
    return [=](const at::Tensor& y) {
      at::Tensor copy = y.clone();
      for (std::int64_t t = 20; t < 60; ++t) {
        const bool looked_at = std::any_of(sampled.begin(), sampled.end(), [&](const auto& row) {
          return row.h == 1 && row.t == t;
        });
        if (looked_at) continue;
        copy[0][1][t].mul_(factor);
        break;
      }
      return copy;
    };
  };
  CHECK(Spoiled(spoil(1)).check(false)["verdict"] == "ok");
  const tasks::Json nan = Spoiled(spoil(std::nan(""))).check(false);
  CHECK(nan["verdict"] == "wrong");
  CHECK(nan["reason"] == "it returned numbers that are not finite: 8 of 1120");
  // A wrong row is found by comparison with the composite form, then compared with the definition.
  const tasks::Json wrong = Spoiled(spoil(1.01)).check(false);
  INFO(wrong.dump());
  CHECK(wrong["verdict"] == "wrong");
  CHECK(wrong["reason"].get<std::string>().find("its row of batch 0, head 1, token") == 0);
}

TEST_CASE("an output of another dtype is found wrong, both named", "[check]") {
  const tasks::Json section =
      Spoiled([](const at::Tensor& y) { return y.to(at::kDouble); }).check();
  CHECK(section["verdict"] == "wrong");
  CHECK(section["reason"] == "softmax/spoiled returned an output of float64, expected float32");
}

TEST_CASE("inputs changed in place are found, though the values match them", "[check]") {
  Spoiled spoiled([](const at::Tensor& y) { return y; });
  const auto honest = spoiled.implementation.mix;
  for (const char* role : {"query", "value"}) {
    spoiled.implementation.mix = [=](Mechanism& mechanism, const Inputs& inputs, State* state) {
      at::Tensor(inputs[role]).detach().mul_(0.5);
      return honest(mechanism, inputs, state);
    };
    const tasks::Json section = spoiled.check(false);
    CHECK(section["verdict"] == "wrong");
    CHECK(section["reason"] == std::string("it changed its input \"") + role + "\" in place");
  }
}

TEST_CASE("inputs that are changed in the backward pass are found", "[check]") {
  Spoiled spoiled([](const at::Tensor& y) { return y; });
  const auto honest = spoiled.implementation.mix;
  spoiled.implementation.mix = [=](Mechanism& mechanism, const Inputs& inputs, State* state) {
    return Mixed{Emptying::apply(honest(mechanism, inputs, state).output, inputs["value"]), {}};
  };
  CHECK(spoiled.check(false)["verdict"] == "ok");
  const tasks::Json section = spoiled.check();
  INFO(section.dump());
  CHECK(section["verdict"] == "wrong");
  CHECK(section["reason"] == "its backward pass changed the input \"value\" in place");
}

TEST_CASE("values flushed to zero are found, whatever the mode of this process", "[check]") {
  Spoiled honest([](const at::Tensor& y) { return y; });
  honest.inputs.tensors.at("value").mul_(1e-40);
  REQUIRE(honest.inputs["value"].abs().max().item<float>() > 0);
  CHECK(honest.check(false)["verdict"] == "ok");
  Spoiled flushing([](const at::Tensor& y) { return at::zeros_like(y); });
  flushing.inputs.tensors.at("value").mul_(1e-40);
  CHECK(flushing.check(false)["verdict"] == "wrong");
  REQUIRE(at::globalContext().setFlushDenormal(true));
  const tasks::Json section = flushing.check(false);
  at::globalContext().setFlushDenormal(false);
  CHECK(section["verdict"] == "wrong");
}

TEST_CASE("right values with a wrong gradient are found wrong", "[check]") {
  // The value of y, the gradient of 1.01 y.
  const auto spoil = [](const at::Tensor& y) { return y + 0.01 * (y - y.detach()); };
  const tasks::Json section = Spoiled(spoil).check();
  INFO(section.dump());
  CHECK(section["verdict"] == "wrong");
  CHECK(section["reason"].get<std::string>().find("gradient") != std::string::npos);
  const tasks::Json cut =
      Spoiled([](const at::Tensor& y) { return 0.5 * y + 0.5 * y.detach(); }).check();
  CHECK(cut["verdict"] == "wrong");
}

TEST_CASE("a gradient that is wrong in one role is found, however small beside the others",
          "[check]") {
  // The values are right, and the key's gradient is off by a hundredth, or missing. With small
  // inputs it is a thousandth of the value's.
  for (const double scale : {1.0, 0.03}) {
    for (const double share : {0.01, -1.0}) {
      Spoiled spoiled([](const at::Tensor& y) { return y; }, scale);
      const Implementation honest = spoiled.entry.implementations.front();
      spoiled.implementation.mix = [=](Mechanism& mechanism, const Inputs& inputs, State* state) {
        Inputs own = inputs;
        at::Tensor& key = own.tensors.at("key");
        key = key + share * (key - key.detach());
        return honest.mix(mechanism, own, state);
      };
      const tasks::Json section = spoiled.check();
      INFO(scale << " " << share << " " << section.dump());
      CHECK(section["verdict"] == "wrong");
      CHECK(section["gradient"]["roles"]["key"].get<double>() > 0.001);
    }
  }
}

TEST_CASE("inputs that the output does not depend on have gradients of exactly zero", "[check]") {
  Spoiled alone([](const at::Tensor& y) { return y; });
  alone.implementation.mix = [](Mechanism&, const Inputs& inputs, State*) {
    return Mixed{inputs["value"].sin(), {}};
  };
  alone.reference = [](const Options&, const Problem& problem,
                       const attnbench::reference::ReferenceInputs& with,
                       const std::vector<attnbench::reference::RowIndex>& rows) {
    std::vector<double> out;
    for (const auto& [b, h, t] : rows) {
      const std::int64_t row = (b * problem.heads + h) * problem.length + t;
      for (std::int64_t d = 0; d < problem.value_dim; ++d) {
        const auto place = static_cast<std::size_t>(row * problem.value_dim + d);
        out.push_back(std::sin(with.roles.at("value").values[place]));
      }
    }
    return out;
  };
  const tasks::Json section = alone.check();
  INFO(section.dump());
  CHECK(section["verdict"] == "ok");
  CHECK(section["gradient"]["roles"]["key"] == 0);
}

TEST_CASE("a gradient with cancellation is compared with another form", "[check]") {
  // With nearly equal keys the queries' gradient is a ten-thousandth of the terms that are added:
  // their float rounding exceeds the plain tolerance.
  const auto almost_one_key = [](Spoiled& spoiled) {
    at::Tensor& keys = spoiled.inputs.tensors.at("key");
    keys = at::ones_like(keys) + 1e-4 * keys;
  };
  Spoiled honest([](const at::Tensor& y) { return y.clone(); });
  almost_one_key(honest);
  const tasks::Json section = honest.check();
  INFO(section.dump());
  CHECK(section["verdict"] == "ok");
  const tasks::Json& gradient = section["gradient"];
  CHECK(gradient["error"].get<double>() > tolerance(Dtype::float32).gradient);
  CHECK(gradient["tolerance"].get<double>() == Approx(2 * gradient["naive_error"].get<double>()));
  CHECK(gradient["exact_error"].get<double>() < 1e-5);

  // The value of y, the gradient of 1.01 y or 1.0005 y: cancellation in one role must not excuse
  // the others.
  for (const double share : {0.01, 0.0005}) {
    Spoiled wrong([=](const at::Tensor& y) { return y + share * (y - y.detach()); });
    almost_one_key(wrong);
    const tasks::Json found = wrong.check();
    INFO(found.dump());
    CHECK(found["verdict"] == "wrong");
    CHECK(found["gradient"]["tolerance"] == tolerance(Dtype::float32).gradient);
  }
}

TEST_CASE("the rounding error grows with the inputs", "[check]") {
  const auto checked = [](double scale) -> tasks::Json {
    Spoiled honest([](const at::Tensor& y) { return y; }, scale);
    const tasks::MixCase mix{honest.entry,      honest.implementation, honest.reference,
                             *honest.mechanism, honest.inputs,         9};
    const at::Tensor output =
        honest.implementation.mix(*honest.mechanism, honest.inputs, nullptr).output;
    const tasks::Rows rows = tasks::sampled_rows(mix.problem(), 32, 9);
    return tasks::check_rows(mix, mix.problem(), rows, tasks::rows_of(output, rows));
  };
  const tasks::Json calm = checked(1), wild = checked(6);
  INFO(calm.dump() << wild.dump());
  CHECK(calm["tolerance"] == 1e-5);
  CHECK(wild["rounding_error"].get<double>() > 2 * calm["rounding_error"].get<double>());
  CHECK(wild["verdict"] == "ok");
}

TEST_CASE("what is only held to a tolerance as wide as itself is unchecked", "[check]") {
  // A definition that says something else each time excuses any output.
  std::mt19937_64 random(3);
  const reference::Reference drawn = [&](const Options&, const Problem& problem, const auto&,
                                         const std::vector<reference::RowIndex>& rows) {
    std::normal_distribution<double> normal;
    std::vector<double> out(rows.size() * static_cast<std::size_t>(problem.value_dim));
    for (double& one : out) one = normal(random);
    return out;
  };
  Spoiled spoiled([](const at::Tensor& y) { return at::randn_like(y); });
  const tasks::Json section =
      tasks::check_mix({spoiled.entry, spoiled.entry.implementations.front(), drawn,
                        *spoiled.mechanism, spoiled.inputs, 9},
                       false);
  INFO(section.dump());
  CHECK(section["verdict"] == "unchecked");
  CHECK(section["reason"].get<std::string>().find("cannot be checked: the definition itself") == 0);
}

TEST_CASE("values that cancel, or that the dtype cannot hold, are no error", "[check]") {
  // The output is the difference of two values that are equal but for their last digits.
  Spoiled spoiled([](const at::Tensor& y) { return y; });
  const reference::Reference cancelling = [](const Options&, const Problem& problem,
                                             const reference::ReferenceInputs& inputs,
                                             const std::vector<reference::RowIndex>& rows) {
    std::vector<double> out;
    for (const auto& [b, h, t] : rows) {
      const reference::Array& value = inputs.roles.at("value");
      for (std::int64_t d = 0; d < problem.value_dim; ++d) {
        out.push_back(value.row(b, h, t)[d] - value.row(b, h, 0)[d]);
      }
    }
    return out;
  };
  const at::Tensor value = spoiled.inputs["value"];
  value.copy_(at::randn({1, 2, 1, 8}) + 1e-9 * at::randn_like(value));
  const auto found = [&](double off, const reference::Reference& reference) -> tasks::Json {
    Implementation implementation = spoiled.entry.implementations.front();
    implementation.mix = [off](Mechanism&, const Inputs& inputs, State*) {
      return Mixed{off * at::randn_like(inputs["value"]), {}};
    };
    return tasks::check_mix(
        {spoiled.entry, implementation, reference, *spoiled.mechanism, spoiled.inputs, 9}, false);
  };
  CHECK(found(1e-7, cancelling)["verdict"] == "ok");
  CHECK(found(1e-3, cancelling)["verdict"] == "unchecked");
  const reference::Reference tiny = [&](const auto&... call) {
    std::vector<double> out = cancelling(call...);
    for (double& one : out) one = 1e-81;
    return out;
  };
  CHECK(found(0, tiny)["verdict"] == "ok");
  CHECK(found(1e-3, tiny)["verdict"] == "wrong");
}

TEST_CASE("a gradient beside a kink is not called wrong", "[check]") {
  const Registry registry = Registry::with_builtins();
  const Entry entry = registry.entry("performer");
  Problem problem = small_problem(Dtype::float32);
  problem.pattern = Pattern::bidirectional;
  const Options options = entry.derive(
      Options::resolve(entry.options,
                       {{"kernel", std::string("relu")}, {"projection", std::string("none")}}),
      problem);
  const std::shared_ptr<Mechanism> mechanism = entry.make(options, problem);
  Inputs inputs = random_inputs(*mechanism, 5, 1, false);
  // Above the kink by less than a difference of 1e-5 reaches, and by more than one of 1e-7.
  inputs.tensors["key"].slice(2, 0, 40).fill_(1e-6);
  const auto check = [&](double share) -> tasks::Json {
    Implementation implementation = entry.implementations.front();
    const auto mix = implementation.mix;
    implementation.mix = [mix, share](Mechanism& m, const Inputs& i, State* s) {
      const at::Tensor y = mix(m, i, s).output;
      return Mixed{y + share * (y - y.detach()), {}};
    };
    return tasks::check_mix(
        {entry, implementation, registry.reference("performer"), *mechanism, inputs, 9}, true);
  };
  const tasks::Json honest = check(0);
  INFO(honest.dump());
  CHECK(honest["verdict"] == "ok");
  CHECK(check(0.01)["verdict"] == "wrong");
}
