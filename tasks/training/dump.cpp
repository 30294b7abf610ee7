#include "tasks/training/dump.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/errors.hpp"

namespace attnbench::tasks::learning {
namespace {

using Json = nlohmann::json;

/// Examples that are made together.
constexpr std::int64_t handful = 256;

Json tokens_of(const at::Tensor& row) {
  const auto* numbers = row.data_ptr<std::int64_t>();
  Json list = Json::array();
  if (row.dim() == 1) {
    for (std::int64_t i = 0; i < row.size(0); ++i) list.push_back(numbers[i]);
    return list;
  }
  for (std::int64_t i = 0; i < row.size(0); ++i) list.push_back(tokens_of(row[i]));
  return list;
}

/// The questions of each example of the batch.
std::vector<Json> questions_of(const Batch& batch) {
  const std::int64_t length = batch.tokens.size(1);
  std::vector<Json> lists(static_cast<std::size_t>(batch.tokens.size(0)), Json::array());
  for (std::int64_t i = 0; i < batch.labels.size(0); ++i) {
    const std::int64_t position = batch.positions.data_ptr<std::int64_t>()[i];
    Json question = {{"position", position % length},
                     {"label", batch.labels.data_ptr<std::int64_t>()[i]},
                     {"distance", batch.distances.data_ptr<std::int64_t>()[i]}};
    if (batch.places.defined()) question["place"] = batch.places.data_ptr<std::int64_t>()[i];
    lists[static_cast<std::size_t>(position / length)].push_back(std::move(question));
  }
  return lists;
}

void write_lines(std::ofstream& stream, const DataSet& data, Split split, std::size_t segment,
                 std::int64_t examples) {
  for (std::int64_t first = 0; first < examples && stream; first += handful) {
    std::vector<std::int64_t> some(static_cast<std::size_t>(std::min(handful, examples - first)));
    std::iota(some.begin(), some.end(), first);
    const Batch batch = split == Split::train ? data.batch(split, segment, some)
                                              : data.questions(split, segment, some);
    std::vector<Json> questions = questions_of(batch);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Json line = {{"segment", segment},
                         {"example", some[i]},
                         {"tokens", tokens_of(batch.tokens[static_cast<std::int64_t>(i)])},
                         {"questions", std::move(questions[i])}};
      stream << line.dump() << "\n";
    }
  }
}

}  // namespace

Json dump(const DataSet& data, const std::filesystem::path& folder) {
  Json files = Json::array();
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const std::string name = std::string(to_string(split)) + ".jsonl";
    std::ofstream stream(folder / name);
    std::int64_t examples = 0;
    const std::vector<SegmentSize> segments = data.segments(split);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      write_lines(stream, data, split, i, segments[i].examples);
      examples += segments[i].examples;
    }
    stream.close();
    if (!stream) throw Error((folder / name).string() + " cannot be written");
    files.push_back({{"file", name}, {"examples", examples}});
  }
  return {{"files", std::move(files)}};
}

}  // namespace attnbench::tasks::learning
