# Tables of built-ins, generated from folders: a new file is all that a new mechanism or task needs.

# attnbench_generate_mechanisms(OUT): declares and registers mechanisms::NAME() with reference::NAME()
# for each NAME.cpp in attention/mechanisms.
function(attnbench_generate_mechanisms out)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attention/mechanisms/*.cpp)
  set(declarations "")
  set(registrations "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/attention/reference/${name}.cpp)
      message(FATAL_ERROR "attention/mechanisms/${name}.cpp has no attention/reference/${name}.cpp: "
                          "every mechanism needs its definition in double.")
    endif()
    string(APPEND declarations "namespace attnbench::mechanisms { Entry ${name}(); }\n"
                               "namespace attnbench::reference { Reference ${name}(); }\n")
    string(APPEND registrations "  registry.add(mechanisms::${name}(), reference::${name}());\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Generated from the folder attention/mechanisms.
#include "attention/registry.hpp"

@declarations@
namespace attnbench {
void register_builtins(Registry& registry) {
@registrations@}
}  // namespace attnbench
]])
endfunction()

# attnbench_generate_devices(OUT): the same for measure::device_NAME(), one for each device_NAME.cpp in
# harness/measure.
function(attnbench_generate_devices out)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/harness/measure/device_*.cpp)
  set(declarations "")
  set(registrations "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    string(APPEND declarations "std::unique_ptr<Device> ${name}();\n")
    string(APPEND registrations "  devices.push_back(${name}());\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Generated from the files harness/measure/device_*.cpp.
#include "harness/measure/device.hpp"

namespace attnbench::measure {
@declarations@
void append_devices(std::vector<std::unique_ptr<Device>>& devices) {
@registrations@}
}  // namespace attnbench::measure
]])
endfunction()

# attnbench_generate_tasks(OUT): the same for tasks::make_NAME(), one for each folder of tasks/ that
# holds a file of its own name: tasks/NAME/NAME.cpp. A folder of several tasks, NAME.A and NAME.B,
# has tasks/NAME/NAME_tasks.cpp in its place, which defines tasks::append_NAME_tasks(tasks).
function(attnbench_generate_tasks out)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tasks/*/*.cpp)
  set(declarations "")
  set(registrations "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    if(name STREQUAL folder)
      string(APPEND declarations "std::unique_ptr<Task> make_${name}();\n")
      string(APPEND registrations "  tasks.push_back(make_${name}());\n")
    elseif(name STREQUAL "${folder}_tasks")
      string(APPEND declarations "void append_${name}(std::vector<std::unique_ptr<Task>>& tasks);\n")
      string(APPEND registrations "  append_${name}(tasks);\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Generated from the folder tasks.
#include "tasks/task.hpp"

namespace attnbench::tasks {
@declarations@
void append_tasks(std::vector<std::unique_ptr<Task>>& tasks) {
@registrations@}
}  // namespace attnbench::tasks
]])
endfunction()

# attnbench_generate_commands(OUT): commands::declare_all(line), which declares each command NAME of
# harness/program/commands/commands.txt by commands::declare_NAME of NAME.cpp beside it. The launcher
# reads the same text before anything is built.
function(attnbench_generate_commands out)
  set(folder ${PROJECT_SOURCE_DIR}/harness/program/commands)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(STRINGS ${folder}/commands.txt lines)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/commands.txt)
  set(declarations "")
  set(calls "")
  set(known "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([a-z]+) ([^\"\\]+)$")
      message(FATAL_ERROR "commands.txt: \"${line}\": expected NAME and what the command does.")
    endif()
    list(APPEND known ${folder}/${CMAKE_MATCH_1}.cpp)
    string(APPEND declarations "void declare_${CMAKE_MATCH_1}(Command& command);\n")
    string(APPEND calls "  declare_${CMAKE_MATCH_1}(line.add(\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\"));\n")
  endforeach()
  foreach(file IN LISTS files known)
    if(NOT file IN_LIST known OR NOT EXISTS ${file})
      message(FATAL_ERROR "${file}: a command has a file NAME.cpp and a line NAME in commands.txt.")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Generated from harness/program/commands/commands.txt.
#include "harness/program/commands/shared/command.hpp"

namespace attnbench::commands {
@declarations@
void declare_all(CommandLine& line) {
@calls@}
}  // namespace attnbench::commands
]])
endfunction()
