// attnbench data TASK --out DIR: the examples of a task, for other programs; of Long Range Arena
// and of language models, prepared for this one. --export DIR: the same in published formats.
#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "core/failure.hpp"
#include "core/option_json.hpp"
#include "core/protocol.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/apply/out_folder.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/prepared_data.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/values.hpp"
#include "tasks/data/input.hpp"

namespace attnbench::commands {
namespace {

struct DataArguments {
  std::string task;
  std::string out;
  std::string export_to;
  std::string form;
  std::vector<std::string> set;
  std::uint64_t seed = 0;
  std::string from;
  std::string data;
  bool raw = false;
  bool list = false;
  int show = 0;
  int threads = 0;
  const Command* command = nullptr;
};

constexpr const char* data_explanation =
    "Most tasks make their examples while they train; DIR then gets train.jsonl, validation.jsonl\n"
    "and test.jsonl, an example a line: segment, number, tokens, and for each question its\n"
    "position, the label expected there and the distance back to where the answer stands. They\n"
    "are what `attnbench run` trains on with the same settings and seed.\n"
    "\n"
    "The tasks lm and lra.… train on prepared data: DIR gets one file that is mapped into memory.\n"
    "What was interrupted continues where it stopped. Suites find it with --data DIR or\n"
    "ATTNBENCH_DATA.\n"
    "\n"
    "lm reads texts as bytes, or ids that a tokeniser wrote (--set tokens=uint16, uint32 or "
    "llm.c),\n"
    "or words; split=files takes the splits from names such as train.bin, val.bin and\n"
    "wiki.test.tokens.\n"
    "\n"
    "--export DIR writes data for other programs: ListOps and Retrieval as the tables, texts as "
    "the\n"
    "folders that they are published in, which --from reads again; what has no such form, and all\n"
    "with --as arrays, as NumPy files SPLIT.tokens.npy, SPLIT.lengths.npy and SPLIT.labels.npy.\n"
    "Documents of prepared data stand end to end there, without padding; rows of other tasks are\n"
    "padded with 0, and a label is -100 where nothing is asked.\n"
    "\n"
    "Examples:\n"
    "  attnbench data mqar --set length=128 --set pairs=8 --set train_examples=1000 --out data\n"
    "  attnbench data lra.pathfinder --set side=32 --out data/pathfinder32 --show 24\n"
    "  attnbench data lra.text --from aclImdb --out data/text\n"
    "  attnbench data lra.image --set source=fashion_mnist --out data/images\n"
    "  attnbench data lm --from /usr/share/dictd/gcide.dict.dz --out data\n"
    "  attnbench data lm --from wikitext-2 --set split=files --set tokens=words --set \\\n"
    "    vocabulary=33278 --out data\n"
    "  attnbench data lra.listops --data data --export listops_tables\n"
    "  attnbench data mqar --set length=128 --export arrays\n"
    "  attnbench data --list --data data";

const TaskSpec& task_of(const Catalogue& catalogue, const std::string& name) {
  std::vector<std::string> with_data;
  for (const TaskSpec& task : catalogue.tasks) {
    if (!task.data_settings.empty()) with_data.push_back(task.name);
  }
  for (const tasks::data::DataTask& task : tasks::data::data_tasks())
    with_data.push_back(task.name);
  const TaskSpec* const found = catalogue.task(name);
  if (found == nullptr) {
    throw UsageFailure("there is no task \"" + name + "\"; " + text::suggestion(name, with_data));
  }
  if (found->data_settings.empty()) {
    throw UsageFailure("the task " + name + " learns from nothing; those with data are " +
                       text::listed(with_data));
  }
  return *found;
}

OptionValue value_of(const std::string& task, const std::vector<Option>& settings,
                     const suite::SetFlag& flag) {
  std::vector<std::string> known;
  for (const Option& spec : settings) {
    known.push_back(spec.name);
    if (spec.name != flag.key) continue;
    if (flag.values.size() != 1) throw UsageFailure(flag.place + "expected one value");
    std::string complaint;
    const auto typed = suite::typed_value(spec, flag.values.front(), complaint);
    if (!typed) throw UsageFailure(flag.place + "the value " + complaint);
    if (spec.type == OptionType::integer && typed->is_string()) {
      throw UsageFailure(flag.place + "expected a whole number");
    }
    return value_from(*typed, flag.key);
  }
  throw UsageFailure(flag.place + "the data of " + task + " have no setting \"" + flag.key +
                     "\"; " + text::suggestion(flag.key, known));
}

/// The settings that --set names, each in the type that it is declared with.
OptionValues settings_of(const std::string& task, const std::vector<Option>& declared,
                         const std::vector<std::string>& set) {
  OptionValues settings;
  for (const std::string& text : set) {
    const suite::SetFlag flag = suite::parse_set_flag(text);
    settings[flag.key] = value_of(task, declared, flag);
  }
  return settings;
}

int prepare_task(const DataArguments& arguments, const tasks::data::DataTask& task) {
  if (arguments.command->given("--seed")) {
    throw UsageFailure("--seed is for data that are made while a run trains; those of " +
                       task.name + " are prepared once" +
                       (task.setting("data_seed") ? ", by the setting data_seed" : ""));
  }
  if (arguments.raw && !task.open_raw) {
    throw UsageFailure("--raw is for data that are texts; those of " + task.name + " are none");
  }
  OptionValues settings = settings_of(task.name, task.settings, arguments.set);
  const Option* source = task.setting("source");
  if (!arguments.from.empty() && source != nullptr && !settings.contains("source") &&
      std::count(source->choices.begin(), source->choices.end(), "published") > 0) {
    settings["source"] = std::string("published");
  }
  PrepareRequest request;
  request.task = &task;
  request.settings = Options::resolve(task.settings, settings);
  request.from = arguments.from;
  request.out = arguments.out;
  request.raw = arguments.raw;
  request.threads = arguments.threads > 0
                        ? arguments.threads
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  request.show = arguments.show;
  request.export_to = arguments.export_to;
  request.form = arguments.form;
  return prepare_data(request);
}

/// Exports what was prepared earlier.
int export_task(const DataArguments& arguments, const tasks::data::DataTask& task) {
  for (const char* flag : {"--from", "--show", "--threads", "--raw", "--seed"}) {
    if (!arguments.command->given(flag)) continue;
    throw UsageFailure(
        std::string(flag) +
        " is for data that are made now, which --out DIR names a folder for; without "
        "it --export takes what is prepared");
  }
  const std::string folder =
      arguments.data.empty() ? tasks::data::data_folder().string() : arguments.data;
  export_prepared(
      *prepared_cache(folder, task, settings_of(task.name, task.settings, arguments.set)),
      arguments.export_to, arguments.form);
  return static_cast<int>(ExitCode::done);
}

/// Has the worker write the task's examples as JSON Lines into the folder, which exists.
protocol::DataAnswer have_lines_written(const DataArguments& arguments,
                                        const std::filesystem::path& folder) {
  const Catalogue catalogue = run::load_catalogue({});
  const TaskSpec& task = task_of(catalogue, arguments.task);
  protocol::Data request;
  request.task = arguments.task;
  request.seed = arguments.seed;
  request.settings = settings_of(task.name, task.data_settings, arguments.set);
  request.out = folder;
  run::WorkerClient client({});
  protocol::DataAnswer answer;
  try {
    answer = client.request(request).get<protocol::DataAnswer>();
  } catch (const run::WorkerDied& died) {
    throw Failure(ExitCode::cells, died.what());
  } catch (const run::WorkerRefused& refused) {
    throw UsageFailure(refused.what());
  }
  if (answer.status != Status::ok) throw UsageFailure(answer.reason);
  return answer;
}

/// Removes the folder where it is there and empty, so that it can come whole.
void make_way(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored) &&
      std::filesystem::is_empty(folder, ignored)) {
    std::filesystem::remove(folder, ignored);
  }
}

