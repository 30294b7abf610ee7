// attnbench schema NAME: the JSON Schema of a result or a suite.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/schema/result_check.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/suite/schema_check.hpp"

namespace attnbench::commands {

void declare_schema(Command& command) {
  auto name = std::make_shared<std::string>();
  command.option("name", *name, "result or suite").required().one_of({"result", "suite"});
  command.footer(
      "Example:\n"
      "  attnbench schema result > result.schema.json");
  command.runs([name] {
    std::cout << (*name == "suite" ? suite::schema_text : schema::result_schema_text);
    return 0;
  });
}

}  // namespace attnbench::commands
