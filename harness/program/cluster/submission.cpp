#include "harness/program/cluster/submission.hpp"

#include <algorithm>
#include <array>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell.hpp"

namespace attnbench::cluster {
namespace {

namespace fs = std::filesystem;

/// A value of an #SBATCH line, which Slurm reads as a shell would read double quotes.
std::string sbatch_word(const std::string& word) {
  std::string out = "\"";
  for (const char letter : word) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "\"";
}

std::string sbatch_line(const std::string& option) {
  const std::size_t equals = option.find('=');
  const std::string text =
      option.rfind("--", 0) == 0 && equals != std::string::npos
          ? option.substr(0, equals + 1) + sbatch_word(option.substr(equals + 1))
          : option;
  const bool one_line = std::none_of(text.begin(), text.end(), [](unsigned char letter) {
    return letter < ' ' || letter == 0x7f;
  });
  if (one_line) return "#SBATCH " + text + "\n";
  throw UsageFailure(
      text::quotable(text) +
      ": a line of a script for Slurm cannot hold a line break or another control character; "
      "choose other names, such as another --out");
}

bool starts_with_one_of(const std::string& text, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* beginning) { return text.rfind(beginning, 0) == 0; });
}

/// Whether an option says where a job may run or who pays for it: the merge has it, too.
bool names_place(const std::string& option) {
  const std::string name = option.substr(0, option.find('='));
  for (const char* known : {"--partition", "--account", "--qos", "--reservation", "--clusters"}) {
    if (name == known) return true;
  }
  return option.rfind("--", 0) != 0 && starts_with_one_of(option, {"-p", "-A", "-q", "-M"});
}

std::string beginning_of(const Submission& submission, const SubmissionFolder& folder,
                         const std::string& what, const std::string& log) {
  std::string script = "#!/bin/bash\n# " + what + "\n# Written by attnbench submit; see ";
  script += "submission.json beside it.\n";
  const bool named = std::any_of(submission.options.begin(), submission.options.end(),
                                 [](const std::string& option) {
                                   return starts_with_one_of(option, {"--job-name=", "-J"});
                                 });
  if (!named) script += sbatch_line("--job-name=attnbench " + submission.suite);
  std::string logs;
  for (const char letter : folder.logs().string()) {
    logs += letter == '%' ? "%%" : std::string(1, letter);  // Slurm's own: %a is the task
  }
  return script + sbatch_line("--output=" + logs + "/" + log);
}

/// The script's first lines: check that the node sees the submission, change to the folder that
/// `submit` was called in, and source the user's setup.
std::string preparation_of(const Submission& submission, const SubmissionFolder& folder) {
  const std::string record = text::shell_word(folder.record().string());
  std::string script = "if [ ! -e " + record +
                       " ]; then\n  echo \"attnbench: $(hostname) does not see \"" + record +
                       "\": submit from a folder that all nodes share\" >&2\n  exit 3\nfi\n";
  script += "cd " + text::shell_word(submission.started_in) + " || exit 3\n";
  if (submission.setup) {
    const std::string setup = text::shell_word(folder.setup().string());
    script += ". " + setup + " || { echo \"attnbench: setup.sh ended with $?\" >&2; exit 3; }\n";
  }
  return script;
}

}  // namespace

ATTNBENCH_JSON_CODEC(SubmittedCell) { JSON_AT(id, rounds); }

ATTNBENCH_JSON_CODEC(Submitted) { JSON_AT(array, merge, shards, at); }

ATTNBENCH_JSON_CODEC(Submission) {
  JSON_AT(schema, suite, program, binary, started_in, run, jobs, exclusive, exclusive_reason,
          options, setup, retry, cells, submitted);
}

bool holds_submission(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(SubmissionFolder{folder}.record(), ignored);
}

