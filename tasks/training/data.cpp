#include "tasks/training/data.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/errors.hpp"

namespace attnbench::tasks::training {
namespace {

using Json = nlohmann::json;

/// Examples of one batch while files are written.
constexpr std::int64_t examples_together = 256;

Json tokens_of(const at::Tensor& row) {
  const auto* numbers = row.data_ptr<std::int64_t>();
  Json list = Json::array();
  for (std::int64_t i = 0; i < row.size(0); ++i) {
    list.push_back(row.dim() == 1 ? Json(numbers[i]) : tokens_of(row[i]));
  }
  return list;
}

/// Row `row` of the batch's tokens or values, without its padding.
Json sequence_of(const Batch& batch, std::int64_t row) {
  const at::Tensor& input = batch.input();
  const std::int64_t length =
      batch.lengths.defined() ? batch.lengths[row].item<std::int64_t>() : input.size(1);
  const at::Tensor real = input[row].narrow(0, 0, length).contiguous();
  if (batch.tokens.defined()) return tokens_of(real);
  const at::Tensor wide = real.to(at::kDouble);
  return std::vector<double>(wide.data_ptr<double>(), wide.data_ptr<double>() + length);
}

/// The members of a line: {tokens or values, label} of one classified example.
Json classified(const Batch& batch, std::int64_t example) {
  const std::int64_t examples = batch.labels.size(0);
  Json input = sequence_of(batch, example);
  if (batch.input().size(0) > examples) {
    input = Json::array({std::move(input), sequence_of(batch, example + examples)});
  }
  return {{batch.tokens.defined() ? "tokens" : "values", std::move(input)},
          {"label", batch.labels[example].item<std::int64_t>()}};
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
    if (batch.places.defined()) {
      question.emplace("place", batch.places.data_ptr<std::int64_t>()[i]);
    }
    lists[static_cast<std::size_t>(position / length)].push_back(std::move(question));
  }
  return lists;
}

void write_lines(std::ofstream& stream, const DataSet& data, Split split, std::size_t segment,
                 std::int64_t examples) {
  for (std::int64_t first = 0; first < examples && stream; first += examples_together) {
    const std::int64_t count = std::min(examples_together, examples - first);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), first);
    const Batch batch = split == Split::train ? data.batch(split, segment, numbers)
                                              : data.questions(split, segment, numbers);
    const bool whole = !batch.positions.defined();
    std::vector<Json> questions = whole ? std::vector<Json>() : questions_of(batch);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      Json line = {{"segment", segment}, {"example", numbers[i]}};
      line.update(whole ? classified(batch, row)
                        : Json{{"tokens", tokens_of(batch.tokens[row])},
                               {"questions", std::move(questions[i])}});
      stream << line.dump() << "\n";
    }
  }
}

}  // namespace

at::Tensor key_mask_of(const Batch& batch) {
  if (batch.real.defined()) return batch.real;
  if (!batch.lengths.defined()) return {};
  const at::Tensor places = at::arange(batch.input().size(1), batch.lengths.options());
  return places.unsqueeze(0).lt(batch.lengths.unsqueeze(1));
}

std::int64_t DataSet::checked_length() const { return longest(*this); }

std::int64_t longest(const DataSet& data, Split split) {
  std::int64_t length = 0;
  for (const SegmentSize& segment : data.segments(split)) length = std::max(length, segment.length);
  return length;
}

std::int64_t longest(const DataSet& data) {
  std::int64_t length = 0;
  for (const Split split : every_split) length = std::max(length, longest(data, split));
  return length;
}

Json write_jsonl(const DataSet& data, const std::filesystem::path& folder) {
  Json files = Json::array();
  for (const Split split : every_split) {
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

Batch batch_of(const std::vector<Example>& examples, std::int64_t tokens_per_position) {
  const auto rows = static_cast<std::int64_t>(examples.size());
  const std::int64_t length =
      static_cast<std::int64_t>(examples.front().tokens.size()) / tokens_per_position;
  std::vector<std::int64_t> shape{rows, length};
  if (tokens_per_position > 1) shape.push_back(tokens_per_position);
  std::size_t labels = 0;
  std::size_t max_candidates = 0;
  bool placed = true;
  for (const Example& example : examples) {
    labels += example.questions.size();
    max_candidates = std::max(max_candidates, example.candidates.size());
    for (const Question& question : example.questions) placed = placed && question.place >= 0;
  }
  const auto column = [&] { return at::empty({static_cast<std::int64_t>(labels)}, at::kLong); };
  Batch batch{
      at::empty(shape, at::kLong),
      column(),
      column(),
      column(),
      at::full({static_cast<std::int64_t>(labels), static_cast<std::int64_t>(max_candidates)}, -1,
               at::kLong),
      {}};
  if (placed) batch.places = column();
  auto* tokens = batch.tokens.data_ptr<std::int64_t>();
  auto* candidates = batch.candidates.data_ptr<std::int64_t>();
  std::int64_t i = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Example& example = examples[static_cast<std::size_t>(row)];
    tokens = std::copy(example.tokens.begin(), example.tokens.end(), tokens);
    for (const Question& question : example.questions) {
      batch.positions.data_ptr<std::int64_t>()[i] = row * length + question.position;
      batch.labels.data_ptr<std::int64_t>()[i] = question.answer;
      batch.distances.data_ptr<std::int64_t>()[i] = question.distance;
      if (placed) batch.places.data_ptr<std::int64_t>()[i] = question.place;
      std::copy(example.candidates.begin(), example.candidates.end(), candidates);
      candidates += max_candidates;
      ++i;
    }
  }
  return batch;
}

std::vector<std::int64_t> sorted_unique(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Batch ExampleDataSet::batch(Split split, std::size_t segment,
                            const std::vector<std::int64_t>& examples) const {
  std::vector<Example> made;
  for (const std::int64_t number : examples) {
    made.push_back(learned(split, segment, static_cast<std::uint64_t>(number)));
  }
  return batch_of(made, tokens_per_position());
}

Batch ExampleDataSet::questions(Split split, std::size_t segment,
                                const std::vector<std::int64_t>& examples) const {
  std::vector<Example> made;
  for (const std::int64_t number : examples) {
    made.push_back(scored(split, segment, static_cast<std::uint64_t>(number)));
  }
  return batch_of(made, tokens_per_position());
}

}  // namespace attnbench::tasks::training
