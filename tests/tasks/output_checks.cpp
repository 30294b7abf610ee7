#include "tasks/output_checks.hpp"

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Contains;

namespace {

/// A thread that is busy, or asleep, until the end of its scope.
class Thread {
 public:
  explicit Thread(bool busy)
      : thread_([this, busy] {
          while (!done_) {
            if (!busy) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Thread() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a snapshot names a tensor changed in place, even by one bit", "[output]") {
  const at::Tensor query = at::randn({2, 3, 5, 4});
  const at::Tensor value = at::randn({2, 3, 5, 4}).to(at::kBFloat16);
  const at::Tensor strided = at::randn({4, 6}).transpose(0, 1);
  const tasks::Snapshot before(
      {{"query", query}, {"value", value}, {"strided", strided}, {"none", {}}});
  CHECK(before.changed().empty());
  at::Tensor(strided)[5][3].mul_(1 + 1e-6);
  CHECK(before.changed() == "strided");
  at::Tensor(value)[1][2][4][3].add_(1);
  CHECK(before.changed() == "value");
  CHECK(tasks::Snapshot({{"value", value}}).changed().empty());
}

TEST_CASE("same_bits compares NaN and signed zeros by their bits", "[output]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor a = at::tensor({1.0F, nan, 0.0F});
  CHECK(tasks::same_bits(a, a.clone()));
  CHECK_FALSE(tasks::same_bits(a, at::tensor({1.0F, nan, -0.0F})));
  CHECK_FALSE(tasks::same_bits(a, a.to(at::kDouble)));
  CHECK_FALSE(tasks::same_bits(a, a.narrow(0, 0, 2)));
}

TEST_CASE("numbers that are not finite are counted in the whole tensor", "[output]") {
  at::Tensor a = at::ones({7, 11, 13});
  CHECK(tasks::count_not_finite(a) == 0);
  a[3][4][5] = std::numeric_limits<float>::infinity();
  a[6][10].fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK(tasks::count_not_finite(a) == 14);
}

TEST_CASE("a mismatch of form names both forms", "[output]") {
  const at::Device cpu("cpu");
  const std::vector<std::int64_t> shape{2, 3};
  const auto departure = [&](const at::Tensor& output) {
    return tasks::form_mismatch(output, shape, at::kFloat, cpu);
  };
  CHECK(departure(at::ones({2, 3})).empty());
  CHECK(departure(at::ones({2, 3}, at::kDouble)) == "an output of float64, expected float32");
  CHECK_THAT(departure(at::ones({3, 2})), Contains("[3, 2]") && Contains("[2, 3]"));
  CHECK(departure({}) == "no output");
}

TEST_CASE("the rows that differ most are found, the worst first", "[output]") {
  const at::Tensor a = at::randn({2, 3, 50, 8});
  at::Tensor b = a.clone();
  CHECK(tasks::differing_rows(a, b, 1e-6, 4).empty());
  b[1][2][49].mul_(3);
  b[0][1][7].mul_(1.5);
  b[0][0][0].mul_(1 + 1e-7);
  const tasks::Rows rows = tasks::differing_rows(b, a, 1e-3, 4);
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].b == 1 && rows[0].h == 2 && rows[0].t == 49));
  CHECK((rows[1].b == 0 && rows[1].h == 1 && rows[1].t == 7));
  CHECK(tasks::differing_rows(b, a, 1e-3, 1).size() == 1);
  CHECK(tasks::count_differing_rows(b, a, 1e-3) == 2);
}

TEST_CASE("errors of small rows are relative to the whole output, of large ones to the row",
          "[output]") {
  at::Tensor a = at::ones({1, 1, 100, 4});
  a[0][0][3] = 1e-6;
  a[0][0][4] = 1000;
  at::Tensor b = a.clone();
  b[0][0][3] = 2e-6;
  b[0][0][4] = 1001;
  CHECK(tasks::count_differing_rows(b, a, 2e-3) == 0);
  CHECK(tasks::count_differing_rows(b, a, 0.5e-3) == 1);
}

TEST_CASE("a finished call passes the check after the call", "[output]") {
  tasks::AfterCallCheck after_call;
  const at::Tensor a = at::randn({300, 300});
  const at::Tensor output = at::mm(a, a);
  CHECK(after_call.failure(output).empty());
  const Thread asleep(false);
  CHECK(after_call.failure(output).empty());
}

TEST_CASE("a thread that a call left working is noted", "[output]") {
  const at::Tensor output = at::ones({8});
  const Thread before(true);
  tasks::AfterCallCheck after_call;
  CHECK(after_call.failure(output).empty());
  CHECK(after_call.note().empty());
  const Thread busy(true);
  // On a busy core a thread may not run for some milliseconds.
  std::string seen;
  for (int i = 0; i < 20 && after_call.note().empty(); ++i) seen += after_call.failure(output);
  CHECK(seen.empty());
  CHECK(after_call.note() ==
        "1 thread that it started went on working after the call had returned");
}

TEST_CASE("an output that changes after the call is found", "[output]") {
  // On a busy core the thread may write too late for the check to see it.
  std::string seen;
  for (int i = 0; i < 20 && seen.empty(); ++i) {
    tasks::AfterCallCheck after_call;
    const at::Tensor output = at::zeros({1000});
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      at::Tensor(output).fill_(1);
    });
    seen = after_call.failure(output);
    late.join();
  }
  CHECK(seen == "its output changed after the call had returned");
}
