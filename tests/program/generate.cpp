// Trained models that generate bytes and score texts, as a user runs them.
#include <signal.h>

#include <random>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// A few steps of recall over 256 symbols: a model of bytes, if not of texts.
Json over_bytes(const Json& more = Json::object()) {
  Json set = {
      {"vocabulary", 256},        {"length", 32},       {"pairs", 2}, {"train_examples", 40},
      {"validation_examples", 8}, {"test_examples", 8}, {"epochs", 1}};
  set.update(more);
  return set;
}

std::vector<std::string> command_with(const std::string& command, const std::string& run,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> words{program(), command, run};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Finished generated(const TrainingSuite& suite, const std::vector<std::string>& more) {
  return run(command_with("generate", suite.run_folder(), more), 120, TrainingSuite::environment());
}

void train(const TrainingSuite& suite, std::vector<std::string> more = {}) {
  more.emplace_back("--keep-checkpoints");
  const Finished done = run(suite.command(more), 300, TrainingSuite::environment());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
}

void check_refused(const TrainingSuite& suite, const std::vector<std::string>& more,
                   const std::string& why) {
  const Finished bad = generated(suite, more);
  INFO(bad.err);
  CHECK(bad.exit_code == 2);
  CHECK(bad.out.empty());
  CHECK_THAT(bad.err, Contains(why));
}

std::string random_text(std::size_t size) {
  std::mt19937 random(3);
  std::string text(size, ' ');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

/// What a command that has to succeed gave.
Finished done_well(const std::vector<std::string>& command) {
  Finished done = run(command, 300, TrainingSuite::environment());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  return done;
}

double number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

}  // namespace

TEST_CASE("a trained model generates bytes and scores a text", "[generate]") {
  const TrainingSuite suite(
      TrainingSuite::Mechanisms{{{"latte", Json::object()}, {"softmax", Json::object()}}},
      over_bytes());
  train(suite);
  const std::vector<std::string> latte{"--cell", "latte", "--prompt", "The ", "--bytes", "70"};
  const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return generated(suite, words);
  };
  const Finished greedy = with(latte, {});
  INFO(greedy.err);
  REQUIRE(greedy.exit_code == 0);
  CHECK(greedy.out.size() == 70);
  CHECK_THAT(greedy.err, Contains("latte/") && Contains("70 bytes") && Contains("state"));
  CHECK(with(latte, {"--seed", "5"}).out == greedy.out);  // nothing is drawn
  const std::string hot = with(latte, {"--temperature", "2", "--seed", "5"}).out;
  CHECK(hot.size() == 70);
  CHECK(hot == with(latte, {"--temperature", "2", "--seed", "5"}).out);
  CHECK(hot != with(latte, {"--temperature", "2", "--seed", "6"}).out);
  CHECK(hot != greedy.out);
  CHECK(generated(suite, {"--cell", suite.cells().at("softmax")["id"].get<std::string>(),
                          "--prompt", "a", "--bytes", "40"})
            .out.size() == 40);

  const std::string text = suite / "text";
  write_file(text, random_text(100'000));
  const Finished scored = generated(suite, {"--cell", "latte", "--score", text});
  INFO(scored.err);
  REQUIRE(scored.exit_code == 0);
  CHECK_THAT(scored.out, Contains("99999 bytes"));
  // Random bytes take 8 bits each, and more from a model that expects something else.
  CHECK(std::stod(scored.out) >= 8);
  // A cache of all keys would be a tenth and more of the process; the allocator's own pages vary by
  // 2 %. The 1 % that a state may grow by is held in tests/tasks/training/model_state.cpp.
  CHECK(number_after(scored.out.substr(scored.out.find(", ", scored.out.find("memory"))), ", ") <
        5);

  check_refused(suite, {"--prompt", "x"}, "several cells have checkpoints");
  check_refused(suite, {"--cell", "lat", "--prompt", "x"}, "no cell \"lat\"");
  check_refused(suite, {"--cell", "latte"}, "--prompt TEXT or --score FILE");
  check_refused(suite, {"--cell", "latte", "--prompt", ""}, "--prompt is empty");
  check_refused(suite, {"--cell", "latte", "--prompt", "x", "--temperature", "-1"},
                "--temperature");
  check_refused(suite, {"--cell", "latte", "--prompt", "x", "--temperature", "nan"},
                "--temperature");
  check_refused(suite, {"--cell", "latte", "--prompt", "x", "--bytes", "0"}, "--bytes");
  check_refused(suite, {"--cell", "latte", "--prompt", "x", "--score", text}, "--prompt is for");
  check_refused(suite, {"--cell", "latte", "--score", suite / "none"}, "no such file");
  check_refused(suite, {"--cell", "latte", "--score", suite.run_folder()}, "not a file");
  check_refused(suite, {"--cell", "latte", "--score", "/dev/zero"}, "not a file");
  write_file(suite / "short", "a");
  check_refused(suite, {"--cell", "latte", "--score", suite / "short"}, "at least two bytes");
  const std::vector<std::string> narrow{"--cell",  "softmax", "--prompt",   "The quick brown",
                                        "--bytes", "9",       "--capacity", "16"};
  check_refused(suite, narrow, "room for 16");
  std::vector<std::string> wide = narrow;
  wide.back() = "23";  // the last byte is not read
  CHECK(generated(suite, wide).out.size() == 9);
  std::vector<std::string> fixed = narrow;
  fixed[1] = "latte";  // whose state has no such room
  CHECK(generated(suite, fixed).out.size() == 9);

  const std::string checkpoint = suite.checkpoint();
  const std::string whole = read_file(checkpoint);
  write_file(checkpoint, whole.substr(0, whole.size() / 2));
  const std::string damaged = std::filesystem::path(checkpoint).parent_path().filename();
  check_refused(suite, {"--cell", damaged, "--prompt", "x"}, "is cut short");
  std::filesystem::remove_all(suite.run_folder() + "/checkpoints");
  check_refused(suite, {"--cell", "latte", "--prompt", "x"}, "--keep-checkpoints");
  check_refused(suite, {"--prompt", "x"}, "holds no checkpoint");
  const Finished no_run = run({program(), "generate", suite / "nowhere", "--prompt", "x"}, 60,
                              TrainingSuite::environment());
  CHECK(no_run.exit_code == 2);
  CHECK_THAT(no_run.err, Contains("not the folder of a run"));
}

TEST_CASE("a language model of a text generates its letters and scores it", "[generate][lm]") {
  const std::string sentence = "the cat sat on the mat; ";
  std::string text;
  for (int i = 0; i < 400; ++i) text += sentence;
  const TemporaryFolder folder;
  write_file(folder / "mat.txt", text);
  const std::string data = folder / "data";
  done_well({program(), "data", "lm", "--from", folder / "mat.txt", "--out", data});
  write_file(folder / "suite.json",
             R"({"name": "mat", "task": "lm", "mechanisms": ["latte"],
    "set": {"length": 32, "width": 32, "heads": 2, "layers": 1, "positions": "sinusoidal",
            "batch": 8, "steps": 100, "evaluate_every": 50, "warm_up_steps": 10,
            "learning_rate": 0.01}})");
  const std::string trained = folder / "run";
  done_well({program(), "run", folder / "suite.json", "--data", data, "--out", trained, "--threads",
             "2", "--no-ceilings", "--no-report", "--keep-checkpoints"});

  // Longer than a sequence of its training.
  const Finished made = done_well(
      command_with("generate", trained,
                   {"--cell", "latte", "--prompt", "the c", "--bytes", "60", "--data", data}));
  CHECK(made.out.size() == 60);
  // Bytes that the text lacks were never right.
  CHECK(made.out.find_first_not_of(sentence) == std::string::npos);

  const auto bits_of = [&](const std::string& file) {
    return std::stod(done_well(command_with("generate", trained,
                                            {"--cell", "latte", "--score", file, "--data", data}))
                         .out);
  };
  write_file(folder / "random", random_text(2000));
  const double own = bits_of(folder / "mat.txt");
  CHECK(own > 0);
  CHECK(own < 5);  // 11 letters take fewer than 3.5 bits each without any context
  CHECK(bits_of(folder / "random") > 8);
}

TEST_CASE("a model that classifies does not generate, with the reason", "[generate][lra]") {
  const TemporaryFolder folder;
  const std::vector<std::string> rows{"--set", "length_minimum=10",
                                      "--set", "length_maximum=60",
                                      "--set", "depth=5",
                                      "--set", "train_examples=200",
                                      "--set", "validation_examples=20",
                                      "--set", "test_examples=20"};
  std::vector<std::string> prepared{program(), "data", "lra.listops"};
  prepared.insert(prepared.end(), rows.begin(), rows.end());
  prepared.insert(prepared.end(), {"--out", folder / "data"});
  done_well(prepared);
  write_file(folder / "suite.json",
             R"({"name": "lists", "task": "lra.listops", "mechanisms": ["latte"],
    "set": {"length_minimum": 10, "length_maximum": 60, "depth": 5, "length": 64,
            "train_examples": 200, "validation_examples": 20, "test_examples": 20,
            "width": 16, "heads": 2, "layers": 1, "positions": "learned", "batch": 8, "steps": 4,
            "evaluate_every": 2, "learning_rate": 0.003}})");
  const std::string trained = folder / "run";
  done_well({program(), "run", folder / "suite.json", "--data", folder / "data", "--out", trained,
             "--threads", "2", "--no-ceilings", "--no-report", "--keep-checkpoints"});
  for (const std::vector<std::string>& wanted :
       {std::vector<std::string>{"--prompt", "x"},
        std::vector<std::string>{"--score", folder / "suite.json"}}) {
    const Finished bad =
        run(command_with("generate", trained, wanted), 120, TrainingSuite::environment());
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK(bad.out.empty());
    CHECK_THAT(bad.err, Contains("classifies whole sequences"));
  }
}

