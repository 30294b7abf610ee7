// attnbench check: implementations against their definition, claims and growth.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/failure.hpp"
#include "core/process/limits.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/measure/device.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/findings.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/check/checking.hpp"
#include "harness/program/run/check/scaling_check.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/run/plan/blas_core.hpp"
#include "harness/program/run/supervise/quiet.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

using Json = nlohmann::json;

struct CheckArguments {
  run::CheckChoices choices;
  std::vector<std::string> plugins;
  bool no_growth = false;
  WaitArguments wait;
  CheckReports reports;
  double limit_seconds = 60;
};

std::string short_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", number);
  return text;
}

std::string closest(const protocol::CheckedRow& checked) {
  const protocol::Property* const worst = checked.closest_to_tolerance();
  if (worst == nullptr) return {};
  return worst->name + " " + short_text(worst->error.value_or(0)) + " of " +
         short_text(*worst->tolerance);
}

std::string last_column(const protocol::CheckedRow& checked) {
  if (checked.status == Status::ok) return "closest: " + closest(checked);
  const std::string reason = checked.reason.empty() ? "no reason given" : checked.reason;
  return std::string(to_string(checked.status)) + ": " + text::quotable(reason, 600);
}

/// A line that is rewritten on a terminal; nothing is written elsewhere.
class Line {
 public:
  void show(const std::string& text) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\033[K%s", text::shorten(text::printable(text), 78).c_str());
    std::fflush(stderr);
  }
  ~Line() { show(""); }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
};

void print_row(const protocol::CheckedRow& checked, const std::string& dtype) {
  const std::string name = checked.mechanism + " " + checked.implementation;
  std::printf("%s %s %s %4d %4d %4d  %s\n", text::pad_right(name, 22).c_str(),
              text::pad_right(checked.pattern, 13).c_str(), text::pad_right(dtype, 8).c_str(),
              checked.held(), checked.broken(), checked.not_applicable(),
              text::printable(last_column(checked)).c_str());
  // The reason above names the first that is broken.
  bool first = true;
  for (const protocol::Property& property : checked.properties) {
    if (property.status != protocol::PropertyStatus::broken) continue;
    if (!first) {
      const std::string reason =
          property.name + ": " + (property.reason.empty() ? "broken" : property.reason);
      std::printf("%62s%s\n", "", text::quotable(reason, 600).c_str());
    }
    first = false;
  }
}

/// The dtypes of one implementation and pattern; one line where all are unsupported for one reason.
void print_group(const std::vector<protocol::CheckedRow>& group) {
  bool alike = true;
  for (const protocol::CheckedRow& each : group) {
    alike = alike && each.status == Status::unsupported &&
            last_column(each) == last_column(group.front());
  }
  if (alike) {
    print_row(group.front(), group.size() > 1 ? "all" : group.front().dtype);
  } else {
    for (const protocol::CheckedRow& each : group) print_row(each, each.dtype);
  }
  std::fflush(stdout);
}

bool same_group(const run::CheckRow& a, const run::CheckRow& b) {
  return a.mechanism == b.mechanism && a.implementation == b.implementation &&
         a.pattern == b.pattern;
}

/// The answers of all rows, each group printed when it is complete.
std::vector<protocol::CheckedRow> check_all(const run::Ask& ask,
                                            const std::vector<run::CheckRow>& rows, double limit) {
  std::printf("%s %s %s held brkn n.a.\n", text::pad_right("mechanism", 22).c_str(),
              text::pad_right("pattern", 13).c_str(), text::pad_right("dtype", 8).c_str());
  std::vector<protocol::CheckedRow> answers, group;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    {
      Line line;
      line.show("checking " + std::to_string(i + 1) + " of " + std::to_string(rows.size()) + ": " +
                rows[i].mechanism + " " + rows[i].implementation + " " + rows[i].pattern + " " +
                rows[i].dtype);
      answers.push_back(run::check_row(ask, rows[i], limit));
    }
    group.push_back(answers.back());
    if (i + 1 < rows.size() && same_group(rows[i], rows[i + 1])) continue;
    print_group(group);
    group.clear();
  }
  return answers;
}

void print_growth(const run::ScalingRow& row) {
  const std::string measured =
      row.fit.measured ? reports::exponent_text(*row.fit.measured) : std::string("-");
  std::string local;
  for (const auto& slope : row.fit.local) {
    local += (local.empty() ? "" : ", ") + reports::exponent_text(slope.slope);
  }
  std::printf(
      "%s %s %7s ±%s %8s  %s\n",
      text::pad_right(row.mechanism + " " + row.implementation, 22).c_str(),
      text::pad_right(row.quantity, 20).c_str(), reports::exponent_text(row.fit.claimed).c_str(),
      reports::exponent_text(row.fit.tolerance).c_str(), measured.c_str(),
      (std::string(to_string(row.fit.verdict)) + (local.empty() ? "" : "; locally " + local) +
       (row.fit.reason.empty() ? "" : "; " + row.fit.reason))
          .c_str());
  std::fflush(stdout);
}

