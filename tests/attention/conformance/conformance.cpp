#include "attention/conformance/conformance.hpp"

#include <algorithm>
#include <stdexcept>

#include "attention/registry.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/attention/mutants.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"
#include "tests/support/tier.hpp"

using namespace attnbench;
using conformance::Finding;
using conformance::PropertyOutcome;
using test::at_night;
using test::count;
using test::registry;
using test::word;

namespace {

Finding finding_of(const Entry& entry, const Implementation& implementation,
                   const test::Mutant& mutant) {
  conformance::CheckOptions options;
  options.only = {mutant.property};
  return conformance::check(entry, registry().reference(mutant.mechanism), implementation,
                            mutant.pattern, mutant.dtype, options)
      .front();
}

std::string described(const Finding& finding) {
  return std::string(finding.property) + " " + conformance::to_string(finding.status) + ": " +
         finding.reason;
}

/// On a busy machine threads that wait for one another burn time that is not the kit's.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int threads_;
};

/// Which implementations of tensor operations alone take part: composite, scan.
enum class Plain { none, composite, all };

bool takes_part(const Implementation& implementation, Plain plain) {
  if (implementation.name == "composite") return plain != Plain::none;
  return implementation.name != "scan" || plain == Plain::all;
}

/// The property that calls the definition some fifty times.
constexpr const char* slopes = "gradient_equals_finite_differences";

void leave_out_slopes(conformance::CheckOptions& options) {
  if (options.only.empty()) {
    for (const auto& property : conformance::properties()) options.only.push_back(property.name);
  }
  std::erase(options.only, slopes);
}

/// Each implementation that takes part, in each pattern; returns how many properties held. By day
/// slopes are those of the composite form alone, to which `equals_composite` holds the gradients of
/// the others.
int check_entry(const std::string& name, Dtype dtype, const conformance::CheckOptions& asked,
                Plain plain) {
  const Entry& entry = registry().entry(name);
  int held = 0;
  for (const Implementation& implementation : entry.implementations) {
    if (!takes_part(implementation, plain)) continue;
    const bool composite = &implementation == &entry.implementations.front();
    conformance::CheckOptions options = asked;
    if (!composite && !at_night()) leave_out_slopes(options);
    for (const Pattern pattern : entry.patterns) {
      INFO(name << " " << implementation.name << " " << to_string(pattern) << " "
                << to_string(dtype));
      for (const Finding& finding : conformance::check(entry, registry().reference(name),
                                                       implementation, pattern, dtype, options)) {
        INFO(described(finding));
        CHECK(finding.status != PropertyOutcome::broken);
        held += finding.status == PropertyOutcome::held ? 1 : 0;
      }
    }
  }
  return held;
}

/// By day plain implementations are left out in the narrow dtypes, which they have from LibTorch,
/// and scan where options are chosen, unless no other has properties.
void check_some_hold(const std::string& name, Dtype dtype,
                     const conformance::CheckOptions& options = {}) {
  Plain plain = options.options.empty() ? Plain::all : Plain::composite;
  if (dtype != Dtype::float64) plain = Plain::none;
  if (at_night()) plain = Plain::all;
  int held = check_entry(name, dtype, options, plain);
  if (held == 0 && plain != Plain::all) held = check_entry(name, dtype, options, Plain::all);
  CHECK(held > 0);
}

void check_all(Dtype dtype) {
  const OneThread alone;
  for (const auto& name : registry().mechanisms()) {
    check_some_hold(name, dtype);
  }
}

using Values = std::map<std::string, OptionValue>;

/// Options other than the defaults, and which properties they are put through: what they change, so
/// that all of this takes less time than the defaults.
struct Variant {
  std::string mechanism;
  Values options;
  std::vector<std::string> only;  ///< empty = all
};

/// The properties in which an option that changes what is computed can be wrong.
const std::vector<std::string>& of_numbers() {
  static const std::vector<std::string> names{"value_equals_reference", slopes, "equals_composite",
                                              "step_equals_full", "padding"};
  return names;
}

