// attnbench data TASK --out DIR: the examples of a task, for other programs.
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/text/spelling.hpp"
#include "harness/apply/out_folder.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/run/plan/planning.hpp"
#include "harness/run/worker/worker_client.hpp"
#include "harness/suite/profile.hpp"
#include "harness/suite/values.hpp"

namespace attnbench::commands {
namespace {

using suite::Json;

struct DataArguments {
  std::string task;
  std::string out;
  std::vector<std::string> set;
  std::uint64_t seed = 0;
};

constexpr const char* explanation =
    "DIR gets train.jsonl, validation.jsonl and test.jsonl, an example a line: segment, number,\n"
    "tokens, and for each question its position, the label expected there and the distance back\n"
    "to where the answer stands. They are what `attnbench run` trains on with the same settings\n"
    "and seed.\n"
    "\n"
    "Example:\n"
    "  attnbench data mqar --set length=128 --set pairs=8 --set train_examples=1000 --out data";

const suite::TaskSpec& task_of(const suite::Catalogue& catalogue, const std::string& name) {
  std::vector<std::string> with_data;
  for (const auto& [word, task] : catalogue.tasks) {
    if (!task.data_settings.empty()) with_data.push_back(word);
  }
  const auto found = catalogue.tasks.find(name);
  if (found == catalogue.tasks.end()) {
    throw UsageFailure("there is no task \"" + name + "\"; " + suite::suggestion(name, with_data));
  }
  if (found->second.data_settings.empty()) {
    throw UsageFailure("the task " + name + " learns from nothing; those with data are " +
                       suite::listed(with_data));
  }
  return found->second;
}

Json value_of(const suite::TaskSpec& task, const suite::SetFlag& flag) {
  std::vector<std::string> known;
  for (const Option& spec : task.data_settings) {
    known.push_back(spec.name);
    if (spec.name != flag.key) continue;
    if (flag.values.size() != 1) throw UsageFailure(flag.place + "expected one value");
    std::string complaint;
    const auto typed = suite::typed_value(spec, flag.values.front(), complaint);
    if (!typed) throw UsageFailure(flag.place + "the value " + complaint);
    if (spec.type == OptionType::integer && typed->is_string()) {
      throw UsageFailure(flag.place + "expected a whole number");
    }
    return *typed;
  }
  throw UsageFailure(flag.place + "the data of " + task.name + " have no setting \"" + flag.key +
                     "\"; " + suite::suggestion(flag.key, known));
}

int write_data(const DataArguments& arguments) {
  if (arguments.out.empty()) throw UsageFailure("--out is empty; name a folder for the data");
  const suite::TaskSpec task = task_of(run::load_catalogue({}), arguments.task);
  Json settings = Json::object();
  for (const std::string& text : arguments.set) {
    const suite::SetFlag flag = suite::parse_set_flag(text);
    settings[flag.key] = value_of(task, flag);
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.out, ignored) &&
      std::filesystem::is_empty(arguments.out, ignored)) {
    std::filesystem::remove(arguments.out, ignored);
  }
  apply::OutFolder out(arguments.out, apply::Replacing::never);
  run::WorkerClient client({});
  Json answer;
  try {
    answer = client.request({{"type", "data"},
                             {"task", arguments.task},
                             {"settings", settings},
                             {"seed", arguments.seed},
                             {"out", out.staging().string()}});
  } catch (const run::WorkerDied& died) {
    throw Failure(ExitCode::cells, died.what());
  } catch (const run::WorkerRefused& refused) {
    throw UsageFailure(refused.what());
  }
  if (answer.value("status", "error") != "ok") {
    throw UsageFailure(answer.value("reason", "the worker gave no reason"));
  }
  out.publish();
  std::vector<Row> rows;
  for (const Json& file : answer.at("files")) {
    rows.push_back({arguments.out + "/" + file.at("file").get<std::string>(),
                    std::to_string(file.at("examples").get<std::int64_t>()), "examples"});
  }
  print_columns(std::cout, rows);
  return static_cast<int>(ExitCode::done);
}

}  // namespace

void add_data(CommandLine& line) {
  auto arguments = std::make_shared<DataArguments>();
  Command& command = line.add("data", "Write the examples that a task learns from");
  command.footer(explanation);
  command.option("task", arguments->task, "A task that learns, such as mqar").required();
  command.option("--set", arguments->set, "SETTING=VALUE of the data (repeatable)").repeatable();
  command.option("--seed", arguments->seed, "The run's seed").shows_default();
  command.option("--out", arguments->out, "Folder for the data: new, or empty").required();
  command.runs([arguments] { return write_data(*arguments); });
}

}  // namespace attnbench::commands
