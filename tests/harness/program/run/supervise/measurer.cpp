#include "harness/program/run/supervise/measurer.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_worker.hpp"

using namespace attnbench;
using namespace attnbench::run;
using Catch::Matchers::Contains;
using test::FakeWorker;

namespace {

std::string answers(const std::string& record) {
  return "while read -r line <&8; do echo '" + record + "' >&8; done\n";
}

const Planned& planned() {
  static const Planned one = [] {
    Planned made;
    made.cell.id = made.cell.label = "a";
    made.cell.task = made.cell.task_label = "kernel";
    made.cell.mechanism = "softmax";
    return made;
  }();
  return one;
}

protocol::Run request(double seconds = 30) {
  protocol::Run run;
  run.cell = planned().cell;
  run.round = 1;
  run.limits.seconds = seconds;
  return run;
}

/// What the record of a round says, with a worker that does as `script` says.
Json measured(const std::string& script) {
  const FakeWorker worker(test::greeting + script);
  Measurer measurer(worker.options, {[] { return 0; }});
  measurer.start(Waiting::active);
  return measurer.measure(planned(), request()).value();
}

}  // namespace

TEST_CASE("the record of a round is the worker's", "[measurer]") {
  const Json record =
      measured(answers("{\"type\":\"record\",\"cell\":\"a\",\"round\":1,\"status\":\"timeout\","
                       "\"reason\":\"no end\"}"));
  CHECK(record.at("type") == "record");
  CHECK(record.at("status") == "timeout");
  CHECK(record.at("reason") == "no end");
}

TEST_CASE("an answer that is no record of the round costs the round", "[measurer]") {
  for (const auto& [answer, fault] : std::map<std::string, std::string>{
           {"{\"type\":\"record\",\"cell\":\"b\",\"round\":1,\"status\":\"ok\"}", "cell: "},
           {"{\"type\":\"record\",\"cell\":\"a\",\"round\":0,\"status\":\"ok\"}", "round: "},
           {"{\"type\":\"record\",\"cell\":\"a\",\"round\":1,\"status\":\"fine\"}", "status: "},
           {"{\"type\":\"cancelled\",\"cell\":\"a\"}", "round: "}}) {
    const Json record = measured(answers(answer));
    CHECK(record.at("status") == "error");
    CHECK(record.at("cell") == "a");
    CHECK(record.at("round") == 1);
    CHECK_THAT(record.at("reason").get<std::string>(), Contains(fault));
  }
}

TEST_CASE("a worker that dies or refuses costs the round, and is started again", "[measurer]") {
  const FakeWorker worker(
      test::greeting +
      "read -r line <&8; [ -e $0.died ] || { touch $0.died; exit 7; }\n"
      "echo '{\"type\":\"error\",\"message\":\"not that\"}' >&8; read -r line <&8\n");
  Measurer measurer(worker.options, {[] { return 0; }});
  measurer.start(Waiting::active);
  const Json died = measurer.measure(planned(), request()).value();
  CHECK(died.at("status") == "crashed");
  CHECK(died.at("reason") == "the worker ended with exit code 7");
  CHECK(died.at("wall_seconds") >= 0);
  const Json refused = measurer.measure(planned(), request()).value();
  CHECK(refused.at("status") == "error");
  CHECK(refused.at("reason") == "not that");
}

TEST_CASE("a worker that is silent past the limit is killed", "[measurer]") {
  const FakeWorker worker(test::greeting + "sleep 60\n");
  Measurer measurer(worker.options, {[] { return 0; }});
  measurer.start(Waiting::active);
  const Json record = measurer.measure(planned(), request(-4.8)).value();  // and 5 s of grace
  CHECK(record.at("status") == "timeout");
}

TEST_CASE("an interrupt is sent to the worker, which may still stop by itself", "[measurer]") {
  const FakeWorker worker(test::greeting +
                          "read -r line <&8; read -r line <&8; echo \"$line\" > $0.told\n"
                          "echo '{\"type\":\"cancelled\",\"cell\":\"a\"}' >&8; read -r line <&8\n");
  int interrupts = 0;
  int cancelled = 0;
  MeasurerHooks hooks;
  hooks.interrupts = [&] { return interrupts; };
  hooks.on_cancel = [&] { ++cancelled; };
  Measurer measurer(worker.options, hooks);
  measurer.start(Waiting::active);
  interrupts = 1;
  CHECK_FALSE(measurer.measure(planned(), request()));
  CHECK(cancelled == 1);
  CHECK_THAT(worker.beside(".told"), Contains("cancel"));
}

TEST_CASE("a second interrupt, or another lane's failure, ends the measurement", "[measurer]") {
  const FakeWorker worker(test::greeting + "sleep 60\n");
  int interrupts = 0;
  bool abandoned = false;
  MeasurerHooks hooks;
  hooks.interrupts = [&] { return interrupts; };
  hooks.abandoned = [&] { return abandoned; };
  Measurer measurer(worker.options, hooks);
  measurer.start(Waiting::active);
  interrupts = 2;
  CHECK_THROWS_AS(measurer.measure(planned(), request()), Cancelled);
  interrupts = 0;
  measurer.start(Waiting::passive);
  CHECK(measurer.waiting() == Waiting::passive);
  abandoned = true;
  CHECK_THROWS_AS(measurer.measure(planned(), request()), Cancelled);
}

TEST_CASE("a probe has an answer of its schema, or a reason", "[measurer]") {
  const auto probed = [](const std::string& answer) {
    const FakeWorker worker(test::greeting + answers(answer));
    Measurer measurer(worker.options, {[] { return 0; }});
    measurer.start(Waiting::active);
    protocol::Probe probe;
    probe.limits.seconds = 30;
    return measurer.probe(probe);
  };
  const auto good = probed("{\"type\":\"probe\",\"ceilings\":{},\"machine\":{\"cores\":2}}");
  CHECK(good.failure.empty());
  CHECK(good.answer.machine.at("cores") == 2);
  const auto odd = probed("{\"type\":\"probe\",\"ceilings\":[]}");
  CHECK_THAT(odd.failure, Contains("not of its form"));
  CHECK(odd.answer.machine.empty());
}