/// Options with which a mechanism computes something else, beside aliases and the option `output`.
std::vector<Variant> choices() {
  const std::vector<std::string> steps{"value_equals_reference", "step_equals_full"};
  const std::vector<std::string> small{"value_equals_reference", "adversarial", "equals_composite"};
  return {
      {"cosformer", {{"maximum_length", count(37)}}, of_numbers()},
      {"delta", {{"beta_limit", count(2)}}, of_numbers()},
      {"delta", {{"gate", word("scalar")}, {"beta_limit", count(2)}}, of_numbers()},
      {"delta", {{"gate", word("channel")}, {"beta_limit", count(2)}}, of_numbers()},
      {"fox", {{"query_chunk", count(7)}, {"key_chunk", count(5)}}, of_numbers()},
      {"fox", {{"scale", 0.7}}, of_numbers()},
      {"gla", {{"gate_temperature", 1.0}}, of_numbers()},
      {"hgrn2", {{"lower_bound", 0.75}}, of_numbers()},
      {"latte", {{"vapor", true}, {"rotary_base", 50.0}}, of_numbers()},
      {"latte", {{"logit_scale", 0.3}}, {"value_equals_reference", "equals_composite"}},
      {"lavo", {{"empty_global", word("local")}, {"relative_bias", false}}, of_numbers()},
      {"lavo", {{"empty_global", word("local")}, {"basis", word("full")}}, of_numbers()},
      {"lavo", {{"basis", word("full")}, {"scale", 0.7}}, of_numbers()},
      {"lavo", {{"form", word("undissected")}, {"relative_bias", false}}, of_numbers()},
      {"lavo", {{"form", word("undissected")}, {"window", Window{0, 0}}}, steps},
      {"lavo", {{"window", Window{0, 0}}}, steps},
      {"lavo", {{"window", Window{60, 0}}}, of_numbers()},
      {"linear", {{"feature", word("exp")}}, {}},
      {"linear", {{"feature", word("hedgehog")}}, {}},
      // A row of weights that are all 0 sums to 0.
      {"linear", {{"feature", word("relu")}}, of_numbers()},
      {"linear", {{"feature", word("polynomial")}}, of_numbers()},
      {"linear", {{"feature", word("taylor2")}}, of_numbers()},
      // Its spread follows from the positions, and without max_length those are the keys.
      {"linformer",
       {{"share_kv", true}, {"init", word("lecun_normal")}, {"max_length", count(300)}},
       of_numbers()},
      {"linformer", {{"per_head", true}, {"max_length", count(300)}, {"scale", 0.7}}, of_numbers()},
      {"longshort", {{"segment", count(5)}, {"projected_length", count(3)}}, {}},
      {"longshort", {{"segment", count(5)}, {"norm", word("none")}}, of_numbers()},
      {"longshort", {{"segment", count(5)}, {"window", Window{0, 0}}}, steps},
      {"longshort", {{"segment", count(5)}, {"window", Window{9, 0}}}, steps},
      {"luna", {{"tied", false}}, of_numbers()},
      {"luna", {{"tied", false}, {"dynamic_slots", false}}, of_numbers()},
      {"luna", {{"dynamic_slots", false}}, of_numbers()},
      {"luna", {{"activation", word("elu1")}}, of_numbers()},
      {"luna", {{"activation", word("latte_composed")}}, of_numbers()},
      {"macchiato",
       {{"rotary", true}, {"vapor", true}, {"scale", 0.7}, {"logit_scale", 1.3}},
       of_numbers()},
      {"mamba", {{"state", count(1)}, {"chunk", count(7)}}, of_numbers()},
      {"mamba", {{"step_rank", count(3)}}, of_numbers()},
      {"mamba", {{"selective", false}, {"output", word("gated")}}, of_numbers()},
      {"mamba", {{"selective", false}, {"turning", word("inverse")}}, of_numbers()},
      {"mamba2", {{"state", count(1)}}, of_numbers()},
      {"mamba2", {{"state", count(11)}}, of_numbers()},
      {"mla", {{"latent", count(5)}, {"rotary", count(0)}}, of_numbers()},
      {"mla",
       {{"latent", count(7)}, {"rotary", count(3)}, {"query_chunk", count(7)}, {"scale", 0.7}},
       of_numbers()},
      {"moba", {{"block", count(3)}, {"blocks", count(4)}}, {}},
      {"moba", {{"block", count(5)}, {"blocks", count(1)}}, of_numbers()},
      {"moba", {{"block", count(1)}, {"blocks", count(6)}, {"scale", 0.7}}, of_numbers()},
      {"nsa", {{"block", count(3)}, {"blocks", count(5)}, {"window", Window{0, 0}}}, {}},
      {"nsa", {{"block", count(1)}, {"blocks", count(6)}, {"scale", 0.7}}, of_numbers()},
      {"nystromformer", {{"landmarks", count(5)}}, {}},
      {"perceiver", {{"scale", 1.5}}, of_numbers()},
      {"performer", {{"features_of_each_head", true}, {"projection", word("iid")}}, of_numbers()},
      {"performer", {{"kernel", word("relu")}, {"projection", word("none")}}, of_numbers()},
      // Published code stops the gradient at its stabilisers, which cancel where no epsilon is.
      {"performer",
       {{"form", word("published")}},
       {"value_equals_reference", "equals_composite", "padding"}},
      {"performer", {{"form", word("published")}, {"epsilon", 0.0}}, of_numbers()},
      {"retention", {{"gamma", 0.5}}, of_numbers()},
      {"retention", {{"gamma", 1e-6}, {"chunk", count(64)}}, small},
      {"rwkv7", {{"epsilon", 0.3}}, of_numbers()},
      {"rg_lru", {{"first_input", word("plain")}, {"decay_init", word("recurrentgemma")}}, {}},
      {"rg_lru", {{"chunk", count(2)}}, of_numbers()},  // in pieces of 32
      {"rg_lru", {{"chunk", count(2)}, {"first_input", word("plain")}}, of_numbers()},
      {"rg_lru", {{"directions", word("both")}}, {}},
      {"rg_lru", {{"directions", word("both")}, {"first_input", word("plain")}}, of_numbers()},
      {"window", {{"window", Window{0, 0}}}, steps},
      {"window", {{"window", Window{30, 0}}}, steps},
  };
}

