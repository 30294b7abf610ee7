// What is known to spoil a measurement on a card, and what to do about it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::measure {

/// `condition` as Device::condition tells it of the device `word`; one sentence for each thing that
/// holds now. What the card does not tell is not guessed at.
std::vector<std::string> card_spoilers(const std::string& word, const nlohmann::json& condition);

}  // namespace attnbench::measure
