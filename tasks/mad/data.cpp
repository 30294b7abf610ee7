#include "tasks/mad/data.hpp"

namespace attnbench::tasks::mad {

MadData::MadData(const Plan& plan) : plan_(plan) { check(plan.rules); }

std::vector<learning::SegmentSize> MadData::segments(Split split) const {
  const Rules& rules = plan_.rules;
  return {{to_string(rules.exercise), rules.length, plan_.of(split), labels(rules)}};
}

Sheet MadData::asked(Split split, std::size_t, std::uint64_t number) const {
  return make_example(plan_.rules, plan_.seed, split, number);
}

Sheet MadData::learned(Split split, std::size_t segment, std::uint64_t number) const {
  return mad::learned(plan_.rules, asked(split, segment, number));
}

}  // namespace attnbench::tasks::mad