std::vector<Variant> variants(Dtype dtype) {
  const bool all_properties = dtype != Dtype::bfloat16 && at_night();
  const auto whole = all_properties ? std::vector<std::string>{} : of_numbers();
  std::vector<Variant> all{{"retention", {{"decay", word("fixed")}}, whole}};
  for (const Alias& alias : registry().aliases()) {
    if (alias.options.empty()) continue;
    // The gradient of a single key is 0 by cancellation, and a division by products of features as
    // small as 0.001 magnifies what float32 leaves of it: `cross` is shown in float64 alone.
    const bool few = dtype == Dtype::float32 && alias.name == "performer_relu";
    all.push_back({alias.mechanism, alias.options, few ? of_numbers() : whole});
  }
  for (const auto& name : registry().mechanisms()) {
    for (const Option& option : registry().entry(name).options) {
      if (option.name != "output") continue;
      for (const std::string& kind : option.choices) {
        const bool extra = kind == "plain" || (kind == "normalised" && dtype != Dtype::float64);
        if (extra) continue;  // the default; and gated has the same norm
        all.push_back({name, {{"output", kind}}, of_numbers()});
      }
    }
  }
  if (dtype == Dtype::bfloat16) return all;  // which cannot compare layers
  for (const char* name : {"delta", "mamba2"}) {
    all.push_back({name, {{"before", word("conv")}}, {"layer_steps"}});
  }
  for (Variant& choice : choices()) {
    // What float32 can get wrong of an option is its output.
    if (choice.only.empty()) choice.only = whole;
    const bool outputs = dtype == Dtype::float32 && choice.only == of_numbers();
    if (outputs) choice.only = {"value_equals_reference"};
    all.push_back(std::move(choice));
  }
  return all;
}

void check_variants(Dtype dtype) {
  const OneThread alone;
  for (const Variant& variant : variants(dtype)) {
    std::string said;
    for (const auto& [name, value] : variant.options) said += name + "=" + to_string(value) + " ";
    INFO(variant.mechanism << " " << said
                           << "(where the option takes a claim away, choices() names the "
                              "properties that it keeps, such as of_numbers())");
    conformance::CheckOptions options;
    options.options = variant.options;
    options.only = variant.only;
    check_some_hold(variant.mechanism, dtype, options);
  }
}

}  // namespace

// One case for each dtype, so that they run side by side.
TEST_CASE("every property holds for every built-in mechanism in float64", "[conformance]") {
  check_all(Dtype::float64);
}
TEST_CASE("every property holds for every built-in mechanism in float32", "[conformance]") {
  check_all(Dtype::float32);
}
TEST_CASE("every property holds for every built-in mechanism in bfloat16", "[conformance]") {
  check_all(Dtype::bfloat16);
}
TEST_CASE("properties hold for aliases, decays, gated outputs and convolutions in float64",
          "[conformance][variants]") {
  check_variants(Dtype::float64);
}
TEST_CASE("properties hold for aliases, decays, gated outputs and convolutions in float32",
          "[conformance][variants]") {
  check_variants(Dtype::float32);
}
TEST_CASE("properties hold for aliases, decays, gated outputs and convolutions in bfloat16",
          "[conformance][variants]") {
  check_variants(Dtype::bfloat16);
}

