#include "harness/measure/noise_sources.hpp"

#include <nlohmann/json.hpp>

#include "harness/measure/nvml.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::measure;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

const Json healthy = {{"persistence", true},        {"ecc", true},
                      {"ecc_pending", true},        {"mig", false},
                      {"power_limit_watts", 700.0}, {"power_limit_usual_watts", 700.0},
                      {"slowed_by", Json::array()}, {"processes", Json::array()},
                      {"busy_share", 0.0}};

/// The one sentence that is said when this alone is amiss.
std::string said(const char* key, const Json& value) {
  Json condition = healthy;
  condition[key] = value;
  const auto found = card_noise_sources("cuda:2", condition);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found.front(), Contains("cuda:2"));
  return found.front();
}

}  // namespace

TEST_CASE("a card in order spoils nothing, and what it does not tell is not guessed at", "[nvml]") {
  CHECK(card_noise_sources("cuda", healthy).empty());
  CHECK(card_noise_sources("cuda", Json::object()).empty());
  CHECK(card_noise_sources("cuda", {{"refusal", "no library"}}).empty());
}

TEST_CASE("each thing that spoils a card's numbers is said with what to do", "[nvml]") {
  CHECK_THAT(said("processes", {{{"pid", 12}}, {{"pid", 34}, {"memory_bytes", 5}}}),
             Contains("(12, 34)"));
  CHECK_THAT(said("busy_share", 0.4), Contains("40 % busy"));
  CHECK_THAT(said("persistence", false), Contains("nvidia-smi -pm 1"));
  CHECK_THAT(said("mig", true), Contains("slice"));
  CHECK_THAT(said("ecc_pending", false), Contains("reset"));
  CHECK_THAT(said("power_limit_watts", 500.0), Contains("500 W where 700 W"));
  CHECK_THAT(said("slowed_by", {"heat"}), Contains("held down by heat"));
  Json off = healthy;
  off["ecc"] = off["ecc_pending"] = false;
  REQUIRE(card_noise_sources("cuda", off).size() == 1);
  CHECK_THAT(card_noise_sources("cuda", off).front(), Contains("ECC of cuda is off"));
}

TEST_CASE("a card that NVML cannot tell of comes with the reason", "[nvml]") {
  const Json condition = nvml_condition("ffff:ff:1f.7");
  INFO(condition.dump());
  CHECK(condition.size() == 1);
  CHECK_FALSE(condition.at("refusal").get<std::string>().empty());
}

TEST_CASE("the noise self-test compares a piece of work with itself", "[noise]") {
  const auto noise = noise_self_test(1);
  CHECK(noise.median_seconds > 0);
  CHECK(noise.spread >= 0);
  CHECK(noise.difference >= 0);
  // Two halves of the same work cannot be apart by more than all of it is wide, save for ties.
  CHECK(noise.difference <= noise.spread + 1.0);
}
