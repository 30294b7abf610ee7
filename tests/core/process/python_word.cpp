#include "core/process/python_word.hpp"

#include "core/process/fingerprint.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;

TEST_CASE("a word of Python names a mechanism", "[run][python]") {
  CHECK(process::mechanism_of("python:/a/near.py:Near") == "near");
  CHECK(process::mechanism_of("python:/a/peers/fla.py:GatedDelta") == "fla_gated_delta");
  CHECK(process::mechanism_of("python:fla.ops.gla:chunk_gla") == "fla_chunk_gla");
  CHECK(process::mechanism_of("python:/a/my-file.py:HTTPServer2.Inner") ==
        "my_file_http_server2_inner");
  CHECK(process::mechanism_of("python:/a/1.py:f") == "py_1_f");
  CHECK(process::mechanism_of("mine=python:/a/near.py:Near") == "mine");
  CHECK(process::portable("mine=python:/a/b/near.py:Near", "/a") == "python:b/near.py:Near");
  CHECK(process::portable("python:/a/b/near.py:Near", "/c") == "python:/a/b/near.py:Near");
  CHECK(process::portable("python:torch.nn:Linear", "/a") == "python:torch.nn:Linear");
  CHECK(process::file_of("python:/a:b/near.py:Near") == "/a:b/near.py");
  CHECK(process::file_of("python:torch.nn:Linear").empty());
  CHECK_FALSE(process::is_python("near.py:Near"));
}

TEST_CASE("the fingerprint of a run follows the file in Python and what it depends on",
          "[run][python]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "near.py", "one");
  const std::string word = "python:" + (folder / "near.py").string() + ":Near";
  const std::string first = process::binary_fingerprint({word});
  test::write_file(folder / "near.py", "another text");
  CHECK(process::binary_fingerprint({word}) != first);
}
