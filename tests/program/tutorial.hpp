// attention/README.md, followed to the letter.
#pragma once

#include <map>
#include <string>

#include "tests/support/files.hpp"

namespace attnbench::test {

/// Does what the page says in an empty folder, and looks at what came out.
void follow_the_page(const TemporaryFolder& folder,
                     const std::map<std::string, std::string>& environment);

}  // namespace attnbench::test