int write_lines(const DataArguments& arguments) {
  make_way(arguments.out);
  apply::OutFolder out(arguments.out, apply::Replacing::never);
  const protocol::DataAnswer answer = have_lines_written(arguments, out.staging());
  out.publish();
  std::vector<TableRow> rows;
  for (const protocol::DataFile& file : answer.files) {
    rows.push_back({arguments.out + "/" + file.file, std::to_string(file.examples), "examples"});
  }
  print_columns(std::cout, rows);
  return static_cast<int>(ExitCode::done);
}

int write_arrays(const DataArguments& arguments) {
  if (arguments.form == "published") {
    throw UsageFailure("the data of " + arguments.task +
                       " are made here and have no published form; pass --as arrays, or --out for "
                       "JSON Lines");
  }
  make_way(arguments.export_to);
  apply::OutFolder out(arguments.export_to, apply::Replacing::never, "--export");
  const std::filesystem::path lines = out.staging() / "lines";
  std::filesystem::create_directory(lines);
  have_lines_written(arguments, lines);
  std::vector<tasks::data::ExportedFile> files;
  try {
    files = tasks::data::write_arrays_of_lines(lines, out.staging());
  } catch (const UsageError& error) {
    throw UsageFailure(arguments.task + ": " + error.what() + "; --out writes them as JSON Lines");
  }
  std::filesystem::remove_all(lines);
  out.publish();
  print_exported(arguments.export_to, files);
  return static_cast<int>(ExitCode::done);
}

