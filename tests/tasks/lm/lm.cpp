#include <cmath>
#include <cstdlib>
#include <set>

#include "tasks/data/wanted.hpp"
#include "tasks/lm/sequences.hpp"
#include "tasks/training/task.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/variable.hpp"
#include "tests/tasks/lm/prepared_text.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using std::int64_t;
using tasks::lm::Cutting;
using tasks::lm::segments_from;
using tasks::lm::Sequences;
using tasks::training::Batch;
using tasks::training::Split;

namespace {

Cutting cut(int64_t length, std::vector<double> segments = {1}) {
  Cutting cutting;
  cutting.length = length;
  cutting.segments = std::move(segments);
  cutting.seed = 5;
  return cutting;
}

std::vector<int64_t> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

/// The labels of all examples of a segment, in order, as text.
std::string scored_text(const Sequences& data, Split split, std::size_t segment) {
  std::string text;
  for (int64_t i = 0; i < data.segments(split).at(segment).examples; ++i) {
    for (const int64_t label : values_of(data.questions(split, segment, {i}).labels)) {
      text += static_cast<char>(label);
    }
  }
  return text;
}

Settings small_model() {
  return {{"length", n(16)}, {"batch", n(8)},         {"heads", n(2)},
          {"width", n(16)},  {"steps", n(60)},        {"evaluate_every", n(20)},
          {"layers", n(1)},  {"learning_rate", 0.01}, {"segments", s("1, 2")}};
}

}  // namespace

TEST_CASE("every byte of the test but the first is scored once, at each length", "[lm]") {
  const std::string text = regular_text(1000);
  const PreparedText prepared(text, 0.1);
  const Sequences data(prepared.cache(), cut(16, {1, 1.5, 2, 4}));
  const std::string test = text.substr(900);
  REQUIRE(data.segments(Split::test).size() == 4);
  CHECK(data.segments(Split::test)[1].length == 24);
  CHECK(data.segments(Split::test)[1].name == "1.5x");
  for (std::size_t segment = 0; segment < 4; ++segment) {
    CHECK(scored_text(data, Split::test, segment) == test.substr(1));
  }
  CHECK(scored_text(data, Split::validation, 0) == text.substr(801, 99));
  // The last sequence ends with the text, and its first labels were scored before: 99 = 6 * 16 + 3.
  const Batch last = data.questions(Split::test, 0, {6});
  CHECK(values_of(last.positions) == std::vector<int64_t>{13, 14, 15});
  CHECK(last.tokens.size(1) == 16);
  // Two sequences together: positions count on.
  const Batch both = data.questions(Split::test, 0, {5, 6});
  CHECK(values_of(both.positions).size() == 19);
  CHECK(values_of(both.positions).back() == 31);
}

