#include "harness/measure/machine.hpp"
#include "harness/measure/noise_sources.hpp"

#include "harness/measure/neighbours.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::measure;
using Json = nlohmann::json;

namespace {

attnbench::result::MachineCard card_from(const Json& json) {
  return json.get<attnbench::result::MachineCard>();
}

bool any_mentions(const std::vector<std::string>& sentences, const std::string& word) {
  for (const std::string& sentence : sentences) {
    if (sentence.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the machine card says what the kernel tells everybody", "[machine]") {
  const Json card = machine_card();
  CHECK_FALSE(card.at("host").get<std::string>().empty());
  CHECK(card.at("threads").get<int>() >= 1);
  CHECK(card.at("allowed_cpus").size() >= 1);
  CHECK(card.at("memory_bytes").get<double>() > 1e8);
  CHECK(card.at("caches").at("l2_bytes").get<double>() > card.at("caches").at("l1_bytes"));
  CHECK(card.at("load").at("busy_cpus_beside_us").get<double>() >= 0);
  CHECK(card.at("spoilers").is_array());
  // No NaN and nothing unknown: the text reads back as the same value.
  CHECK(Json::parse(card.dump()) == card);
}

TEST_CASE("each source of noise is named where it is found", "[machine]") {
  const Json calm = {{"threads", 2},
                     {"allowed_cpus", {0, 1}},
                     {"load", {{"busy_cpus_beside_us", 0.05}}},
                     {"environment", Json::object()}};
  CHECK(noise_sources(card_from(calm)).empty());

  Json card = calm;
  card["load"]["busy_cpus_beside_us"] = 1.2;
  CHECK(any_mentions(noise_sources(card_from(card)), "1.2 of 2 CPUs"));

  card = calm;
  card["environment"]["OPENBLAS_CORETYPE"] = "Haswell";
  CHECK(any_mentions(noise_sources(card_from(card)), "env -u OPENBLAS_CORETYPE"));

  card = calm;
  card["governor"] = "powersave";
  CHECK(any_mentions(noise_sources(card_from(card)), "powersave"));
  card["governor"] = "performance";
  CHECK(noise_sources(card_from(card)).empty());

  card = calm;
  card["cpu_quota"] = 1.5;
  CHECK(any_mentions(noise_sources(card_from(card)), "--threads 1"));

  card = calm;
  card["environment"]["OMP_WAIT_POLICY"] = "passive";
  CHECK(any_mentions(noise_sources(card_from(card)), "env -u OMP_WAIT_POLICY"));
}

TEST_CASE("busy processes of now replace those of before", "[machine]") {
  attnbench::result::MachineCard card;
  card.threads = 2;
  card.governor = "powersave";
  card.load = attnbench::result::Load{3.0, {}, {}, {{"busy_cpus_beside_us", 1.9}}};
  card.noise_sources = noise_sources(card);
  card.noise_sources->push_back("the card is warm");
  REQUIRE(card.noise_sources->size() == 3);
  note_neighbours(card, {0.01, {}});
  CHECK(card.load->further["busy_cpus_beside_us"] == 0.01);
  CHECK(*card.load->average_1_minute == 3.0);
  REQUIRE(card.noise_sources->size() == 2);
  CHECK(card.noise()[1] == "the card is warm");
  note_neighbours(card, {1.0, {{7, "cc1plus", 1.0}}});
  CHECK(any_mentions(card.noise(), "cc1plus (7) 100 %"));
}