bool has_latents(const MechanismSpec& spec) {
  for (const auto& option : spec.options) {
    if (option.name == "latents_per_head") return true;
  }
  return false;
}

/// Growth depends on the algorithm alone: one dtype, and the causal pattern where there is one.
std::vector<run::CheckRow> growth_rows(const std::vector<run::CheckRow>& rows) {
  std::vector<run::CheckRow> out;
  std::set<std::string> seen;
  for (const char* pattern : {"causal", "bidirectional"}) {
    for (run::CheckRow row : rows) {
      if (row.pattern != pattern || !seen.insert(row.entry + " " + row.implementation).second) {
        continue;
      }
      row.dtype = "float32";
      out.push_back(row);
    }
  }
  return out;
}

/// Growth is fitted to times: reports busy processes and waits for a quiet machine.
void await_quiet(const WaitArguments& wait) {
  Line line;
  run::QuietSurroundings surroundings = run::real_surroundings();
  surroundings.offers_threads = false;
  surroundings.show = [&line](const std::string& text) { line.show(text); };
  surroundings.say = [&line](const std::string& sentence) {
    line.show("");
    std::fprintf(stderr, "%s\n", sentence.c_str());
  };
  const int cpus = process::usable_cores();
  run::wait_for_quiet(surroundings, measure::neighbours(0.25), cpus, cpus,
                      run::longest_wait(wait.max_seconds(), run::on_terminal()));
}

/// The growth of all rows. On the CPU, the document gets `memory_ladder`.
std::vector<run::ScalingRow> grow_all(const run::Ask& ask, const std::vector<run::CheckRow>& rows,
                                      const Catalogue& catalogue, Json& document) {
  run::ScalingPlan plan;
  plan.memory_limit_bytes = static_cast<double>(process::available_memory_bytes()) / 2;
  const bool on_cpu = std::all_of(rows.begin(), rows.end(),
                                  [](const run::CheckRow& row) { return row.device == "cpu"; });
  if (on_cpu) {
    const auto threads = static_cast<int>(measure::allowed_cpus().size());
    plan.ladder = measure::memory_ladder(threads, plan.memory_limit_bytes);
    document["memory_ladder"] = to_json(plan.ladder);
  }
  std::printf("\n%s %s claimed        measured\n", text::pad_right("mechanism", 22).c_str(),
              text::pad_right("growth of", 20).c_str());
  std::vector<run::ScalingRow> all;
  for (const run::CheckRow& row : growth_rows(rows)) {
    std::vector<run::ScalingRow> grown;
    {
      Line line;
      grown = run::measure_scaling(ask, row, has_latents(*catalogue.find(row.entry)->mechanism),
                                   plan, [&line](const std::string& text) { line.show(text); });
    }
    for (const run::ScalingRow& each : grown) {
      print_growth(each);
      all.push_back(each);
    }
  }
  return all;
}

/// Names of the mechanisms to check that have no definition but themselves: one that computes the
/// wrong thing alike in every dtype passes.
std::string held_to_themselves(const std::vector<run::CheckRow>& rows, const Catalogue& catalogue) {
  std::set<std::string> names;
  for (const run::CheckRow& row : rows) names.insert(row.mechanism);
  std::string list;
  for (const MechanismSpec& mechanism : catalogue.mechanisms) {
    const bool alone =
        mechanism.citation.find("compared with itself in double") != std::string::npos;
    if (!alone || names.count(mechanism.name) == 0) continue;
    list += (list.empty() ? "" : ", ") + mechanism.name;
  }
  return list;
}

constexpr const char* compared_with_itself =
    " was compared with itself in double, having no reference module";

