#include "core/claims_json.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace attnbench {
namespace {

using Json = nlohmann::json;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

template <class Struct>
using Member = std::pair<const char*, double Struct::*>;

constexpr std::array<Member<Cost>, 7> costs{{{"model_flops", &Cost::model_flops},
                                             {"executed_flops", &Cost::executed_flops},
                                             {"minimal_bytes", &Cost::minimal_bytes},
                                             {"exponentials", &Cost::exponentials},
                                             {"workspace_bytes", &Cost::workspace_bytes},
                                             {"saved_bytes", &Cost::saved_bytes},
                                             {"state_bytes", &Cost::state_bytes}}};

constexpr std::array<Member<Growth>, 5> exponents{
    {{"time_in_length", &Growth::time_in_length},
     {"workspace_in_length", &Growth::workspace_in_length},
     {"time_in_latents", &Growth::time_in_latents},
     {"workspace_in_latents", &Growth::workspace_in_latents},
     {"time_in_head_dim", &Growth::time_in_head_dim}}};

template <class Members, class Struct>
void write_known(const Members& members, const Struct& value, Json& json) {
  json = Json::object();
  for (const auto& [name, member] : members) {
    if (std::isfinite(value.*member)) json[name] = value.*member;
  }
}

template <class Members, class Struct>
void read_known(const Members& members, JsonReader& reader, Struct& value) {
  for (const auto& [name, member] : members) {
    value.*member = unknown;
    reader.maybe(name, value.*member);
  }
}

}  // namespace

double known_or_zero(double number) { return std::isfinite(number) ? number : 0; }

void to_json(Json& json, const Cost& cost) { write_known(costs, cost, json); }

void from_json(const Json& json, Cost& cost) {
  JsonReader reader(json);
  read_known(costs, reader, cost);
  reader.finish();
}

void to_json(Json& json, const Growth& growth) {
  write_known(exponents, growth, json);
  if (growth.from_length > 0) json["from_length"] = growth.from_length;
  if (growth.workspace_in_head_dim) json["workspace_in_head_dim"] = *growth.workspace_in_head_dim;
}

void from_json(const Json& json, Growth& growth) {
  growth = {};
  JsonReader reader(json);
  read_known(exponents, reader, growth);
  reader.maybe("workspace_in_head_dim", growth.workspace_in_head_dim);
  reader.maybe("from_length", growth.from_length);
  reader.finish();
}

std::optional<double> claimed_exponent(const Growth& growth, const std::string& name) {
  if (name == "workspace_in_head_dim") return growth.workspace_in_head_dim;
  for (const auto& [exponent, member] : exponents) {
    if (name == exponent && std::isfinite(growth.*member)) return growth.*member;
  }
  return std::nullopt;
}

ATTNBENCH_JSON_CODEC(Claims) {
  JSON_AT(rows_sum_to_one, linear_in_value, permutation_equivariant, last_row_agrees,
          heads_independent);
}

ATTNBENCH_JSON_CODEC(Alias) { JSON_AT(name, implementation, options, title); }

ATTNBENCH_JSON_CODEC(Departure) { JSON_AT(what, how); }

}  // namespace attnbench