/// Data that tasks make while they train.
int write_data(const DataArguments& arguments) {
  for (const char* flag : {"--from", "--show", "--threads", "--raw", "--data"}) {
    if (!arguments.command->given(flag)) continue;
    throw UsageFailure(std::string(flag) + " is for data that are prepared: those of " +
                       tasks::data::data_task_names());
  }
  if (arguments.export_to.empty()) return write_lines(arguments);
  if (!arguments.out.empty()) {
    throw UsageFailure("--out writes JSON Lines and --export arrays; name one of them");
  }
  return write_arrays(arguments);
}

int run_data(const DataArguments& arguments) {
  if (arguments.list) {
    if (!arguments.task.empty()) throw UsageFailure("--list names no task: it shows all");
    return list_prepared_data(arguments.data.empty() ? tasks::data::data_folder().string()
                                                     : arguments.data);
  }
  if (arguments.command->given("--data") &&
      (arguments.export_to.empty() || !arguments.out.empty())) {
    throw UsageFailure("--data is where --list and --export look; what is prepared goes to --out");
  }
  if (arguments.task.empty()) {
    throw UsageFailure("name a task, such as lra.pathfinder or mqar, or say --list");
  }
  if (arguments.out.empty() && arguments.export_to.empty()) {
    throw UsageFailure("--out is empty; name a folder for the data, there or with --export");
  }
  if (arguments.export_to.empty() && !arguments.form.empty()) {
    throw UsageFailure("--as is the form of what --export DIR writes");
  }
  const tasks::data::DataTask* prepared = tasks::data::find_data_task(arguments.task);
  if (prepared == nullptr) return write_data(arguments);
  expect_form(*prepared, arguments.form);
  // Refuses now what would else be refused after the work.
  if (!arguments.export_to.empty()) {
    apply::OutFolder(arguments.export_to, apply::Replacing::never, "--export");
  }
  return arguments.out.empty() ? export_task(arguments, *prepared)
                               : prepare_task(arguments, *prepared);
}

}  // namespace

void declare_data(Command& command) {
  auto arguments = std::make_shared<DataArguments>();
  arguments->command = &command;
  command.footer(data_explanation);
  command.option("task", arguments->task, "A task that learns, such as mqar, lm or lra.pathfinder");
  command.option("--set", arguments->set, "SETTING=VALUE of the data (repeatable)").repeatable();
  command.option("--seed", arguments->seed, "The run's seed").shows_default();
  command.option("--from", arguments->from,
                 std::string("Published data, or a text, as they are had: ") +
                     (tasks::data::reads_archives() ? "an archive, a folder or a file"
                                                    : "a folder or a file") +
                     " (lm and lra.… only)");
  command.flag("--raw", arguments->raw,
               "Take what --from names as bytes, even an archive that is not unpacked here or what "
               "is no text");
  command.option("--out", arguments->out, "Folder for the data; new, or empty, for JSON Lines");
  command.option("--export", arguments->export_to,
                 "Folder for the data in a form that other programs read; new, or empty");
  command
      .option("--as", arguments->form,
              "The form of --export: published, unless there is none, or arrays")
      .one_of(export_forms);
  command
      .option("--show", arguments->show,
              "Rows to show: a sheet of images, or text (lm and lra.… only)")
      .not_negative();
  command
      .option("--threads", arguments->threads,
              "Threads that make rows, as many as cores unless said (lm and lra.… only)")
      .within(1, 1024);
  command.flag("--list", arguments->list, "What is prepared, and how to get what is missing");
  command.option("--data", arguments->data,
                 "Where --list and --export look, unless ATTNBENCH_DATA says it");
  command.runs([arguments] { return run_data(*arguments); });
}

}  // namespace attnbench::commands