/// Prints the verdict, which the document gets as well, and returns the exit code; `usage` where
/// everything is unsupported.
ExitCode conclude(const std::vector<protocol::CheckedRow>& checks,
                  const std::vector<run::ScalingRow>& growth, const std::string& alone,
                  Json& document) {
  int held = 0;
  std::ptrdiff_t broken = 0;
  for (const protocol::CheckedRow& row : checks) {
    held += row.held();
    broken += row.failed() ? 1 : 0;
  }
  const auto differing =
      std::count_if(growth.begin(), growth.end(), [](const run::ScalingRow& row) {
        return row.fit.verdict == reports::GrowthVerdict::differs;
      });
  const bool clean = broken == 0 && differing == 0;
  std::string verdict = !clean     ? "failed"
                        : held > 0 ? "all properties hold"
                                   : "nothing could be compared with its definition: all is "
                                     "unsupported";
  if (clean && held > 0 && !alone.empty()) verdict += "; " + alone + compared_with_itself;
  document["verdict"] = verdict;
  if (clean && held == 0) {
    std::fprintf(stderr, "attnbench: %s\n", verdict.c_str());
    return ExitCode::usage;
  }
  if (clean) {
    std::printf("\n%s\n", verdict.c_str());
    return ExitCode::done;
  }
  std::printf("\n%td of %zu checks failed, %td of %zu claims of growth were missed%s\n", broken,
              checks.size(), differing, growth.size(),
              alone.empty() ? "" : ("; " + alone + compared_with_itself).c_str());
  return ExitCode::failed;
}

int check(CheckArguments& arguments) {
  require_device(arguments.choices.device);
  arguments.reports.validate();
  for (std::string& name : arguments.choices.mechanisms) {
    name = mechanism_named(name, arguments.plugins);
  }
  const Catalogue catalogue = catalogue_with(arguments.plugins);
  const auto rows = run::check_rows(catalogue, arguments.choices);
  run::WorkerOptions options;
  options.plugins = arguments.plugins;
  options.device = arguments.choices.device;
  if (!arguments.no_growth) {
    options.blas_core = run::blas_choice(false, run::BlasTrying::allowed).set;
  }
  run::WorkerClient client(options);
  const run::Ask ask = run::asking(client);
  Json document = check_facts(catalogue, arguments.choices.mechanisms, arguments.plugins,
                              arguments.choices.device);
  const std::string alone = held_to_themselves(rows, catalogue);
  if (!alone.empty()) {
    std::printf("%s: no reference, so held to itself in double: a wrong definition is not seen\n\n",
                alone.c_str());
  }
  const std::vector<protocol::CheckedRow> checks = check_all(ask, rows, arguments.limit_seconds);
  std::vector<run::ScalingRow> growth;
  const bool any_ran = std::any_of(checks.begin(), checks.end(),
                                   [](const auto& row) { return row.held() > 0 || row.failed(); });
  if (!arguments.no_growth && any_ran) {
    await_quiet(arguments.wait);
    growth = grow_all(ask, rows, catalogue, document);
  }
  document["checks"] = checks;
  document["growth"] = growth;
  const ExitCode code = conclude(checks, growth, alone, document);
  arguments.reports.write(document);
  return static_cast<int>(code);
}

}  // namespace

void declare_check(Command& command) {
  auto arguments = std::make_shared<CheckArguments>();
  command.option("mechanism", arguments->choices.mechanisms, "Names or aliases; default all");
  command.option("--implementation", arguments->choices.implementation, "Only this one");
  command.option("--pattern", arguments->choices.pattern, "bidirectional, causal or cross");
  command
      .option("--dtype", arguments->choices.dtypes,
              "float64, float32, bfloat16, float16; several may be named")
      .shows_default();
  command.option("--device", arguments->choices.device, "cpu, cuda or cuda:N").shows_default();
  command
      .option("--set", arguments->choices.options,
              "OPTION=VALUE of each mechanism named (repeatable), in place of the kit's own choice")
      .repeatable();
  add_plugin_argument(command, arguments->plugins);
  command.option("--cell-timeout", arguments->limit_seconds, "Seconds a check may take")
      .positive_seconds()
      .shows_default();
  command.flag("--no-growth", arguments->no_growth, "Leave out the growth of time and memory");
  add_wait_arguments(command, arguments->wait);
  command
      .option("--out", arguments->reports.files,
              "A file for all findings, .md or .json (repeatable)")
      .repeatable();
  command.flag("--force", arguments->reports.force,
               "Replace a file of --out that check did not write");
  command.option("--format", arguments->reports.format, "markdown or json, whatever the ending")
      .one_of(std::vector<std::string>{"markdown", "json"});
  command.footer(
      "Examples:\n"
      "  attnbench check latte --pattern causal --no-growth\n"
      "  attnbench check lavo --set form=plain --no-growth\n"
      "  attnbench check mine --plugin build/libmine.so --out report.md\n"
      "\n"
      "Exit codes: 0 everything holds, 1 something does not, 2 bad usage or nothing to "
      "check,\n"
      "3 the machine cannot do it.");
  command.runs([arguments] { return check(*arguments); });
}

}  // namespace attnbench::commands
