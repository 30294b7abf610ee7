// The words of a data set: variants, fillers, segments.
#include <algorithm>
#include <charconv>

#include "core/errors.hpp"
#include "tasks/mqar/recall.hpp"
#include "tasks/word.hpp"

namespace attnbench::tasks::mqar {
namespace {

/// Reads one whole number, and what comes after it, from `text`.
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

}  // namespace

const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::plain:
      return "plain";
    case Variant::forgetting:
      return "forgetting";
    case Variant::compositional:
      return "compositional";
    case Variant::stacked:
      return "stacked";
  }
  return "";
}

const char* to_string(Filler filler) { return filler == Filler::zeros ? "zeros" : "random"; }

Variant variant_from(const std::string& word) {
  return word_from("variant",
                   {Variant::plain, Variant::forgetting, Variant::compositional, Variant::stacked},
                   word);
}

Filler filler_from(const std::string& word) {
  return word_from("filler", {Filler::zeros, Filler::random}, word);
}

std::vector<Segment> segments_from(const std::string& text) {
  std::vector<Segment> segments;
  Reader reader(text);
  while (true) {
    Segment segment;
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

std::string to_string(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) {
    text += (text.empty() ? "" : ", ") + std::to_string(segment.length) + "x" +
            std::to_string(segment.pairs) + ":" + std::to_string(segment.examples);
  }
  return text;
}

}  // namespace attnbench::tasks::mqar
