#include "harness/worker/work.hpp"

#include <nlohmann/json.hpp>

#include "attention/conformance/conformance.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using worker::check_conformance;
using Json = nlohmann::json;

namespace {

protocol::Check request(const std::string& implementation, const std::string& dtype) {
  protocol::Check check;
  check.mechanism = "linear";
  check.implementation = implementation;
  check.pattern = "causal";
  check.dtypes = {dtype};
  return check;
}

/// The registry with one more implementation of linear, made from the composite form.
Registry with_implementation(Implementation implementation) {
  Registry registry = Registry::with_builtins();
  implementation.name = "other";
  registry.add_implementation("linear", implementation);
  return registry;
}

Implementation composite() {
  return Registry::with_builtins().entry("linear").implementations.front();
}

}  // namespace

TEST_CASE("check answers with every property of each dtype", "[worker][check]") {
  const Registry registry = Registry::with_builtins();
  protocol::Check asked = request("composite", "float64");
  asked.dtypes = {"float64", "float32"};
  const Json answer = check_conformance(registry, asked);
  CHECK(answer.at("status") == "ok");
  CHECK(answer.at("mechanism") == "linear");
  CHECK(answer.at("properties").size() == 2 * conformance::properties().size());
  for (const Json& property : answer.at("properties")) {
    if (property.at("status") == "held") {
      CHECK(property.at("error").get<double>() <= property.at("tolerance").get<double>());
    } else {
      CHECK(property.at("status") == "not_applicable");
      CHECK_FALSE(property.at("reason").get<std::string>().empty());
    }
  }
}

TEST_CASE("a broken property makes the whole wrong, its reason first", "[worker][check]") {
  Implementation broken = composite();
  const auto mix = broken.mix;
  broken.mix = [mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    mixed.output = mixed.output * 1.1;
    return mixed;
  };
  const Json answer = check_conformance(with_implementation(broken), request("other", "float32"));
  CHECK(answer.at("status") == "wrong");
  CHECK_THAT(answer.at("reason").get<std::string>(), Catch::StartsWith("value_equals_reference"));
}

TEST_CASE("an unsupported property is no failure, and numbers that are not finite stay out",
          "[worker][check]") {
  Implementation refusing = composite();
  refusing.supports = [](const Options&, const Problem&) { return Support::no("needs a GPU"); };
  Json answer = check_conformance(with_implementation(refusing), request("other", "float32"));
  CHECK(answer.at("status") == "unsupported");
  CHECK(answer.at("reason") == "needs a GPU");

  Implementation infinite = composite();
  infinite.mix = [](Mechanism&, const Inputs& inputs, State*) {
    return Mixed{at::full_like(inputs["value"], INFINITY), {}};
  };
  answer = check_conformance(with_implementation(infinite), request("other", "float32"));
  CHECK(answer.at("status") == "wrong");
  CHECK(answer.dump().find("null") == std::string::npos);
  CHECK_FALSE(answer.at("properties").front().contains("error"));
}

TEST_CASE("names that are not known are refused", "[worker][check]") {
  const Registry registry = Registry::with_builtins();
  protocol::Check asked = request("fusd", "float32");
  CHECK_THROWS_AS(check_conformance(registry, asked), UsageError);
  asked = request("composite", "float31");
  CHECK_THROWS_AS(check_conformance(registry, asked), UsageError);
}