TEST_CASE("each mutant is caught by the property made for it", "[conformance][mutants]") {
  std::map<std::string, int> caught;
  for (const auto& property : conformance::properties()) caught[property.name] = 0;
  for (const test::Mutant& mutant : test::mutants()) {
    INFO(mutant.name << " (" << mutant.mechanism << ")");
    const Entry& entry = registry().entry(mutant.mechanism);
    const Implementation& original = entry.implementation(mutant.implementation);
    const Finding healthy = finding_of(entry, original, mutant);
    INFO("the original: " << described(healthy));
    CHECK(healthy.status == PropertyOutcome::held);
    const Finding ill = finding_of(entry, mutant.broken(original), mutant);
    INFO("the mutant: " << described(ill));
    CHECK(ill.status == PropertyOutcome::broken);
    CHECK_FALSE(ill.reason.empty());
    ++caught[mutant.property];
  }
  for (const auto& [name, count] : caught) {
    INFO(name);
    CHECK(count > 0);
  }
}

TEST_CASE("a property that does not exist is refused by name", "[conformance]") {
  conformance::CheckOptions options;
  options.only = {"causalty"};
  const Entry& entry = registry().entry("softmax");
  CHECK_THROWS_WITH(
      conformance::check(entry, registry().reference("softmax"), entry.implementations.front(),
                         Pattern::causal, Dtype::float64, options),
      Catch::Contains("did you mean causality"));
}

TEST_CASE("a property that throws is broken, an unsupported one has a reason", "[conformance]") {
  const Entry& entry = registry().entry("softmax");
  Implementation throwing = entry.implementations.front();
  throwing.mix = [](Mechanism&, const Inputs&, State*) -> Mixed {
    throw std::runtime_error("the kernel is missing");
  };
  conformance::CheckOptions options;
  options.only = {"value_equals_reference"};
  const auto& reference = registry().reference("softmax");
  Finding finding =
      conformance::check(entry, reference, throwing, Pattern::causal, Dtype::float32, options)
          .front();
  CHECK(finding.status == PropertyOutcome::broken);
  CHECK_THAT(finding.reason, Catch::Contains("the kernel is missing"));

  throwing.mix = [](Mechanism&, const Inputs&, State*) -> Mixed {
    throw UnsupportedError("odd lengths are not here");
  };
  finding = conformance::check(entry, reference, throwing, Pattern::causal, Dtype::float32, options)
                .front();
  CHECK(finding.status == PropertyOutcome::broken);
  CHECK(finding.reason == "`supports` allows what is then refused: odd lengths are not here");

  Implementation refusing = entry.implementations.front();
  refusing.supports = [](const Options&, const Problem&) { return Support::no("not on a Friday"); };
  for (const Finding& each :
       conformance::check(entry, reference, refusing, Pattern::causal, Dtype::float32)) {
    CHECK(each.status == PropertyOutcome::not_applicable);
    CHECK_THAT(each.reason, Catch::Contains("not on a Friday"));
  }
}

TEST_CASE("a mechanism that takes one dtype alone is held to its definition in it",
          "[conformance]") {
  Entry entry = registry().entry("softmax");
  Implementation& only = entry.implementations.front();
  only.supports = [](const Options&, const Problem& problem) {
    return problem.dtype == Dtype::float32 ? Support{} : Support::no("float32 alone");
  };
  only.mix = [mix = only.mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
    if (inputs["query"].scalar_type() != at::kFloat) throw std::runtime_error("float32 alone");
    return mix(mechanism, inputs, state);
  };
  entry.implementations.erase(entry.implementations.begin() + 1, entry.implementations.end());
  const auto& reference = registry().reference("softmax");
  const auto checked = [&] {
    return conformance::check(entry, reference, entry.implementations.front(), Pattern::causal,
                              Dtype::float32);
  };
  for (const Finding& each : checked()) {
    INFO(described(each));
    CHECK(each.status != PropertyOutcome::broken);
  }
  only.mix = [mix = only.mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    mixed.output = mixed.output * (inputs["query"].size(2) == 133 ? 1.1 : 1.0);
    return mixed;
  };
  const std::vector<Finding> found = checked();
  const auto composite = std::find_if(found.begin(), found.end(), [](const Finding& each) {
    return each.property == "equals_composite";
  });
  REQUIRE(composite != found.end());
  CHECK(composite->status == PropertyOutcome::broken);
}
