// Trained models that generate bytes and score texts, as a user runs them. language.cpp does so
// with a model of a text.
#include <signal.h>

#include <random>

#include "tests/end_to_end/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// A few steps of recall over 256 symbols, kept for all that look at the models: they know bytes,
/// if not texts. One is of a plugin's mechanism, which has no decoding state.
struct Trained {
  Trained() : suite(models(), over_bytes()), plugin(suite / "plugin.so") {
    write_file(plugin, read_file(misbehave_plugin()));
    const Finished done = suite.run("--keep-checkpoints --plugin " + plugin);
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
  }
  static TrainingSuite::Mechanisms models() {
    return {{{"latte", Json::object()},
             {"softmax", Json::object()},
             {"hybrid", {{"use", "delta"}, {"layers", 4}, {"stack", "self + softmax"}}},
             {"narrow", {{"use", "latte"}, {"vocabulary", 64}}},
             {"placed", {{"use", "latte"}, {"positions", "learned"}}},
             {"misbehave", Json::object()}}};
  }
  static Json over_bytes() {
    return {{"vocabulary", 256},        {"length", 32},       {"pairs", 2}, {"train_examples", 40},
            {"validation_examples", 8}, {"test_examples", 8}, {"epochs", 1}};
  }
  Finished generate(const std::string& more) const {
    return call("generate " + suite.run_folder() + " " + more);
  }
  void check_refused(const std::string& more, const std::string& why) const {
    const Finished bad = generate(more);
    INFO(more << "\n" << bad.err);
    CHECK(bad.exit_code == 2);
    CHECK(bad.out.empty());
    CHECK_THAT(bad.err, Contains(why));
  }

  TrainingSuite suite;
  std::string plugin;
};

const Trained& trained() {
  static const Trained once;
  return once;
}

std::string random_bytes(std::size_t size) {
  std::mt19937 random(3);
  std::string text(size, ' ');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

double number_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + before.size()));
}

}  // namespace

TEST_CASE("a trained model generates bytes and scores a text", "[generate]") {
  const std::string latte = "--cell latte --prompt The --bytes 70";
  const Finished greedy = trained().generate(latte);
  INFO(greedy.err);
  REQUIRE(greedy.exit_code == 0);
  CHECK(greedy.out.size() == 70);
  CHECK_THAT(greedy.err, Contains("latte/") && Contains("70 bytes") && Contains("state"));
  CHECK(trained().generate(latte + " --seed 5").out == greedy.out);  // nothing is drawn
  const std::string hot = trained().generate(latte + " --temperature 2 --seed 5").out;
  CHECK(hot.size() == 70);
  CHECK(hot == trained().generate(latte + " --temperature 2 --seed 5").out);
  CHECK(hot != trained().generate(latte + " --temperature 2 --seed 6").out);
  CHECK(hot != greedy.out);
  const std::string id = trained().suite.cells().at("softmax")["id"];
  CHECK(trained().generate("--cell " + id + " --prompt a --bytes 40").out.size() == 40);
  CHECK(trained().generate("--cell hybrid --prompt a --bytes 40").out.size() == 40);

  const std::string text = trained().suite / "text";
  write_file(text, random_bytes(100'000));
  const Finished scored = trained().generate("--cell latte --raw --score " + text);
  INFO(scored.err);
  REQUIRE(scored.exit_code == 0);
  CHECK_THAT(scored.out, Contains("99999 bytes"));
  // Random bytes take 8 bits each, and more from a model that expects something else.
  CHECK(std::stod(scored.out) >= 8);
  // A cache of all keys would be a tenth and more of the process; the allocator's own pages vary by
  // 2 %. The 1 % that a state may grow by is held in tests/tasks/training/model_state.cpp.
  CHECK(number_after(scored.out.substr(scored.out.find(", ", scored.out.find("memory"))), ", ") <
        5);
}

TEST_CASE("a generation that cannot be is refused with the reason", "[generate]") {
  const TemporaryFolder folder;
  write_file(folder / "short", "a");
  write_file(folder / "random", random_bytes(1000));
  write_file(folder / "packed", "PK\3\4 and so on");
  const std::string latte = "--cell latte ";
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"--prompt x", "several cells have checkpoints"},
           {"--cell lat --prompt x", "no cell \"lat\""},
           {latte, "--prompt TEXT or --score FILE"},
           {latte + "--prompt \"\"", "--prompt: expected a text"},
           {latte + "--prompt x --temperature -1", "--temperature"},
           {latte + "--prompt x --temperature nan", "--temperature"},
           {latte + "--prompt x --bytes 0", "--bytes"},
           {latte + "--prompt x --score x", "--prompt is for"},
           {latte + "--score " + (folder / "none").string(), "no such file"},
           {latte + "--score " + folder.path().string(), "not a file"},
           {latte + "--score /dev/zero", "not a file"},
           {latte + "--score " + (folder / "random").string(), "control characters"},
           {latte + "--score " + (folder / "packed").string(), "looks like a zip archive"},
           {latte + "--score " + (folder / "short").string(), "at least two bytes"},
           {"--cell softmax --prompt The_quick_brown --bytes 9 --capacity 16", "room for 16"},
           {"--cell narrow --prompt x", "its vocabulary is 64"},
           {"--cell placed --prompt x --bytes 33", "learned positions end at 32"},
           {"--cell misbehave --prompt x", "misbehave has no decoding state"}}) {
    trained().check_refused(line, why);
  }
  const std::string wide = " --prompt The_quick_brown --bytes 9 --capacity ";
  CHECK(trained().generate("--cell softmax" + wide + "23").out.size() ==
        9);                                                                 // the last is not read
  CHECK(trained().generate("--cell latte" + wide + "16").out.size() == 9);  // has no such room
  CHECK(trained().generate("--cell placed --prompt x --bytes 32").out.size() == 32);
  const Finished no_run = call("generate " + (folder / "nowhere").string() + " --prompt x");
  CHECK(no_run.exit_code == 2);
  CHECK_THAT(no_run.err, Contains("not the folder of a run"));
}

