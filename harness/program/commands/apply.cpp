// attnbench apply: one mechanism on arrays from NumPy files.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/output_file.hpp"
#include "core/process/limits.hpp"
#include "core/process/signals.hpp"
#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/apply/out_folder.hpp"
#include "harness/program/apply/request.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

using Json = nlohmann::json;

// The rest is for the program, its libraries and the file cache.
constexpr double default_memory_share = 0.8;

struct ApplyArguments {
  apply::ApplyArguments call;
  std::string out;
  std::string memory_limit;
  std::vector<std::string> plugins;
  int threads = 0;
  bool force = false;
};

constexpr const char* explanation =
    "Arrays are .npy files of float32 or float64, [batch, heads, tokens, width], as numpy.save\n"
    "writes them: the inputs of the mixing itself, after whatever projects tokens to them. Sizes,\n"
    "and options that nobody set (latents_per_head from the width of query_logits), come from\n"
    "their shapes. Parameters that are not given are drawn from --seed; all are written out, so\n"
    "that the call can be made again. A mask is [batch, key tokens], true where a token is real.\n"
    "\n"
    "DIR gets output.npy, latents.npy where the mechanism has a latent stream, "
    "parameters/NAME.npy,\n"
    "gradients/ROLE.npy and gradients/parameter.NAME.npy where a gradient was asked for, and\n"
    "apply.json: what ran and why, options and sizes, and the error of sampled output rows "
    "against\n"
    "the definition in double. If anything fails nothing is written.\n"
    "\n"
    "Example:\n"
    "  python3 -c \"import numpy as np; x = np.random.randn(3, 1, 4, 257, 43); \\\n"
    "    [np.save(name, x[i]) for i, name in enumerate(('query', 'key', 'value'))]\"\n"
    "  attnbench apply softmax --pattern causal --query query.npy --key key.npy --value value.npy "
    "\\\n"
    "      --gradient ones --out applied\n"
    "\n"
    "Exit codes: 0 done, 1 the output differs from the definition (and is written), or the call\n"
    "failed, 2 bad arrays or usage, 3 no memory or disk, 4 the output cannot be checked (and is\n"
    "written), 5 the mechanism crashed, 130 interrupted.";

class Interrupted : public Failure {
 public:
  Interrupted() : Failure(ExitCode::interrupted, "interrupted; nothing was written") {}
};

/// Throws the failure of an answer without result, with its exit code.
[[noreturn]] void fail(const protocol::ApplyAnswer& answer, const std::string& mechanism) {
  if (answer.refused) throw UsageFailure(answer.reason);
  const std::string name = mechanism.substr(0, mechanism.find('/'));
  const bool named = answer.reason.starts_with(name + ":") || answer.reason.starts_with(name + "/");
  std::string message = (named ? "" : mechanism + ": ") + std::string(to_string(answer.status)) +
                        ": " + answer.reason;
  if (!answer.detail.empty() && answer.detail != answer.reason) message += "\n" + answer.detail;
  throw Failure(answer.status == Status::out_of_memory ? ExitCode::environment
                : answer.status == Status::crashed     ? ExitCode::cells
                                                       : ExitCode::failed,
                message);
}

protocol::ApplyAnswer without_result(Status status, const std::string& reason) {
  protocol::ApplyAnswer answer;
  answer.status = status;
  answer.reason = reason;
  return answer;
}

protocol::ApplyAnswer ask(const ApplyArguments& arguments, const protocol::Apply& request,
                          const process::Interrupts& interrupts) {
  run::WorkerOptions options;
  options.plugins = arguments.plugins;
  options.threads = arguments.threads;
  run::WorkerClient client(options);
  client.on_tick([&] {
    if (interrupts.count() == 0) return;
    client.kill();
    throw Interrupted();
  });
  try {
    return client.request(request).get<protocol::ApplyAnswer>();
  } catch (const run::WorkerDied& died) {
    return without_result(Status::crashed, died.what());
  } catch (const run::WorkerRefused& refused) {
    return without_result(Status::error, refused.what());
  } catch (const std::exception&) {
    // A worker that was starting reports an interrupt as a failure to start.
    if (interrupts.count() > 0) throw Interrupted();
    throw;
  }
}

Json document_of(const protocol::ApplyAnswer& answer, const protocol::Apply& request) {
  Json document = answer;
  for (const char* key : {"type", "stamp", "detail"}) document.erase(key);
  document.update({{"schema", 1},
                   {"command", typed_command()},
                   {"mechanism", request.mechanism},
                   {"seed", request.seed},
                   {"versions", answer.stamp}});
  if (!request.mask.empty()) document["mask"] = request.mask;
  if (!request.gradient.empty()) document["gradient"] = request.gradient;
  return document;
}

std::string sizes_text(const Json& problem) {
  std::string text;
  for (const char* key : {"batch", "heads", "kv_heads", "length", "key_length", "head_dim",
                          "value_dim", "pattern", "dtype"}) {
    text +=
        (text.empty() ? "" : ", ") + std::string(key) + " " + text::human_value(problem.at(key));
  }
  return text;
}

