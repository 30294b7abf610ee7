#include "tasks/mad/data.hpp"

namespace attnbench::tasks::mad {

MadData::MadData(const Plan& plan) : plan_(plan) { check(plan.rules); }

std::vector<learning::SegmentSize> MadData::segments(Split split) const {
  const std::int64_t examples = split == Split::train        ? plan_.rules.train
                                : split == Split::validation ? plan_.validation
                                                             : plan_.test;
  return {{to_string(plan_.rules.exercise), plan_.rules.length, examples, labels(plan_.rules)}};
}

std::vector<Sheet> MadData::sheets(Split split, const std::vector<std::int64_t>& examples) const {
  std::vector<Sheet> sheets;
  for (const std::int64_t number : examples) {
    sheets.push_back(
        make_example(plan_.rules, plan_.seed, split, static_cast<std::uint64_t>(number)));
  }
  return sheets;
}

learning::Batch MadData::batch(Split split, std::size_t,
                               const std::vector<std::int64_t>& examples) const {
  std::vector<Sheet> all = sheets(split, examples);
  for (Sheet& sheet : all) sheet = learned(plan_.rules, std::move(sheet));
  return learning::batch_of(all);
}

learning::Batch MadData::questions(Split split, std::size_t,
                                   const std::vector<std::int64_t>& examples) const {
  return learning::batch_of(sheets(split, examples));
}

}  // namespace attnbench::tasks::mad
