// attnbench import FILE…: what other programs measured, beside a result of ours; or what a trace of
// FlashInfer's asks for, as a suite.
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/run/folder/foreign.hpp"
#include "harness/program/run/folder/samples.hpp"
#include "harness/program/trace/trace_suite.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct ImportArguments {
  std::vector<std::string> files;
  std::string beside;
  std::string out;
  bool from_trace = false;
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

int import_records(const ImportArguments& arguments) {
  for (const auto& [flag, value] :
       {std::pair{"--beside", &arguments.beside}, {"--out", &arguments.out}}) {
    if (value->empty()) {
      throw UsageFailure(std::string(flag) +
                         " is required for foreign records; FILE of FlashInfer's trace is read "
                         "with --from-trace");
    }
  }
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

/// "gqa_paged_decode_h32_kv8_d128_ps1: 3 workloads left out: REASON".
std::string line_of(const trace::LeftOut& left) {
  std::string text = left.definition + ": ";
  if (left.workloads > 0) {
    text += std::to_string(left.workloads) + (left.workloads == 1 ? " workload " : " workloads ");
  }
  return text::printable(text + "left out: " + left.reason);
}

/// 2 where nothing could be taken.
int import_trace(const ImportArguments& arguments) {
  if (!arguments.beside.empty()) {
    throw UsageFailure("--beside is of foreign records, which --from-trace does not read");
  }
  const auto out = output_file("--out", arguments.out, "import", /*force=*/false);
  const trace::TraceSuite made = trace::suite_of(trace::read_trace_files(arguments.files));
  for (const trace::LeftOut& left : made.left_out) std::cerr << line_of(left) << "\n";
  if (made.sizes == 0) {
    throw UsageFailure("nothing of these files is attention that a suite can ask for");
  }
  const std::string text = trace::suite_text(made.suite);
  if (out) {
    out->write(text);
  } else {
    std::cout << text;
  }
  return 0;
}

}  // namespace

void declare_import(Command& command) {
  const auto arguments = std::make_shared<ImportArguments>();
  command.option("FILE", arguments->files, "files of foreign records (JSON), or of a trace")
      .required();
  command.option("--beside", arguments->beside,
                 "the run with the same cells: its folder or a result.json");
  command.option("--out", arguments->out,
                 "folder for the joined result.json; with --from-trace the suite's file, else "
                 "standard output");
  command.flag("--from-trace", arguments->from_trace,
               "FILEs are definitions and workloads of FlashInfer's trace: writes a suite of those "
               "that are attention");
  command.footer(
      "The joined result is drawn by attnbench report. Attention that Python can call needs no "
      "file:\nit is measured in the run itself (attnbench run peers).");
  command.runs([arguments] {
    return arguments->from_trace ? import_trace(*arguments) : import_records(*arguments);
  });
}

}  // namespace attnbench::commands
