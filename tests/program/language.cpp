// attnbench data lm, and language models trained on what it prepares.
#include <set>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// Letters that follow from those before.
std::string regular_text(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += "the cat sat on the mat; "[i % 24];
  return text;
}

Finished prepare(const std::vector<std::string>& words) {
  std::vector<std::string> command{program(), "data"};
  command.insert(command.end(), words.begin(), words.end());
  return run(command, 120);
}

}  // namespace

TEST_CASE("a text is prepared, listed, and a language model of it has bits per byte", "[lm]") {
  const TemporaryFolder folder;
  write_file(folder / "mat.txt", regular_text(8000));
  const std::string data = folder / "data";
  const Finished done = prepare({"lm", "--from", folder / "mat.txt", "--out", data, "--show", "1"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Contains("train: 7,200 bytes") && Contains("test: 400 bytes") &&
                           Contains("the cat sat"));
  CHECK_THAT(done.out, !Contains("class"));
  const Finished listed = prepare({"--list", "--data", data});
  CHECK_THAT(listed.out, Contains("text=mat.txt") && Contains("from mat.txt"));

  const std::string suite = folder / "suite.json";
  write_file(suite, R"({"name": "mat", "task": "lm", "mechanisms": ["softmax", "latte"],
    "set": {"length": 32, "width": 16, "heads": 2, "layers": 1, "batch": 8, "steps": 40,
            "evaluate_every": 10, "learning_rate": 0.01, "segments": "1, 2",
            "latent_probabilities": 8}})");
  const Finished ran =
      run({program(), "run", suite, "--data", data, "--threads", "1", "--out", folder / "run"}, 300,
          TrainingSuite::environment());
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, Contains("bits per byte") && Contains("counts after two bytes"));
  CHECK_THAT(ran.out, !Contains("accuracy"));
  CHECK_THAT(ran.err, Contains("bits per byte (validation"));
  const Json cell = Json::parse(read_file(folder / "run/result.json"))["attnbench"]["cells"][1];
  CHECK(cell["label"] == "latte");
  CHECK(cell["training"]["judged_by"] == "loss");
  CHECK(cell["training"]["curve"].size() == 4);
  std::set<std::string> figures;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run/figures")) {
    figures.insert(entry.path().filename().string());
  }
  CHECK(figures.count("lm_bits_per_byte.vl.json") == 1);
  CHECK(figures.count("lm_bits_per_byte_over_length.vl.json") == 1);
  CHECK(cell["training"]["latent_probabilities"]["tokens"].size() == 8);
  CHECK(figures.count("lm_latent_probabilities.vl.json") == 1);
}

TEST_CASE("texts that cannot be prepared are refused, cells without one are skipped", "[lm]") {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  write_file(folder / "short", "abc");
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    words.insert(words.begin(), "lm");
    words.insert(words.end(), {"--out", folder / "out"});
    const Finished bad = prepare(words);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  };
  refused({}, "--from FILE");
  refused({"--from", folder / "empty"}, "neither a folder nor a file with content");
  refused({"--from", folder / "short"}, "leave a split without bytes");
  refused({"--from", folder / "short", "--set", "split=enwik8"}, "enwik8 has 100000000");
  refused({"--from", folder / "short", "--set", "split=halves"}, "enwik8");
  refused({"--from", folder / "short", "--set", "test_share=2"}, "test_share");
  refused({"--from", "/dev/zero"}, "neither a folder nor a file");
  refused({"--from", folder / "short", "--seed", "3"}, "prepared once");

  write_file(folder / "suite.json",
             R"({"name": "none", "task": "lm", "mechanisms": ["softmax"], "set": {"width": 8}})");
  std::filesystem::create_directories(folder / "data");
  const Finished planned =
      run({program(), "plan", folder / "suite.json", "--data", folder / "data"}, 60,
          TrainingSuite::environment());
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("skipped") && Contains("attnbench data lm --from FILE"));
}