std::string options_text(const OptionValues& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    text += (text.empty() ? "" : ", ") + name + " " + text::human_value(to_json(value));
  }
  return text.empty() ? "none" : text;
}

std::string error_text(const Json& check) {
  if (!check.contains("error")) {
    return check.value("reason", "no sampled row of the definition is finite: nothing to compare");
  }
  char text[64];
  std::snprintf(text, sizeof text, "relative %.1e (tolerance %.1e) on ",
                check.at("error").get<double>(), check.at("tolerance").get<double>());
  return text + std::to_string(check.at("rows").get<int>()) +
         " rows, from the definition in double";
}

void print(const protocol::ApplyAnswer& answer, const std::string& mechanism,
           const std::string& out) {
  std::vector<TableRow> rows = {
      {"ran", mechanism + "/" + answer.implementation + " (" + answer.implementation_reason + ")"},
      {"sizes", sizes_text(answer.problem)},
      {"options", options_text(answer.options)}};
  if (answer.check) rows.push_back({"error", error_text(*answer.check)});
  std::string files = "apply.json";
  for (const std::string& file : answer.files) files += ", " + file;
  rows.push_back({"in " + out, files});
  print_columns(std::cout, rows);
}

int apply_command(ApplyArguments& arguments) {
  arguments.call.mechanism = mechanism_named(arguments.call.mechanism, arguments.plugins);
  const Catalogue catalogue = catalogue_with(arguments.plugins);
  protocol::Apply request = apply::request_of(catalogue, arguments.call);
  const std::int64_t memory =
      arguments.memory_limit.empty()
          ? static_cast<std::int64_t>(default_memory_share *
                                      static_cast<double>(process::available_memory_bytes()))
          : process::parse_bytes(arguments.memory_limit);
  const process::Interrupts interrupts;
  apply::OutFolder out(arguments.out,
                       arguments.force ? apply::Replacing::yes : apply::Replacing::not_asked);
  const std::filesystem::path log = out.staging() / "log.txt";
  request.out = out.staging();
  request.limits.memory_bytes = memory;
  request.log = log;
  const protocol::ApplyAnswer answer = ask(arguments, request, interrupts);
  if (!answer.ran()) fail(answer, arguments.call.mechanism);
  Json document = document_of(answer, request);
  document["origin"] = catalogue.find(request.mechanism)->mechanism->origin;
  std::filesystem::remove(log);
  write_atomically(out.staging() / "apply.json", document.dump(1) + "\n");
  out.publish();
  print(answer, request.mechanism, arguments.out);
  if (answer.status == Status::ok && answer.reason.empty()) {
    return static_cast<int>(ExitCode::done);
  }
  if (answer.status == Status::ok) {
    std::cerr << "attnbench: " << text::quotable(answer.reason, 600) << "\n";
    return static_cast<int>(ExitCode::undecided);
  }
  std::cerr << "attnbench: wrong: " << text::quotable(answer.reason, 600) << "\n";
  return static_cast<int>(ExitCode::failed);
}

void add_arrays(Command& command, apply::ApplyArguments& call) {
  command.option("--query", call.query, "The role query, [B, H, T, D]");
  command.option("--key", call.key, "The role key, [B, H or fewer, S, D]");
  command.option("--value", call.value, "The role value, [B, as key, S, Dv]");
  command.option("--role", call.roles, "NAME=FILE: a role of another name (repeatable)")
      .repeatable();
  command.option("--mask", call.mask, "bool or uint8 [B, S], true where a key is real");
  command.option("--param", call.parameters, "NAME=FILE: a parameter or buffer (repeatable)")
      .repeatable();
  command.option("--gradient", call.gradient,
                 "Gradient of the output, [B, H, T, Dv], or the word ones: write those of "
                 "inputs and parameters");
  command.flag("--allow-nan", call.allow_nan,
               "Take NaN and infinity in arrays; output rows they reach are not checked");
}

}  // namespace

void declare_apply(Command& command) {
  auto arguments = std::make_shared<ApplyArguments>();
  apply::ApplyArguments& call = arguments->call;
  command.footer(explanation);
  command.option("mechanism", call.mechanism, "A name or alias of `attnbench list`").required();
  command.option("--pattern", call.pattern,
                 "bidirectional, causal or cross; may be left out where there is one");
  add_arrays(command, call);
  command.option("--set", call.options, "OPTION=VALUE of the mechanism (repeatable)").repeatable();
  command.option("--implementation", call.implementation, "Default: auto, the fastest");
  command.option("--seed", call.seed, "Seed of the parameters that are not given").shows_default();
  command
      .option("--check-rows", call.check_rows,
              "Output rows checked against the definition in double; 0 = none")
      .not_negative()
      .shows_default();
  command.option("--out", arguments->out, "Folder for the results").required();
  command.flag("--force", arguments->force, "Replace the results that --out holds already");
  add_plugin_argument(command, arguments->plugins);
  command.option("--threads", arguments->threads, "Default: one for each core").within(0, 4096);
  command.option("--memory-limit", arguments->memory_limit,
                 "Of tensors, such as 20G; default 0.8 of what is free");
  command.runs([arguments] { return apply_command(*arguments); });
}

}  // namespace attnbench::commands
