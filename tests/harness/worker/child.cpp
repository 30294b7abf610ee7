#include "harness/worker/child.hpp"

#include <fcntl.h>
#include <fenv.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "attention/plugin/floating_point.hpp"
#include "core/errors.hpp"
#include "core/process/descendants.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using process::Channel;
using worker::ChildSetup;
using worker::Json;
using worker::Outcome;

namespace {

Outcome run_body(const worker::Child::Body& body, const ChildSetup& setup = {},
                 std::vector<Json>* messages = nullptr) {
  return worker::run_child(setup, body, [&](const Json& message) {
    if (messages != nullptr) messages->push_back(message);
  });
}

}  // namespace

TEST_CASE("a child's messages arrive, and its end is reported", "[child]") {
  std::vector<Json> messages;
  ChildSetup limited;
  limited.limit_seconds = 60;
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
  limited.limit_seconds = 60;
  const Outcome end = run_body([](Channel&) { throw UnsupportedError("no cross"); }, limited);
  CHECK(end.status == Status::unsupported);
  CHECK(end.reason == "no cross");
}

TEST_CASE("a child's death is reported with the end of its log", "[child]") {
  const test::TemporaryFolder folder;
  ChildSetup setup;
  setup.log = folder / "log";
  setup.limit_seconds = 60;
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
  CHECK(run_body([](Channel&) { sleep(600); }, setup).status == Status::timeout);
}

TEST_CASE("processes that a child starts end with it", "[child]") {
  // A pipe that ends with the last of them.
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  worker::Child child({}, [&](Channel& channel) {
    if (fork() == 0) {
      sleep(600);
      _exit(0);
    }
    channel.send({{"type", "forked"}});
    sleep(600);
  });
  REQUIRE(child.receive(60));
  child.end();
  close(ends[1]);
  pollfd ended{ends[0], POLLIN, 0};
  CHECK(poll(&ended, 1, 60'000) == 1);
  char byte = 0;
  CHECK(read(ends[0], &byte, 1) == 0);
  close(ends[0]);
}

TEST_CASE("a child computes in the environment of a fresh program, whatever its worker's is",
          "[child]") {
  std::vector<Json> messages;
  ChildSetup setup;
  setup.limit_seconds = 60;
  const FloatingPointGuard kept;
  fesetround(FE_UPWARD);
  const bool traps = feenableexcept(FE_DIVBYZERO) != -1;  // few processors of aarch64 have them
  run_body(
      [](Channel& channel) {
        std::string other;
        std::thread([&] { other = floating_point_changes(); }).join();
        channel.send({{"here", floating_point_changes()}, {"thread", other}});
      },
      setup, &messages);
  CHECK(floating_point_changes() == (traps ? "traps on, rounds upward" : "rounds upward"));
  REQUIRE(messages.size() == 1);
  CHECK(messages[0] == Json{{"here", ""}, {"thread", ""}});
}

TEST_CASE("foreign bytes in a child's socket end the child", "[child]") {
  ChildSetup setup;
  setup.limit_seconds = 60;
  std::vector<Json> messages;
  const Outcome end = run_body(
      [](Channel& channel) {
        constexpr char forged[] = "{\"type\":\"done\",\"status\":\"ok\"}\n";
        send(channel.descriptor(), forged, sizeof forged - 1, 0);
      },
      setup, &messages);
  CHECK(end.status == Status::crashed);
  CHECK_THAT(end.reason, Catch::Contains("a message that its work did not write"));
  CHECK(messages.empty());
}

TEST_CASE("a child has none of the descriptors that its worker keeps for itself", "[child]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "own", "");
  const int own = open((folder / "own").c_str(), O_RDONLY);
  struct stat file {};
  REQUIRE(fstat(own, &file) == 0);
  worker::keep_from_children(own);
  ChildSetup setup;
  setup.limit_seconds = 60;
  std::vector<Json> messages;
  run_body(
      [&](Channel& channel) {
        // Its number may be another file's by now.
        struct stat found {};
        const bool any = fstat(own, &found) == 0;
        channel.send({{"open", any && found.st_dev == file.st_dev && found.st_ino == file.st_ino}});
      },
      setup, &messages);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0] == Json{{"open", false}});
}

TEST_CASE("processes that a child leaves behind end with it, and do not hide its end", "[child]") {
  process::adopt_orphans();
  const test::TemporaryFolder folder;
  const std::string file = folder / "left";
  ChildSetup setup;
  setup.limit_seconds = 120;
  for (const bool exits : {false, true}) {
    const Outcome end = run_body(
        [&](Channel&) {
          if (fork() == 0) {
            setsid();
            if (fork() > 0) _exit(0);
            test::write_file(file, std::to_string(getpid()));
            sleep(600);
            _exit(0);
          }
          while (!std::filesystem::exists(file) || std::filesystem::file_size(file) == 0)
            usleep(1000);
          if (exits) _exit(7);
        },
        setup);
    CHECK(end.status == (exits ? Status::crashed : Status::ok));
    CHECK(kill(std::stoi(test::read_file(file)), 0) != 0);
    std::filesystem::remove(file);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("memory that is not tensors' is limited as well", "[child]") {
  ChildSetup setup;
  setup.limit_seconds = 120;
  setup.memory_bytes = 64 << 20;
  const std::int64_t beside = worker::memory_beside_tensors(setup.memory_bytes, 1);
  CHECK(beside >= std::int64_t{2} << 30);
  const auto take = [](int chunks) {
    for (int i = 0; i < chunks; ++i) {
      // Written to, or the compiler leaves the call out.
      *static_cast<volatile char*>(operator new (std::size_t{1} << 28)) = 1;
    }
  };
  CHECK(run_body([&](Channel&) { take(4); }, setup).status == Status::ok);
  const Outcome end = run_body([&](Channel&) { take(128); }, setup);
  CHECK(end.status == Status::out_of_memory);
  CHECK_THAT(end.reason, Catch::Contains("memory beside tensors"));
}
