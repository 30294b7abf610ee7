#include "harness/measure/machine.hpp"

#include "harness/measure/neighbours.hpp"
#include "harness/measure/noise_sources.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::measure;
using attnbench::result::MachineCard;
using Json = nlohmann::json;

namespace {

/// A machine of two CPUs, `busy` of which others keep busy.
MachineCard calm_card(double busy = 0.05) {
  MachineCard card;
  card.threads = 2;
  card.allowed_cpus = std::vector<int>{0, 1};
  card.load = attnbench::result::Load{3.0, {}, {}, {{"busy_cpus_beside_us", busy}}};
  card.environment.emplace();
  return card;
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
  CHECK(noise_sources(calm_card()).empty());
  CHECK(any_mentions(noise_sources(calm_card(1.2)), "1.2 of 2 CPUs"));
  for (const auto& [variable, value] :
       {std::pair{"OPENBLAS_CORETYPE", "Haswell"}, {"OMP_WAIT_POLICY", "passive"}}) {
    MachineCard card = calm_card();
    (*card.environment)[variable] = value;
    CHECK(any_mentions(noise_sources(card), std::string("env -u ") + variable));
  }
  MachineCard card = calm_card();
  card.governor = "performance";
  CHECK(noise_sources(card).empty());
  card.governor = "powersave";
  CHECK(any_mentions(noise_sources(card), "powersave"));
  card.cpu_quota = 1.5;
  CHECK(any_mentions(noise_sources(card), "--threads 1"));
}

TEST_CASE("busy processes of now replace those of before", "[machine]") {
  MachineCard card = calm_card(1.9);
  card.governor = "powersave";
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