TEST_CASE("training sequences are drawn by seed and number, labels are the next bytes", "[lm]") {
  const std::string text = regular_text(2000);
  const PreparedText prepared(text);
  const Sequences data(prepared.cache(), cut(16));
  const auto segment = data.segments(Split::train).front();
  CHECK(segment.examples == 1799 / 16);
  CHECK(segment.labels == 16);
  const Batch batch = data.batch(Split::train, 0, {0, 1, 100'000});
  REQUIRE(batch.tokens.sizes() == at::IntArrayRef({3, 16}));
  CHECK(at::equal(batch.tokens.narrow(1, 1, 15), batch.labels.view({3, 16}).narrow(1, 0, 15)));
  CHECK(values_of(batch.positions).size() == 48);
  CHECK_FALSE(batch.candidates.defined());
  CHECK(at::equal(batch.tokens, data.batch(Split::train, 0, {0, 1, 100'000}).tokens));
  Cutting other = cut(16);
  other.seed = 6;
  const Batch drawn_anew =
      Sequences(prepared.cache(), other).batch(Split::train, 0, {0, 1, 100'000});
  CHECK_FALSE(at::equal(batch.tokens, drawn_anew.tokens));
  // All offsets are drawn, the first and the last among them.
  const PreparedText short_training(text, 0.45);  // 200 bytes
  const Sequences tight(short_training.cache(), cut(197));
  std::set<int64_t> firsts;
  for (int64_t i = 0; i < 60; ++i) {
    firsts.insert(tight.batch(Split::train, 0, {i}).tokens[0][0].item<int64_t>());
  }
  CHECK(firsts == std::set<int64_t>{'t', 'h', 'e'});
}

TEST_CASE("what a text cannot be cut into is refused with the remedy", "[lm]") {
  const PreparedText prepared(regular_text(1000), 0.1);
  CHECK_NOTHROW(Sequences(prepared.cache(), cut(99)));
  CHECK_THROWS_WITH(Sequences(prepared.cache(), cut(100)),
                    Contains("100 bytes") && Contains("needs 101") && Contains("smaller length"));
  CHECK_THROWS_WITH(Sequences(prepared.cache(), cut(60, {1, 2})), Contains("text of test") &&
                                                                      Contains("needs 121") &&
                                                                      Contains("fewer segments"));
  for (const char* bad : {"", "2", "1, 1", "1, 0.5", "1, x", "1; 2", "1, nan", "1, 2000", "1,,2"}) {
    INFO(bad);
    CHECK_THROWS_WITH(segments_from(bad), Contains("\"1, 1.5, 2, 4\""));
  }
  CHECK(segments_from("1, 1.5 ,2,4") == std::vector<double>{1, 1.5, 2, 4});
}

TEST_CASE("a cell without a text is skipped, one of several texts is asked for", "[lm]") {
  const auto forecast = [](const Settings& settings) {
    return tasks::find_task("lm").forecast(registry(),
                                           make_cell("lm", "softmax", "auto", settings));
  };
  {
    const Variable without("ATTNBENCH_DATA", {});
    CHECK_THROWS_AS(forecast(small_model()), tasks::data::MissingData);
  }
  PreparedText prepared(regular_text(1000), 0.1, "one");
  CHECK_THROWS_WITH(forecast(small_model()), Contains("attnbench data lm --from FILE"));
  const Settings tenth = with(small_model(), {{"validation_share", 0.1}, {"test_share", 0.1}});
  CHECK(forecast(tenth).support);
  prepared.add(regular_text(2000), 0.1, "two");
  CHECK_THROWS_WITH(forecast(tenth), Contains("one") && Contains("two") && Contains("set text"));
  CHECK(forecast(with(tenth, {{"text", s("two")}})).support);
}

TEST_CASE("a cell without its text has a forecast where steps or the split say enough", "[lm]") {
  const auto without = [](const Settings& settings) {
    return tasks::find_task("lm").forecast_without_data(
        registry(), make_cell("lm", "softmax", "auto", settings));
  };
  const Settings tenth = with(small_model(), {{"validation_share", 0.1}, {"test_share", 0.1}});
  const PreparedText prepared(regular_text(1000), 0.1);
  const tasks::TaskForecast with_text =
      tasks::find_task("lm").forecast(registry(), make_cell("lm", "softmax", "auto", tenth));
  const auto guessed = without(tenth);
  REQUIRE(guessed);
  CHECK(guessed->cost.model_flops == with_text.cost.model_flops);
  CHECK(guessed->peak_bytes == with_text.peak_bytes);
  CHECK(guessed->problem.length == with_text.problem.length);
  // An epoch of a text that nobody knows has no length.
  const Settings epochs{{"steps", n(0)}, {"epochs", n(2)}};
  CHECK_FALSE(without(with(small_model(), epochs)));
  const Settings published = with(small_model(), {{"split", s("enwik8")}});
  const auto two_epochs = without(with(published, epochs));
  REQUIRE(two_epochs);
  const double steps = 2 * std::floor(std::floor((90e6 - 1) / 16) / 8);
  CHECK(two_epochs->cost.model_flops / without(published)->cost.model_flops ==
        Approx(steps / 60).epsilon(1e-4));
}

TEST_CASE("learned positions end with the training length unless that is allowed", "[lm]") {
  const PreparedText prepared(regular_text(4000));
  const auto forecast = [](const Settings& settings) {
    return tasks::find_task("lm").forecast(registry(),
                                           make_cell("lm", "softmax", "auto", settings));
  };
  const Settings learned = with(small_model(), {{"positions", s("learned")}});
  CHECK_THROWS_WITH(forecast(learned),
                    Contains("positions_beyond") && Contains("set segments to \"1\""));
  CHECK(forecast(with(learned, {{"segments", s("1")}})).support);
  CHECK(forecast(with(learned, {{"positions_beyond", s("untrained")}})).support);
  CHECK(forecast(with(small_model(), {{"positions", s("sinusoidal")}})).support);
  CHECK_THROWS_WITH(forecast(with(small_model(), {{"vocabulary", n(100)}})),
                    Contains("vocabulary is 100") && Contains("tokens are bytes"));
}

TEST_CASE("a step costs its own length, whatever the test's is", "[lm]") {
  const PreparedText prepared(regular_text(10'000));
  const auto flops = [](const char* segments) {
    return tasks::find_task("lm")
        .forecast(registry(), make_cell("lm", "softmax", "auto",
                                        with(small_model(), {{"segments", s(segments)}})))
        .cost.model_flops;
  };
  CHECK(flops("1, 8") == flops("1"));
}

TEST_CASE("a model learns a regular text, and its record is that of a language model", "[lm]") {
  const PreparedText prepared(regular_text(4000));
  const Ran ran = run_cell(registry(), "lm", make_cell("lm", "latte", "auto", small_model()));
  CHECK(ran.check["verdict"] == "ok");
  const Json& metrics = ran.sections["metrics"];
  const Json& training = ran.sections["training"];
  const double bits = metrics["bits_per_byte"];
  CHECK(bits < 4);  // 8 before the first step
  CHECK(metrics["perplexity"].get<double>() == Approx(std::exp2(bits)));
  CHECK(training["judged_by"] == "loss");
  CHECK_FALSE(metrics.contains("label_accuracy"));
  CHECK_FALSE(training.contains("look_back"));
  CHECK_FALSE(training.contains("confusion"));
  REQUIRE(training["test"].size() == 2);
  CHECK(training["test"][0]["loss"].get<double>() == Approx(bits * std::log(2)));
  CHECK(training["test"][1]["length"] == 32);
  CHECK(training["test"][0]["questions"] == 199);
  CHECK(training["test"][1]["questions"] == 199);
  CHECK(training["selection"]["last"]["validation_loss"].is_number());
  CHECK(training["selection"]["last"]["test_loss"].get<double>() == Approx(bits * std::log(2)));
  REQUIRE(training["levels"].size() == 3);
  CHECK(training["levels"][0]["bits_per_byte"].get<double>() >
        training["levels"][2]["bits_per_byte"].get<double>());
  CHECK(training["data"]["splits"]["test"]["bytes"] == 200);
  CHECK(training["data"]["source"] == "text");
  CHECK(metrics["bytes_per_second"].get<double>() > 0);
}

TEST_CASE("a model of ids that a tokeniser wrote has perplexities, and no bits per byte",
          "[lm][night]") {
  // Ids as uint32 beyond 2^16, each of which follows from the one before.
  std::string ids;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const std::uint32_t id = 70'000 + i % 24;
    ids.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  tasks::data::lm::TextFileRules rules;
  rules.encoding = tasks::data::lm::Encoding::uint32;
  rules.vocabulary = 70'024;
  rules.division = tasks::data::lm::Division::files;
  const PreparedText prepared({{"train.bin", ids}, {"val.bin", ids.substr(0, 800)}}, rules);
  const Settings said = with(small_model(), {{"tokens", s("uint32")},
                                             {"vocabulary", n(70'024)},
                                             {"split", s("files")},
                                             {"steps", n(40)},
                                             {"latent_probabilities", n(3)}});
  const Ran ran = run_cell(registry(), "lm", make_cell("lm", "latte", "auto", said));
  CHECK(ran.check["verdict"] == "ok");
  const Json& metrics = ran.sections["metrics"];
  const Json& training = ran.sections["training"];
  CHECK(training["judged_by"] == "perplexity");
  const double perplexity = metrics["perplexity"];
  CHECK(perplexity < 7000);  // 70,024 before the first step
  CHECK(perplexity > 1);
  CHECK(std::log(perplexity) == Approx(training["test"][0]["loss"].get<double>()));
  CHECK(metrics["validation_perplexity"].get<double>() == Approx(perplexity));  // the same tokens
  CHECK(metrics["train_perplexity"].is_number());
  CHECK(metrics["tokens_per_second"].get<double>() > 0);
  for (const char* of_bytes : {"bits_per_byte", "validation_bits_per_byte", "bytes_per_second"}) {
    INFO(of_bytes);
    CHECK_FALSE(metrics.contains(of_bytes));
  }
  CHECK_FALSE(training.contains("levels"));
  CHECK(training["data"]["splits"]["test"]["tokens"] == 200);
  CHECK_THAT(training["data"]["notes"]["test"].get<std::string>(), Contains("validation"));
  CHECK(training["latent_probabilities"]["tokens"] == Json{"70000", "70001", "70002"});
  // Another vocabulary than the prepared one is no data.
  CHECK_THROWS_AS(
      tasks::find_task("lm").forecast(
          registry(), make_cell("lm", "latte", "auto", with(said, {{"vocabulary", n(70'025)}}))),
      tasks::data::MissingData);
}

TEST_CASE("a model of words has a perplexity, and the bits of a byte of the test's file", "[lm]") {
  std::string train, test;
  for (int i = 0; i < 300; ++i) train += "the <unk> sat on the mat\n";
  for (int i = 0; i < 20; ++i) test += "the mat sat on the <unk>\n";
  tasks::data::lm::TextFileRules rules;
  rules.encoding = tasks::data::lm::Encoding::words;
  rules.vocabulary = 6;
  rules.division = tasks::data::lm::Division::files;
  const PreparedText prepared(
      {{"wiki.train.tokens", train}, {"wiki.valid.tokens", test}, {"wiki.test.tokens", test}},
      rules);
  const Settings said =
      with(small_model(),
           {{"tokens", s("words")}, {"vocabulary", n(6)}, {"split", s("files")}, {"steps", n(20)}});
  const Json metrics =
      run_cell(registry(), "lm", make_cell("lm", "latte", "auto", said)).sections["metrics"];
  const double bits_of_a_word = std::log2(metrics["perplexity"].get<double>());
  const double bytes_of_a_word = static_cast<double>(test.size()) / (20 * 7);
  CHECK(metrics["bits_per_byte"].get<double>() == Approx(bits_of_a_word / bytes_of_a_word));
  CHECK(metrics.contains("validation_perplexity"));
}
