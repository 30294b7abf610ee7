// attnbench schema NAME: the JSON Schema of a result, a suite or shapes.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/result/result_check.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/suite/schema_check.hpp"
#include "harness/program/suite/shapes.hpp"

namespace attnbench::commands {

void declare_schema(Command& command) {
  auto name = std::make_shared<std::string>();
  command.option("name", *name, "result, suite or shapes")
      .required()
      .one_of({"result", "suite", "shapes"});
  command.footer(
      "Example:\n"
      "  attnbench schema result > result.schema.json");
  command.runs([name] {
    std::cout << (*name == "suite"    ? suite::schema_text
                  : *name == "shapes" ? suite::shapes_schema_text
                                      : result::result_schema_text());
    return 0;
  });
}

}  // namespace attnbench::commands
