#include "harness/program/commands/shared/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <limits>
#include <list>
#include <sstream>
#include <type_traits>

#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::commands {
namespace {

/// For commands that accept other words: CLI11 knows of no positionals that the usage could show.
class UsageFormatter : public CLI::Formatter {
 public:
  UsageFormatter(std::string lines, std::string note)
      : lines_(std::move(lines)), note_(std::move(note)) {}

  std::string make_usage(const CLI::App*, std::string name) const override {
    std::istringstream lines(lines_);
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      text.append(text.empty() ? "Usage: " : "       ").append(name + " " + line + "\n");
    }
    return text + "\n" + note_ + "\n";
  }

 private:
  std::string lines_, note_;
};

/// Refuses a first word that is not a command; CLI11 would only say that one is required.
void expect_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) {
    throw UsageFailure("expected a command, such as run; `attnbench --help` lists them");
  }
  const std::string word = argv[1];
  if (word.empty() || word.front() == '-') return;
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw UsageFailure("there is no command \"" + text::quotable(word) + "\"; " +
                     text::suggestion(word, known));
}

/// Prints the help, or a complaint: CLI11 quotes a wrong command line whole, so it is shortened.
int end_with(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out, complaint;
  // CLI11 has exit codes of its own, from 100 up.
  const int code = app.exit(error, out, complaint);
  std::cout << out.str();
  if (!complaint.str().empty()) {
    std::cerr << text::bounded_message(complaint.str()) << std::flush;
  }
  return code == 0 ? 0 : static_cast<int>(ExitCode::usage);
}

constexpr double max_seconds = 1e9;

std::string number_text(double number) {
  char text[32];
  const bool whole = number == std::floor(number) && std::fabs(number) < 1e18;
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%g", number);
  return text;
}

std::string refusal(const std::string& expected, const std::string& text) {
  return "expected " + expected + ", found \"" + text::quotable(text, 60) + "\"";
}

/// Why `text` is no value of the type; empty where it is one.
template <typename Value>
std::string type_fault(const std::string& text) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return text.empty() ? "expected a text, found an empty one" : "";
  } else {
    Value value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end) {
      if constexpr (std::is_integral_v<Value>) return "";
      if (std::isfinite(static_cast<double>(value))) return "";
    }
    if constexpr (std::is_integral_v<Value>) {
      using Limits = std::numeric_limits<Value>;
      return refusal("a whole number from " + std::to_string(Limits::min()) + " to " +
                         std::to_string(Limits::max()),
                     text);
    }
    return refusal("a finite number", text);
  }
}

}  // namespace

Argument Argument::required() const {
  option_->required();
  return *this;
}

Argument Argument::repeatable() const {
  option_->allow_extra_args(false);
  return *this;
}

Argument Argument::comma_separated() const {
  option_->delimiter(',');
  return *this;
}

Argument Argument::shows_default() const {
  option_->capture_default_str();
  return *this;
}

Argument Argument::within(double least, double greatest) const {
  return with_range("from " + number_text(least) + " to " + number_text(greatest),
                    [=](double value) { return value >= least && value <= greatest; });
}

Argument Argument::not_negative() const {
  return with_range("of at least 0", [](double value) { return value >= 0; });
}

Argument Argument::positive_seconds() const {
  return with_range("above 0, at most " + number_text(max_seconds),
                    [](double value) { return value > 0 && value <= max_seconds; });
}

Argument Argument::with_range(const std::string& words, std::function<bool(double)> holds) const {
  option_->check(CLI::Validator(
      [words, holds = std::move(holds)](std::string& text) {
        double value = 0;  // the type's validator comes before this one: it is a number
        std::from_chars(text.data(), text.data() + text.size(), value);
        return holds(value) ? std::string() : refusal("a number " + words, text);
      },
      words));
  return *this;
}

Argument Argument::one_of(const std::vector<std::string>& words) const {
  option_->check(CLI::IsMember(words));
  return *this;
}

Argument Argument::excludes(const Argument& other) const {
  option_->excludes(other.option_);
  return *this;
}

Argument Command::flag(const std::string& name, bool& value, const std::string& meaning) {
  return Argument(app_.add_flag(name, value, meaning));
}

template <typename Value>
Argument Command::option(const std::string& name, Value& value, const std::string& meaning) {
  CLI::Option* const option = app_.add_option(name, value, meaning);
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    option->check(CLI::Validator(type_fault<std::string>, ""));
  } else {
    option->check(CLI::Validator(type_fault<Value>, ""));
  }
  return Argument(option);
}

template Argument Command::option(const std::string&, std::string&, const std::string&);
template Argument Command::option(const std::string&, int&, const std::string&);
template Argument Command::option(const std::string&, std::int64_t&, const std::string&);
template Argument Command::option(const std::string&, std::uint64_t&, const std::string&);
template Argument Command::option(const std::string&, double&, const std::string&);
template Argument Command::option(const std::string&, std::vector<std::string>&,
                                  const std::string&);

Argument Command::option(const std::string& name,
                         std::function<void(const std::vector<std::string>&)> take,
                         const std::string& meaning) {
  CLI::Option* const option =
      app_.add_option_function<std::vector<std::string>>(name, std::move(take), meaning);
  option->check(CLI::Validator(type_fault<std::string>, ""));
  return Argument(option);
}

void Command::footer(const std::string& text) { app_.footer(text); }

void Command::accept_other_words(const std::string& lines, const std::string& note) {
  app_.allow_extras();
  app_.formatter(std::make_shared<UsageFormatter>(lines, note));
}

void Command::runs(std::function<int()> body) {
  app_.callback([this, body = std::move(body)] { chosen_ = body; });
}

bool Command::given(const std::string& flag) const { return app_.count(flag) > 0; }

std::vector<std::string> Command::other_words() const { return app_.remaining(); }

std::string Command::name() const { return app_.get_name(); }

std::vector<std::string> Command::flags() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_.get_options()) {
    const auto& own = option->get_lnames();
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

struct CommandLine::State {
  CLI::App app;
  std::function<int()> chosen;
  std::list<Command> commands;
};

CommandLine::CommandLine(const std::string& description, std::function<std::string()> version,
                         const std::string& footer)
    : state_(new State{CLI::App(description, "attnbench"), {}, {}}) {
  state_->app.require_subcommand(1);
  state_->app.set_version_flag("--version", std::move(version),
                               "Version, commit, LibTorch and BLAS");
  state_->app.footer(footer);
}

CommandLine::~CommandLine() = default;

Command& CommandLine::add(const std::string& name, const std::string& meaning) {
  CLI::App& app = *state_->app.add_subcommand(name, meaning);
  return state_->commands.emplace_back(app, state_->chosen);
}

void CommandLine::footer(const std::string& text) { state_->app.footer(text); }

int CommandLine::run(int argc, char** argv) {
  try {
    expect_command(state_->app, argc, argv);
    state_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_with(state_->app, error);
  }
  return state_->chosen();
}

std::string exit_codes() {
  std::ostringstream text;
  text << "Exit codes:";
  for (const ExitMeaning& one : exit_meanings) {
    text << "\n  " << std::setw(3) << static_cast<int>(one.code) << "  " << one.meaning;
  }
  return text.str();
}

}  // namespace attnbench::commands