TEST_CASE("models that do not generate are refused with the reason", "[generate]") {
  const TrainingSuite narrow(over_bytes({{"vocabulary", 64}}));
  train(narrow);
  check_refused(narrow, {"--prompt", "x"}, "its vocabulary is 64");
  const TrainingSuite placed(over_bytes({{"positions", "learned"}}));
  train(placed);
  check_refused(placed, {"--prompt", "x", "--bytes", "33"}, "learned positions end at 32");
  CHECK(generated(placed, {"--prompt", "x", "--bytes", "32"}).out.size() == 32);
}

TEST_CASE("another build and a mechanism without a state are refused", "[generate]") {
  const TrainingSuite suite(TrainingSuite::Mechanisms{{{"misbehave", Json::object()}}},
                            over_bytes());
  const std::string plugin = suite / "plugin.so";
  write_file(plugin, read_file(misbehave_plugin()));
  train(suite, {"--plugin", plugin});
  check_refused(suite, {"--prompt", "x"}, "misbehave has no decoding state");
  write_file(plugin, read_file(plugin) + "another build");
  check_refused(suite, {"--prompt", "x"}, "was built anew");
}

TEST_CASE("an interrupted generation keeps what was made", "[generate]") {
  const TrainingSuite suite(over_bytes());
  train(suite);
  const auto file = suite / "output";
  Running at_work(
      command_with("generate", suite.run_folder(), {"--prompt", "x", "--bytes", "1000000000"}),
      file, TrainingSuite::environment());
  REQUIRE(
      wait_until([&] { return std::filesystem::exists(file) && read_file(file).size() > 20; }, 60));
  at_work.signal(SIGINT);
  CHECK(at_work.wait(20) == 130);
  CHECK_THAT(read_file(file), Contains("interrupted; ") && Contains(" bytes were generated"));
}
