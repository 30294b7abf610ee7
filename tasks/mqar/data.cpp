#include "tasks/mqar/data.hpp"

#include <algorithm>
#include <charconv>

#include "tasks/settings.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks::mqar {
namespace {

/// Reads numbers and separators from `text`.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  void skip(const char* letters) {
    at_ = std::min(text_.find_first_not_of(letters, at_), text_.size());
  }
  bool done() const { return at_ == text_.size(); }

  std::int64_t number() {
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 1) refuse();
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void expect(char letter) {
    if (done() || text_[at_] != letter) refuse();
    ++at_;
  }

 private:
  [[noreturn]] void refuse() const {
    throw UsageError(
        "\"" + text_ + "\" does not list segments: expected LENGTHxPAIRS:EXAMPLES, …, " +
        "such as \"64x4:100000, 128x8:20000\"; it goes wrong at \"" + text_.substr(at_) + "\"");
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

/// The segments of the setting, or the shapes of `like` with `examples` each where it is empty.
std::vector<RecallSegment> segments_or(const std::string& setting, std::vector<RecallSegment> like,
                                       std::int64_t examples) {
  if (!setting.empty()) return segments_from(setting);
  for (RecallSegment& segment : like) segment.examples = examples;
  return like;
}

}  // namespace

std::vector<RecallSegment> segments_from(const std::string& text) {
  std::vector<RecallSegment> segments;
  Reader reader(text);
  while (true) {
    RecallSegment segment;
    reader.skip(" ");
    segment.length = reader.number();
    reader.expect('x');
    segment.pairs = reader.number();
    reader.expect(':');
    segment.examples = reader.number();
    segments.push_back(segment);
    reader.skip(" ,");
    if (reader.done()) return segments;
  }
}

std::string to_string(const std::vector<RecallSegment>& segments) {
  std::string text;
  for (const RecallSegment& segment : segments) {
    text += (text.empty() ? "" : ", ") + std::to_string(segment.length) + "x" +
            std::to_string(segment.pairs) + ":" + std::to_string(segment.examples);
  }
  return text;
}

std::vector<Option> data_settings() {
  return {
      integer_setting("vocabulary", 8192,
                      "different tokens: the lower half keys, the upper half values", 4),
      integer_setting("length", 64, "tokens T, unless train_mix is set"),
      integer_setting(
          "pairs", 4,
          "pairs of key and value in a sequence, each asked once; unless train_mix is set"),
      integer_setting("train_examples", 100000,
                      "different training examples; unless train_mix is set"),
      integer_setting("validation_examples", 1000,
                      "of each training shape: they decide learning rates and stopping"),
      integer_setting("test_examples", 3000, "of each training shape, unless test_mix is set"),
      text_setting("train_mix", "",
                   "segments LENGTHxPAIRS:EXAMPLES, … instead of length, pairs and train_examples"),
      text_setting("validation_mix", "", "likewise, instead of the training shapes"),
      text_setting("test_mix", "", "likewise; longer segments than in training test extrapolation"),
      text_setting("variant", "plain", "what has to be recalled", variant_names()),
      text_setting("filler", "random", "what fills the positions between questions",
                   {"random", "zeros"}),
      number_setting("power", 0.01,
                     "a in the weight g^(a - 1) of the g-th slot for a question: 1 = uniform"),
      integer_setting("updates", 4, "keys that get a new value, for the variant forgetting", 0)};
}

RecallPlan plan_from(const Options& settings, std::uint64_t run_seed) {
  RecallPlan plan;
  plan.recall.variant = variant_from(settings.text("variant"));
  plan.recall.filler = filler_from(settings.text("filler"));
  plan.recall.vocabulary = settings.integer("vocabulary");
  plan.recall.power = settings.number("power");
  plan.recall.updates = settings.integer("updates");
  const RecallSegment one{settings.integer("length"), settings.integer("pairs"), 0};
  plan.train = segments_or(settings.text("train_mix"), {one}, settings.integer("train_examples"));
  plan.validation = segments_or(settings.text("validation_mix"), plan.train,
                                settings.integer("validation_examples"));
  plan.test = segments_or(settings.text("test_mix"), plan.train, settings.integer("test_examples"));
  plan.seed = training::data_seed(settings, run_seed);
  return plan;
}

RecallData::RecallData(RecallPlan plan) : plan_(std::move(plan)) {
  for (const Split split : training::every_split) {
    for (const RecallSegment& segment : plan_.of(split)) check(plan_.recall, segment);
  }
}

std::vector<training::SegmentSize> RecallData::segments(Split split) const {
  std::vector<training::SegmentSize> sizes;
  for (const RecallSegment& segment : plan_.of(split)) {
    sizes.push_back({std::to_string(segment.length) + "x" + std::to_string(segment.pairs),
                     segment.length, segment.examples, static_cast<double>(segment.pairs)});
  }
  return sizes;
}

Example RecallData::scored(Split split, std::size_t segment, std::uint64_t number) const {
  return make_example(plan_.recall, plan_.of(split).at(segment), plan_.seed, split, segment,
                      number);
}

std::int64_t RecallData::tokens_per_position() const {
  return mqar::tokens_per_position(plan_.recall);
}

}  // namespace attnbench::tasks::mqar
