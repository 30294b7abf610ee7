#include "harness/worker/child.hpp"

#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "attention/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using result::Status;
using worker::ChildSetup;
using worker::Outcome;
using run::Channel;
using run::Json;

namespace {

Outcome run_body(const worker::Child::Body& body, const ChildSetup& setup = {},
                 std::vector<Json>* messages = nullptr) {
  return worker::run_child(setup, body, [&](const Json& message) {
    if (messages != nullptr) messages->push_back(message);
  });
}

}  // namespace

TEST_CASE("a child's messages arrive, and its end is told", "[child]") {
  std::vector<Json> messages;
  ChildSetup limited;
  limited.limit_seconds = 20;
  const Outcome end = run_body(
      [](Channel& channel) {
        for (int i = 0; i < 3; ++i) channel.send({{"type", "number"}, {"value", i}});
      },
      limited, &messages);
  CHECK(end.status == Status::ok);
  REQUIRE(messages.size() == 3);
  CHECK(messages[2].at("value") == 2);
}

TEST_CASE("an exception in a child is its outcome", "[child]") {
  ChildSetup limited;
  limited.limit_seconds = 20;
  const Outcome end = run_body([](Channel&) { throw UnsupportedError("no cross"); }, limited);
  CHECK(end.status == Status::unsupported);
  CHECK(end.reason == "no cross");
}

TEST_CASE("a child's death is told with the end of its log", "[child]") {
  const test::TemporaryFolder folder;
  ChildSetup setup;
  setup.log = folder / "log";
  setup.limit_seconds = 20;
  const Outcome end = run_body(
      [](Channel&) {
        constexpr char words[] = "last words\n";
        if (write(2, words, sizeof words - 1) > 0) raise(SIGKILL);
      },
      setup);
  CHECK(end.status == Status::crashed);
  CHECK(end.detail == "last words");
}

TEST_CASE("a silent child is ended at its limit", "[child]") {
  ChildSetup setup;
  setup.limit_seconds = 0.2;
  CHECK(run_body([](Channel&) { sleep(30); }, setup).status == Status::timeout);
}

TEST_CASE("what a child starts goes with it", "[child]") {
  const test::TemporaryFolder folder;
  const std::string mark = folder / "mark";
  worker::Child child({}, [&](Channel& channel) {
    if (fork() == 0) {
      sleep(1);
      test::write_file(mark, "still here");
      _exit(0);
    }
    channel.send({{"type", "forked"}});
    sleep(30);
  });
  REQUIRE(child.channel().receive(10));
  child.end();
  usleep(1500000);
  CHECK_FALSE(std::filesystem::exists(mark));
}
