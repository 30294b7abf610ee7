// attnbench new NAME [--plugin DIR]: writes the files that a mechanism of one's own begins with.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/templates.hpp"
#include "harness/run/plan/catalogue_cache.hpp"
#include "harness/run/worker/worker_client.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct NewArguments {
  std::string name;
  std::string plugin;
};

bool is_source_tree(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "attention/mechanisms/softmax.cpp", ignored) &&
         fs::exists(folder / "cmake/builtins.cmake", ignored);
}

/// The sources that the user stands in or, else, those that this program was built from.
fs::path source_tree() {
  for (fs::path folder : {fs::current_path(), run::program_folder()}) {
    for (; folder.has_relative_path(); folder = folder.parent_path()) {
      if (is_source_tree(folder)) return folder;
    }
  }
  throw EnvironmentFailure(
      "there are no sources of attnbench here or above this program: go to them, or write a plugin "
      "of its own with --plugin DIR");
}

/// Of this program: what -Dattnbench_DIR is to be for a plugin.
fs::path package_folder() {
  std::error_code ignored;
  const fs::path above = run::program_folder().parent_path();
  const fs::path installed = above / "lib/cmake/attnbench";
  return fs::exists(installed, ignored) ? installed : above / "package";
}

void refuse_taken(const std::string& name) {
  suite::Catalogue catalogue;
  try {
    catalogue = run::load_catalogue({});
  } catch (const EnvironmentFailure&) {
    return;  // no worker yet: the registry will say so
  }
  if (catalogue.mechanisms.count(name) != 0 || catalogue.aliases.count(name) != 0) {
    throw UsageFailure("there is a mechanism or alias " + name + " already; choose another name");
  }
}

/// Writes all or, if one is there already, none.
void write_all(const fs::path& folder, const std::vector<NewFile>& files) {
  for (const NewFile& file : files) {
    if (fs::exists(folder / file.path)) {
      throw UsageFailure((folder / file.path).string() + " is there already; nothing was written");
    }
  }
  const char* before = "wrote  ";
  for (const NewFile& file : files) {
    fs::create_directories((folder / file.path).parent_path());
    result::write_atomically(folder / file.path, file.text);
    if (file.executable) {
      fs::permissions(folder / file.path,
                      fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add);
    }
    std::cout << before << (folder / file.path).string() << ": " << file.meaning << "\n";
    before = "       ";
  }
}

void write(const fs::path& folder, const std::vector<NewFile>& files) {
  try {
    write_all(folder, files);
  } catch (const fs::filesystem_error& error) {
    throw UsageFailure(result::quotable(folder.string()) + ": " + error.code().message() +
                       "; name a folder that is there or can be made");
  }
}

void say_next(const std::vector<std::string>& steps) {
  const char* before = "next   ";
  for (const std::string& step : steps) {
    std::cout << before << step << "\n";
    before = "       ";
  }
}

int write_new(const NewArguments& arguments) {
  const std::string& name = arguments.name;
  refuse_taken(name);
  if (const std::string complaint = name_complaint(name); !complaint.empty()) {
    throw UsageFailure("new " + name + ": " + complaint);
  }
  if (arguments.plugin.empty()) {
    write(source_tree(), mechanism_files(name));
    say_next({"edit both, then ./attnbench check " + name,
              "./attnbench run " + name + " softmax --length 256..4096"});
    return 0;
  }
  const std::string folder = arguments.plugin;
  const std::string plugin = " --plugin " + folder + "/build/lib" + name + ".so";
  write(folder, plugin_files(name));
  say_next({"edit mechanism.cpp and reference.cpp, then",
            "cmake -S " + folder + " -B " + folder +
                "/build -Dattnbench_DIR=" + package_folder().string(),
            "cmake --build " + folder + "/build", "attnbench check " + name + plugin,
            "attnbench run " + name + " softmax --length 256..4096" + plugin});
  return 0;
}

}  // namespace

void add_new(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<NewArguments>();
  CLI::App* command =
      app.add_subcommand("new", "Write the files that a mechanism of your own begins with");
  command->add_option("name", arguments->name, "Its name: lower-case letters, digits and _")
      ->required();
  command->add_option("--plugin", arguments->plugin,
                      "A folder for a project of its own, outside of attnbench's sources");
  command->footer(
      "Examples:\n"
      "  attnbench new my_mix\n"
      "  attnbench new my_mix --plugin ../my_mix");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return write_new(*arguments); }; });
}

}  // namespace attnbench::commands
