// One training in several processes, as torchrun and srun start them.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/end_to_end/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// A port that was free a moment ago.
int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(descriptor);
  return bound ? ntohs(address.sin_port) : 29771;
}

std::map<std::string, std::string> process_rank(int rank, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", "2"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

}  // namespace

TEST_CASE("two processes learn what one learns from the joined batches", "[train][processes]") {
  // In float64, so that sums in another order stay close. The last batch of an epoch is a single
  // example, of which one process has no share.
  const Json set = {{"dtype", "float64"}, {"train_examples", 41}, {"epochs", 4}};
  const TrainingSuite one(set);
  REQUIRE(one.run().exit_code == 0);
  const TrainingSuite two(set);
  const int port = free_port();
  Running second(two.command(), two / "output", process_rank(1, port));
  const Finished first = run(two.command(), 580, process_rank(0, port));
  const int second_code = second.wait();
  INFO(first.err << "\n" << read_file(two / "output"));
  const Json cell = two.cell();
  if (cell["status"] == "error") {
    CHECK_THAT(cell["reason"].get<std::string>(), Contains("built without c10d's Gloo"));
    WARN("not tried: " << cell["reason"].get<std::string>());
    return;
  }
  REQUIRE(first.exit_code == 0);
  CHECK(second_code == 0);
  CHECK(cell["training"]["processes"] == 2);
  const Json curve = cell["training"]["curve"];
  const Json want = one.cell()["training"]["curve"];
  REQUIRE(curve.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const char* column : {"loss", "validation_loss", "train_accuracy"}) {
      INFO(column << " of epoch " << i + 1);
      CHECK(curve[i][column].get<double>() == Approx(want[i][column].get<double>()).epsilon(1e-9));
    }
  }
  const Json other = cells_of(two.run_folder() + ".process_1").at("latte");
  CHECK(other["training"]["weights_hash"] == cell["training"]["weights_hash"]);
}

TEST_CASE("options that several processes exclude are refused", "[train]") {
  const TrainingSuite suite;
  const auto refused = [&](const std::vector<std::string>& command,
                           const std::map<std::string, std::string>& more, const char* why) {
    auto variables = process_rank(0, 29500);
    for (const auto& [name, value] : more) variables[name] = value;
    const Finished bad = run(command, 580, variables);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
  };
  refused({program(), "run", suite.file()}, {{"RANK", "1"}}, "--out");
  refused(suite.command("--jobs 2"), {}, "choose");
  refused({program(), "run", "softmax", "--out", suite / "timed"}, {}, "is timed");
  refused(suite.command(), {{"RANK", "7"}}, "RANK=7");
  refused(suite.command(), {{"MASTER_ADDR", "garbage in it"}}, "MASTER_ADDR=\"garbage in it\"");
}
