// What `attnbench doctor` found, for people.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

namespace attnbench::commands {

/// Prints all of `found`:
/// {machine: card with spoilers, worker: {works, reason?, start_seconds, stamp, plugins},
///  devices: {WORD: {card, condition} | {refusal}}, ceilings?: {WORD: {…} | {refusal}}, noise?,
///  places: {NAME: PATH}}.
void print_doctor(std::ostream& out, const nlohmann::json& found);

}  // namespace attnbench::commands
