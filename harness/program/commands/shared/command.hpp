// Commands: their flags and options, the variable that each one fills, and the list of all
// commands.
//
// Only command.cpp includes CLI11, which takes seconds to compile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attnbench::commands {

/// A declared flag, option or positional. The members add conditions on its value; a value that
/// breaks one ends the program with exit code 2. A number is read whole, finite and in the range of
/// its variable, a text is not empty.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument required() const;
  /// Allows the argument several times, with one value each time.
  Argument repeatable() const;
  /// Allows several values in one, separated by commas.
  Argument comma_separated() const;
  /// Makes the help show the present value of the variable.
  Argument shows_default() const;
  // Bounds of a number:
  Argument within(double least, double greatest) const;
  Argument not_negative() const;
  /// Requires a number above 0, and no greater than the longest wait: 1e9.
  Argument positive_seconds() const;
  Argument one_of(const std::vector<std::string>& words) const;
  Argument excludes(const Argument& other) const;

 private:
  Argument with_range(const std::string& words, std::function<bool(double)> holds) const;

  CLI::Option* option_;
};

/// A command of the program, such as `run`. Variables must live until the command has run.
class Command {
 public:
  /// `chosen` is set when the command line names this command.
  Command(CLI::App& app, std::function<int()>& chosen) : app_(app), chosen_(chosen) {}

  Argument flag(const std::string& name, bool& value, const std::string& meaning);
  /// A name without leading dashes declares a positional. Value is std::string, int, std::int64_t,
  /// std::uint64_t, double or std::vector<std::string>.
  template <typename Value>
  Argument option(const std::string& name, Value& value, const std::string& meaning);
  /// `take` gets all values while the command line is read.
  Argument option(const std::string& name,
                  std::function<void(const std::vector<std::string>&)> take,
                  const std::string& meaning);

  /// Sets the text at the end of the help, instead of the program's.
  void footer(const std::string& text);
  /// Accepts words that no argument declares; the command must declare no positionals. `lines` say
  /// how the command is called; `note` follows them in the help.
  void accept_other_words(const std::string& lines, const std::string& note);
  /// What the command does; returns the exit code.
  void runs(std::function<int()> body);

  // Known after parsing:
  bool given(const std::string& flag) const;
  std::vector<std::string> other_words() const;

  std::string name() const;
  /// Long names of the declared flags and options, without dashes.
  std::vector<std::string> flags() const;

 private:
  CLI::App& app_;
  std::function<int()>& chosen_;
};

class CommandLine {
 public:
  /// `version` is called for --version alone. `footer` ends the help of every command that has none
  /// of its own.
  CommandLine(const std::string& description, std::function<std::string()> version,
              const std::string& footer);
  ~CommandLine();

  Command& add(const std::string& name, const std::string& meaning);
  /// Sets the text at the end of the program's own help.
  void footer(const std::string& text);
  /// Runs the command that the command line names and returns its exit code. Prints help and
  /// complaints about arguments. Throws UsageFailure where no command is named, and what the
  /// command throws.
  int run(int argc, char** argv);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The end of every help, unless a command has its own exit codes.
std::string exit_codes();

/// What --version prints: version, commit, LibTorch and BLAS; what is not known, with the reason.
std::string version_text();

/// All commands, in the order of commands.txt. The build generates it: a line NAME there is
/// declared by declare_NAME in commands/NAME.cpp.
void declare_all(CommandLine& line);

}  // namespace attnbench::commands
