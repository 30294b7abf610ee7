// attnbench data lm, and language models trained on what it prepares.
#include <random>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const std::string sentence = "the cat sat on the mat; ";

std::string random_text(std::size_t size) {
  std::mt19937 random(3);
  std::string text(size, ' ');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

/// What a command that has to succeed gave.
Finished done_well(const std::string& line) {
  Finished done = call(line);
  INFO(line << "\n" << done.err);
  REQUIRE(done.exit_code == 0);
  return done;
}

}  // namespace

TEST_CASE("a text is prepared, and a language model of it has bits per byte, generates and scores",
          "[lm][generate]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 334; ++i) text += sentence;
  const std::string file = folder / "mat.txt", data = folder / "data", trained = folder / "run";
  write_file(file, text.substr(0, 8000));
  const Finished prepared = done_well("data lm --show 1 --from " + file + " --out " + data);
  CHECK_THAT(prepared.out, Contains("train: 7,200 bytes") && Contains("test: 400 bytes") &&
                               Contains("the cat sat") && !Contains("class"));
  CHECK_THAT(done_well("data --list --data " + data).out,
             Contains("text=mat.txt") && Contains("from mat.txt"));

  write_file(folder / "suite.json", R"({"name": "mat", "task": "lm",
    "mechanisms": {"softmax": {"steps": 20}, "latte": {}},
    "set": {"length": 32, "width": 32, "heads": 2, "layers": 1, "positions": "sinusoidal",
            "batch": 8, "steps": 100, "evaluate_every": 50, "warm_up_steps": 10,
            "learning_rate": 0.01, "segments": "1, 2", "latent_probabilities": 8}})");
  const Finished ran = done_well("run " + (folder / "suite.json").string() + " --data " + data +
                                 " --threads 2 --no-ceilings --keep-checkpoints --out " + trained);
  CHECK_THAT(ran.out, Contains("bits per byte") && Contains("counts after two bytes") &&
                          !Contains("accuracy"));
  CHECK_THAT(ran.err, Contains("bits per byte (validation"));
  const Json training = cells_of(trained).at("latte")["training"];
  CHECK(training["judged_by"] == "loss");
  CHECK(training["curve"].size() == 2);
  CHECK(training["latent_probabilities"]["tokens"].size() == 8);
  for (const char* name : {"bits_per_byte", "bits_per_byte_over_length", "latent_probabilities"}) {
    INFO(name);
    CHECK(std::filesystem::exists(trained + "/figures/lm_" + name + ".vl.json"));
  }

  // Longer than a sequence of its training.
  const std::string generate = "generate " + trained + " --data " + data + " --cell latte ";
  const Finished made = done_well(generate + "--prompt the --bytes 60");
  CHECK(made.out.size() == 60);
  // Bytes that the text lacks were never right.
  CHECK(made.out.find_first_not_of(sentence) == std::string::npos);
  write_file(folder / "random", random_text(2000));
  const double own = std::stod(done_well(generate + "--score " + file).out);
  CHECK(own > 0);
  CHECK(own < 5);  // 11 letters take fewer than 3.5 bits each without any context
  CHECK(std::stod(done_well(generate + "--raw --score " + (folder / "random").string()).out) > 8);

  // Another text that has the same name.
  const std::string others = folder / "others", renewed = folder / "renewed";
  std::filesystem::create_directories(renewed);
  write_file(renewed + "/mat.txt", text.substr(1, 8000));
  done_well("data lm --from " + renewed + "/mat.txt --out " + others);
  const Finished other =
      call("generate " + trained + " --data " + others + " --cell latte --score " + file);
  CHECK(other.exit_code == 2);
  CHECK(other.out.empty());
  CHECK_THAT(other.err, Contains("learned from data with the content hash"));
}

TEST_CASE("ids of a tokeniser are prepared, trained on and ranked by perplexity", "[lm]") {
  const TemporaryFolder folder;
  std::string ids;  // uint16, each follows from the one before
  for (int i = 0; i < 4000; ++i) {
    ids += static_cast<char>(i % 24);
    ids += static_cast<char>(1);
  }
  write_file(folder / "owt/train.bin", ids);
  write_file(folder / "owt/val.bin", ids.substr(0, 800));
  const std::string data = folder / "data", run = folder / "run";
  const std::string said = "data lm --set split=files --set tokens=uint16 --from " +
                           (folder / "owt").string() + " --out " + data;
  const Finished prepared = done_well(said + " --set vocabulary=280 --show 1");
  CHECK_THAT(prepared.out, Contains("train: 4,000 tokens") && Contains("test: 400 tokens") &&
                               Contains("256 257 258") && Contains("no file is named test"));
  const Finished small = call(said + " --set vocabulary=279");
  CHECK(small.exit_code == 2);
  CHECK_THAT(small.err, Contains("the id 279 at place 23") && Contains("vocabulary of 279"));
  write_file(folder / "suite.json", R"({"name": "ids", "task": "lm",
    "mechanisms": {"softmax": {}, "latte": {}},
    "set": {"tokens": "uint16", "split": "files", "vocabulary": 280, "length": 32, "width": 32,
            "heads": 2, "layers": 1, "positions": "sinusoidal", "batch": 8, "steps": 40,
            "evaluate_every": 20, "warm_up_steps": 10, "learning_rate": 0.01, "segments": "1, 2"}})");
  const std::string suite = folder / "suite.json";
  const Finished ran = done_well("run " + suite + " --data " + data +
                                 " --threads 2 --no-ceilings --keep-checkpoints --out " + run);
  CHECK_THAT(ran.out, Contains("perplexity") && !Contains("bits per byte"));
  CHECK_THAT(ran.err, Contains("perplexity (validation"));
  CHECK(cells_of(run).at("latte")["metrics"]["perplexity"].get<double>() > 1);
  const Finished generated =
      call("generate " + run + " --data " + data + " --cell latte --prompt a --bytes 4");
  CHECK(generated.exit_code == 2);
  CHECK_THAT(generated.err, Contains("its tokens are uint16"));
  const Finished exported =
      call("data lm --data " + data + " --export " + (folder / "out").string());
  CHECK(exported.exit_code == 2);
  CHECK_THAT(exported.err, Contains("--as arrays"));
  done_well("data lm --data " + data + " --as arrays --export " + (folder / "out").string());
  CHECK(std::filesystem::exists(folder / "out/test.tokens.npy"));
}

TEST_CASE("texts that cannot be prepared are refused, cells without one are skipped", "[lm]") {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  write_file(folder / "short", "abc");
  const std::string from = " --from " + (folder / "short").string();
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"", "--from FILE"},
           {" --from " + (folder / "empty").string(), "neither a folder nor a file with content"},
           {from, "leave a split without bytes"},
           {from + " --set split=enwik8", "enwik8 has 100000000"},
           {from + " --set split=halves", "enwik8"},
           {from + " --set test_share=2", "test_share"},
           {" --from /dev/zero", "neither a folder nor a file"},
           {from + " --seed 3", "prepared once"}}) {
    const Finished bad = call("data lm --out " + (folder / "out").string() + line);
    INFO(line << "\n" << bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  }
  write_file(folder / "suite.json",
             R"({"name": "none", "task": "lm", "mechanisms": ["softmax"], "set": {"width": 8}})");
  std::filesystem::create_directories(folder / "data");
  const Finished planned =
      call("plan " + (folder / "suite.json").string() + " --data " + (folder / "data").string());
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("skipped") && Contains("attnbench data lm --from FILE"));
}
