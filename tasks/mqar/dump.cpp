#include "tasks/mqar/dump.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "attention/errors.hpp"

namespace attnbench::tasks::mqar {
namespace {

using Json = nlohmann::json;

Json tokens_of(const Example& example, std::int64_t together) {
  if (together == 1) return example.tokens;
  Json positions = Json::array();
  for (std::size_t i = 0; i < example.tokens.size(); i += 2) {
    positions.push_back({example.tokens[i], example.tokens[i + 1]});
  }
  return positions;
}

Json line_of(const Plan& plan, Split split, std::size_t segment, std::int64_t number) {
  const Example example = make_example(plan.recall, plan.of(split)[segment], plan.seed, split,
                                       segment, static_cast<std::uint64_t>(number));
  Json questions = Json::array();
  for (const Question& question : example.questions) {
    questions.push_back({{"position", question.position},
                         {"label", question.answer},
                         {"distance", question.distance}});
  }
  return {{"segment", segment},
          {"example", number},
          {"tokens", tokens_of(example, tokens_per_position(plan.recall))},
          {"questions", std::move(questions)}};
}

}  // namespace

Json dump(const Plan& plan, const std::filesystem::path& folder) {
  const RecallData refuses_what_cannot_be_made(plan);
  Json files = Json::array();
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const std::string name = std::string(learning::to_string(split)) + ".jsonl";
    std::ofstream stream(folder / name);
    std::int64_t examples = 0;
    for (std::size_t i = 0; i < plan.of(split).size(); ++i) {
      for (std::int64_t j = 0; j < plan.of(split)[i].examples && stream; ++j, ++examples) {
        stream << line_of(plan, split, i, j).dump() << "\n";
      }
    }
    stream.close();
    if (!stream) throw Error((folder / name).string() + " cannot be written");
    files.push_back({{"file", name}, {"examples", examples}});
  }
  return {{"files", std::move(files)}};
}

}  // namespace attnbench::tasks::mqar
