#include "tests/end_to_end/symbols.hpp"

#include <regex>
#include <sstream>
#include <stdexcept>

#include "tests/support/process.hpp"

namespace attnbench::test {

std::vector<Symbol> symbols_of(const std::string& file) {
  const Finished finished = run({"sh", "-c", "readelf -W --dyn-syms \"$0\" | c++filt", file});
  if (finished.exit_code != 0) throw std::runtime_error(finished.err);
  std::vector<Symbol> symbols;
  std::istringstream lines(finished.out);
  // Number: value size type binding visibility section name
  const std::regex line_of(R"(\s*\d+:\s+\S+\s+\S+\s+\S+\s+(\S+)\s+\S+\s+(\S+)\s+(.+))");
  for (std::string line; std::getline(lines, line);) {
    std::smatch part;
    if (!std::regex_match(line, part, line_of) || part[1] == "LOCAL") continue;
    Symbol symbol;
    symbol.name = part[3];
    symbol.defined = part[2] != "UND" && part[2] != "ABS";
    const std::size_t at = symbol.name.find('@');  // NAME@@VERSION, or NAME@VERSION (NUMBER)
    if (at != std::string::npos) {
      std::istringstream version(symbol.name.substr(symbol.name.find_first_not_of('@', at)));
      version >> symbol.version;
      symbol.name.resize(at);
    }
    symbols.push_back(symbol);
  }
  return symbols;
}

}  // namespace attnbench::test
