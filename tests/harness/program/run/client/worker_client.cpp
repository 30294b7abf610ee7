#include "harness/program/run/client/worker_client.hpp"

#include <signal.h>

#include <fstream>

#include "tests/support/catch.hpp"
#include "tests/support/fake_worker.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using namespace attnbench::run;

using attnbench::test::FakeWorker;
using attnbench::test::greeting;

TEST_CASE("a worker answers, with events in between", "[worker_client]") {
  FakeWorker worker(greeting +
                    "echo noise; read -r line <&8\n"
                    "echo '{\"type\":\"heartbeat\",\"elapsed_seconds\":1}' >&8\n"
                    "echo '{\"type\":\"record\",\"status\":\"ok\"}' >&8; read -r line <&8\n");
  WorkerClient client(worker.options);
  int events = 0;
  const Json answer = client.request(
      {{"type", "run"}}, [&](const Json&) { ++events; }, 10);
  CHECK(answer.at("status") == "ok");
  CHECK(events == 1);
  CHECK(worker.log() == "noise\n");
}

TEST_CASE("a worker's own log has no name, so that nothing stays of it after a kill",
          "[worker_client]") {
  FakeWorker worker(greeting + "echo noise; read -r line <&8\n");
  FakeWorker broken("echo last words >&2; exit 7\n");
  worker.options.log.clear();
  broken.options.log.clear();
  const attnbench::test::TemporaryFolder temporary;
  const attnbench::test::Variable variable("TMPDIR", temporary.path().string());
  WorkerClient client(worker.options);
  client.start();
  CHECK(std::filesystem::is_empty(temporary.path()));
  CHECK_THROWS_WITH(WorkerClient(broken.options).start(), Catch::Contains("last words"));
}

TEST_CASE("a worker that dies, one that refuses and one that is silent give different errors",
          "[worker_client]") {
  {
    FakeWorker worker(greeting + "read -r line <&8; kill -9 $$\n");
    WorkerClient client(worker.options);
    CHECK_THROWS_WITH(client.request({{"type", "run"}}, {}, 10),
                      "the worker was killed by signal 9 (SIGKILL)");
    CHECK_FALSE(client.running());
  }
  {
    FakeWorker worker(greeting +
                      "read -r line <&8; echo '{\"type\":\"error\",\"message\":\"no\"}' >&8; "
                      "read -r line <&8\n");
    WorkerClient client(worker.options);
    CHECK_THROWS_AS(client.request({{"type", "run"}}, {}, 10), WorkerRefused);
    CHECK(client.running());
  }
  {
    FakeWorker worker(greeting +
                      "read -r line <&8\n"
                      "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; "
                      "echo '{\"type\":\"heartbeat\"}' >&8; done; sleep 60\n");
    WorkerClient client(worker.options);
    CHECK_THROWS_AS(client.request({{"type", "run"}}, {}, 0.2), WorkerSilent);
    client.kill();
    CHECK_FALSE(client.running());
  }
}

TEST_CASE("a worker that died is started again by the next request", "[worker_client]") {
  FakeWorker worker(greeting +
                    "read -r line <&8; [ \"$(date +%s)\" ] && [ ! -e $0.died ] && "
                    "touch $0.died && exit 7\n"
                    "echo '{\"type\":\"plan\"}' >&8; read -r line <&8\n");
  WorkerClient client(worker.options);
  CHECK_THROWS_WITH(client.request({{"type", "plan"}}, {}, 10),
                    "the worker ended with exit code 7");
  CHECK(client.request({{"type", "plan"}}, {}, 10).at("type") == "plan");
}

TEST_CASE("a worker that is killed while it starts is tried a second time", "[worker_client]") {
  using Catch::Matchers::Contains;
  FakeWorker once("[ -e $0.died ] || { touch $0.died; kill -9 $$; }\n" + greeting +
                  "read -r line <&8\n");
  WorkerClient(once.options).start();
  FakeWorker always("echo again >&2; kill -9 $$\n");
  CHECK_THROWS_WITH(WorkerClient(always.options).start(), Contains("signal 9 (SIGKILL)"));
  CHECK(always.log() == "again\nagain\n");
}

TEST_CASE("a worker that does not start names the plugin that it was at", "[worker_client]") {
  using Catch::Matchers::Contains;
  const std::string loading =
      "read -r line <&8; echo '{\"type\":\"loading\",\"plugin\":\"a.so\"}' >&8\n";
  FakeWorker dies(loading + "kill -9 $$\n");
  dies.options.plugins = {"a.so"};
  CHECK_THROWS_WITH(WorkerClient(dies.options).start(),
                    Contains("signal 9 (SIGKILL), while it loaded the plugin a.so"));
  FakeWorker hangs(loading + "sleep 600\n");
  hangs.options.plugins = {"a.so"};
  hangs.options.step_limit_seconds = 1;
  CHECK_THROWS_WITH(WorkerClient(hangs.options).start(),
                    Contains("no answer within 1 s, while it loaded the plugin a.so"));
  FakeWorker talks("read -r line <&8; while echo '{\"type\":\"heartbeat\"}' >&8; do :; done\n");
  CHECK_THROWS_WITH(WorkerClient(talks.options).start(),
                    Contains("one message after another and no answer to \"hello\""));
}

TEST_CASE("a worker's end is seen though what it left behind holds the connection",
          "[worker_client]") {
  FakeWorker worker(greeting + "setsid sleep 600 & echo $! > $0.left; read -r line <&8; exit 7\n");
  WorkerClient client(worker.options);
  CHECK_THROWS_WITH(client.request({{"type", "run"}}), "the worker ended with exit code 7");
  const int left = std::stoi(worker.beside(".left"));
  CHECK(::kill(left, 0) != 0);
}

TEST_CASE("a worker that was stopped is killed with what it started", "[worker_client]") {
  FakeWorker worker(greeting + "setsid sleep 600 & echo $! > $0.left; kill -STOP $$; sleep 600\n");
  WorkerClient client(worker.options);
  int left = 0;
  while (left == 0) {
    CHECK_THROWS_AS(client.request({{"type", "run"}}, {}, 0.5), WorkerSilent);
    std::ifstream(worker.options.program.string() + ".left") >> left;
  }
  client.kill();
  CHECK(::kill(left, 0) != 0);
}

TEST_CASE("a worker that cannot be used is the environment's failure", "[worker_client]") {
  using Catch::Matchers::Contains;
  WorkerOptions missing;
  missing.program = "/nowhere/attnbench-worker";
  CHECK_THROWS_WITH(WorkerClient(missing).start(), Contains("/nowhere/attnbench-worker"));

  FakeWorker old(
      "read -r line <&8; echo '{\"type\":\"hello\",\"protocol\":0}' >&8; read -r l <&8\n");
  CHECK_THROWS_WITH(WorkerClient(old.options).start(), Contains("protocol 0"));

  FakeWorker broken("echo 'libtorch.so: cannot open' >&2; exit 127\n");
  CHECK_THROWS_WITH(WorkerClient(broken.options).start(), Contains("libtorch.so: cannot open"));
}