TEST_CASE("another build, a damaged checkpoint and none are refused", "[generate][night]") {
  const Trained own;
  const std::string checkpoints = own.suite.run_folder() + "/checkpoints";
  const std::string id = own.suite.cells().at("latte")["id"];
  const std::string whole = read_file(checkpoints + "/" + id + "/checkpoint.pt");
  write_file(checkpoints + "/" + id + "/checkpoint.pt", whole.substr(0, whole.size() / 2));
  own.check_refused("--cell " + id + " --prompt x", "is cut short");
  write_file(own.plugin, read_file(own.plugin) + "another build");
  own.check_refused("--cell misbehave --prompt x", "was built anew");
  std::filesystem::remove_all(checkpoints);
  own.check_refused("--cell latte --prompt x", "--keep-checkpoints");
  own.check_refused("--prompt x", "holds no checkpoint");
}

TEST_CASE("a model that classifies does not generate, with the reason", "[generate][lra][night]") {
  const TemporaryFolder folder;
  const std::string data = folder / "data", run = folder / "run";
  REQUIRE(call("data lra.listops --set length_minimum=10 --set length_maximum=60 --set depth=5 "
               "--set train_examples=40 --set validation_examples=20 --set test_examples=20 "
               "--out " +
               data)
              .exit_code == 0);
  write_file(folder / "suite.json",
             R"({"name": "lists", "task": "lra.listops", "mechanisms": ["latte"],
    "set": {"length_minimum": 10, "length_maximum": 60, "depth": 5, "length": 64,
            "train_examples": 40, "validation_examples": 20, "test_examples": 20,
            "width": 16, "heads": 2, "layers": 1, "positions": "learned", "batch": 8, "steps": 4,
            "evaluate_every": 2, "learning_rate": 0.003}})");
  REQUIRE(call("run " + (folder / "suite.json").string() + " --data " + data +
               " --threads 2 --no-ceilings --no-report --keep-checkpoints --out " + run)
              .exit_code == 0);
  for (const std::string& wanted :
       {std::string("--prompt x"), "--score " + (folder / "suite.json").string()}) {
    const Finished bad = call("generate " + run + " " + wanted);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK(bad.out.empty());
    CHECK_THAT(bad.err, Contains("classifies whole sequences"));
  }
}

TEST_CASE("an interrupted generation keeps what was made", "[generate][processes]") {
  const TemporaryFolder folder;
  const std::string file = folder / "output";
  Running at_work(words(program() + " generate " + trained().suite.run_folder() +
                        " --cell latte --prompt x --bytes 1000000000"),
                  file);
  REQUIRE(wait_until([&] { return contents(file).size() > 20; }));
  at_work.signal(SIGINT);
  CHECK(at_work.wait() == 130);
  CHECK_THAT(read_file(file), Contains("interrupted; ") && Contains(" bytes were generated"));
}
