// Running programs from tests: arguments in, exit code and both outputs out.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace attnbench::test {

struct Finished {
  int exit_code = 0;  ///< 128 + signal where one ended it
  std::string out;
  std::string err;
};

/// The words of a line that blanks part; "" is an empty one, nothing else is quoted.
std::vector<std::string> words(const std::string& line);

/// Runs `attnbench LINE` to its end, as run() does.
Finished call(const std::string& line, const std::map<std::string, std::string>& environment = {},
              const std::string& folder = {});

/// Runs `arguments` (the program first) to its end in `folder` (empty = here) with `environment`
/// added to ours (main.cpp). `limit_seconds` is a limit against hanging:
/// its process group is killed then, and `err` says so.
Finished run(const std::vector<std::string>& arguments, double limit_seconds = 580,
             const std::map<std::string, std::string>& environment = {},
             const std::string& folder = {});

/// A program at work, its output going to a file: for tests that kill it.
class Running {
 public:
  Running(const std::vector<std::string>& arguments, const std::string& output_file,
          const std::map<std::string, std::string>& environment = {});
  ~Running();  ///< kills what is left of its process group
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// The exit code (128 + signal where one ended it), or -1 if it is still at work after the limit.
  int wait(double limit_seconds = 120);
  /// Processes whose parent is `of` (0 = the program), from /proc.
  std::vector<pid_t> children(pid_t of = 0) const;

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

/// Paths of the built programs.
std::string program();         ///< bin/attnbench
std::string worker_program();  ///< bin/attnbench-worker

}  // namespace attnbench::test
