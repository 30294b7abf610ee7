// attnbench import: what other programs measured, set beside a result of ours.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/commands/command.hpp"
#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "harness/run/folder/foreign.hpp"
#include "core/text/printable.hpp"
#include "core/json_file.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
using result::Json;

struct Arguments {
  std::vector<std::string> files;
  std::string beside;
  std::string out;
};

Json read_json(const std::string& file) {
  return result::parse_json_file(file, "a file of foreign records, in JSON");
}

/// A comparison of programs that had different means is worth a word.
void warn_of_threads(const Json& ours, const Json& foreign, const std::string& file) {
  const Json threads = ours.at("attnbench").at("run").value("threads", Json());
  if (!threads.is_number() || threads == foreign.at("threads")) return;
  std::cerr << file << ": measured with " << foreign.at("threads")
            << " threads, the run beside it with " << threads << "\n";
}

int run_import(const Arguments& arguments) {
  Json joined = result::read_result(arguments.beside);
  for (const std::string& file : arguments.files) {
    const Json foreign = read_json(file);
    try {
      joined = result::with_foreign(joined, foreign, file);
    } catch (const Json::exception& error) {
      throw UsageFailure(result::quotable(file) + ": /records: " + result::json_complaint(error) +
                         ", in it or in " + result::quotable(arguments.beside) + " beside it");
    }
    warn_of_threads(joined, foreign, file);
  }
  const fs::path out = fs::path(arguments.out) / "result.json";
  std::error_code error;
  if (fs::exists(out, error)) {
    throw UsageFailure(out.string() + ": is there already; --out names a folder without a result");
  }
  fs::create_directories(out.parent_path(), error);
  if (error) throw EnvironmentFailure(arguments.out + ": " + error.message());
  result::write_result(out, joined);
  std::cout << out.string() << "\n";
  return 0;
}

}  // namespace

void add_import(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "import", "Set what other programs measured beside a result, labelled as theirs");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("FILE", arguments->files, "files of foreign records (JSON)")->required();
  command
      ->add_option("--beside", arguments->beside,
                   "the run whose cells they solved: its folder or a result.json")
      ->required();
  command->add_option("--out", arguments->out, "folder for the joined result.json")->required();
  command->footer(
      "The joined result is drawn by attnbench report. tests/benchmarks/peers/ has scripts that "
      "write\nsuch files: PyTorch's and JAX's own attention on the cells of a run.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return run_import(*arguments); }; });
}

}  // namespace attnbench::commands
