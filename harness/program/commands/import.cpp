// attnbench import FILE…: what other programs measured, beside a result of ours.
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/result/document.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/run/folder/foreign.hpp"
#include "harness/program/run/folder/samples.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct ImportArguments {
  std::vector<std::string> files;
  std::string beside;
  std::string out;
};

Json read_json(const std::string& file) {
  return parse_json_file(file, "a file of foreign records, in JSON");
}

/// Warns where other programs ran with another number of threads.
void warn_of_threads(const result::Result& ours, const Json& foreign, const std::string& file) {
  const int theirs = run::threads_of_foreign(foreign, file);
  if (ours.run.threads.value_or(theirs) == theirs) return;
  std::cerr << file << ": measured with " << theirs << " threads, the run beside it with "
            << *ours.run.threads << "\n";
}

int run_import(const ImportArguments& arguments) {
  result::Result joined = run::with_samples_there(arguments.beside);
  for (const std::string& file : arguments.files) {
    const Json foreign = read_json(file);
    joined = run::with_foreign(std::move(joined), foreign, file);
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

void declare_import(Command& command) {
  const auto arguments = std::make_shared<ImportArguments>();
  command.option("FILE", arguments->files, "files of foreign records (JSON)").required();
  command
      .option("--beside", arguments->beside,
              "the run with the same cells: its folder or a result.json")
      .required();
  command.option("--out", arguments->out, "folder for the joined result.json").required();
  command.footer(
      "The joined result is drawn by attnbench report. Attention that Python can call needs no "
      "file:\nit is measured in the run itself (attnbench run peers).");
  command.runs([arguments] { return run_import(*arguments); });
}

}  // namespace attnbench::commands
