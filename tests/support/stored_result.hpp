// A result that the program wrote.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/result/document.hpp"
#include "core/result/result_check.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

/// The value of a result.json, which is of its schema and which nothing is lost of when it is read
/// as the program reads it.
inline nlohmann::json stored_result(const std::filesystem::path& file) {
  const auto json = nlohmann::json::parse(read_file(file));
  INFO(file.string());
  CHECK(result::result_fault(json) == "");
  CHECK(nlohmann::json(json.get<result::Result>()) == json);
  return json;
}

}  // namespace attnbench::test