Submission read_submission(const SubmissionFolder& folder) {
  const std::string name = text::quotable(folder.path.string());
  if (!holds_submission(folder.path)) {
    throw UsageFailure(name + " is not the folder of a submission: it has no submission.json");
  }
  Submission submission;
  try {
    submission = parse_json_file(folder.record(), "a submission of attnbench").get<Submission>();
  } catch (const SchemaError& error) {
    throw UsageFailure(name + "/submission.json: " + error.what());
  }
  if (submission.schema != submission_schema) {
    throw UsageFailure(name + "/submission.json: /schema: expected " +
                       std::to_string(submission_schema) + ", found " +
                       std::to_string(submission.schema));
  }
  if (submission.jobs < 1 || submission.jobs > 100000) {
    throw UsageFailure(name + "/submission.json: /jobs: expected 1 to 100000, found " +
                       std::to_string(submission.jobs));
  }
  return submission;
}

void write_submission(const SubmissionFolder& folder, const Submission& submission) {
  write_atomically(folder.record(), nlohmann::json(submission).dump(1) + "\n");
}

std::string sbatch_option(const std::string& typed) {
  const std::string shown = text::quotable(typed);
  if (typed.empty() || typed.find_first_of("\n\r") != std::string::npos) {
    throw UsageFailure("--sbatch-option \"" + shown +
                       "\": expected an option of sbatch on one line");
  }
  const std::string option = typed.front() == '-' ? typed : "--" + typed;
  const std::string name = option.substr(0, option.find('='));
  constexpr std::array<const char*, 9> ours{"--array",  "-a", "--dependency", "-d",        "--wrap",
                                            "--output", "-o", "--chdir",      "--parsable"};
  for (const char* taken : ours) {
    const bool letter = taken[1] != '-' && option.rfind(taken, 0) == 0 && option[1] != '-';
    if (name != taken && !letter) continue;
    throw UsageFailure("--sbatch-option " + shown + ": attnbench sets " + taken + " itself");
  }
  if (name == "--exclusive") {
    throw UsageFailure("--sbatch-option " + shown +
                       ": say --exclusive or --shared to submit itself");
  }
  return option;
}

std::string shard_script(const Submission& submission, const SubmissionFolder& folder) {
  std::string script =
      beginning_of(submission, folder,
                   "One task: a shard of the suite, resumed where it was begun.", "shard_%a.log");
  script += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  if (submission.exclusive) script += "#SBATCH --exclusive\n";
  for (const std::string& option : submission.options) script += sbatch_line(option);
  script += "\n" + preparation_of(submission, folder);
  script += "shard=${SLURM_ARRAY_TASK_ID:?is set by Slurm for each task}\n";
  script += "folder=" + text::shell_word((folder.path / "shards").string()) + "/$shard\n";
  script += "share=(--shard \"$shard/" + std::to_string(submission.jobs) +
            "\" --progress plain --no-report)\n";
  std::string further;
  for (const std::string& status : submission.retry)
    further += " --retry " + text::shell_word(status);
  const bool bare = std::find(submission.run.begin(), submission.run.end(), "--no-ceilings") !=
                    submission.run.end();
  if (bare) further += " --no-ceilings";
  // The program takes the shell's place, so that Slurm's signals reach it.
  script += "if [ -e \"$folder/journal.jsonl\" ]; then\n  exec " +
            text::shell_word(submission.program) + " run --resume \"$folder\"" + further +
            " \"${share[@]}\"\nfi\n";
  script += "exec " + text::shell_word(submission.program) + " " +
            text::shell_words(submission.run) + " --out \"$folder\" \"${share[@]}\"\n";
  return script;
}

std::string merge_script(const Submission& submission, const SubmissionFolder& folder) {
  std::string script =
      beginning_of(submission, folder, "Merges the shards, whatever became of them.", "merge.log");
  for (const std::string& option : submission.options) {
    if (names_place(option)) script += sbatch_line(option);
  }
  script += "\n" + preparation_of(submission, folder);
  script += "exec " +
            text::shell_words({submission.program, "merge", folder.path.string(), "--out",
                               folder.merged().string()}) +
            "\n";
  return script;
}

std::string array_text(const std::vector<int>& shards) {
  std::string text;
  for (std::size_t i = 0; i < shards.size();) {
    std::size_t end = i;
    while (end + 1 < shards.size() && shards[end + 1] == shards[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(shards[i]);
    if (end > i) text += '-' + std::to_string(shards[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace attnbench::cluster
