#include "tasks/aftermath.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/catch.hpp"

using namespace attnbench;

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

TEST_CASE("a call that is over leaves nothing behind", "[aftermath]") {
  tasks::Aftermath aftermath;
  const at::Tensor a = at::randn({300, 300});
  const at::Tensor output = at::mm(a, a);
  CHECK(aftermath.after(output).empty());
  const Thread asleep(false);
  CHECK(aftermath.after(output).empty());
}

TEST_CASE("a thread that a call started and left at work is seen", "[aftermath]") {
  const at::Tensor output = at::ones({8});
  const Thread before(true);
  tasks::Aftermath aftermath;
  CHECK(aftermath.after(output).empty());
  CHECK(aftermath.said().empty());
  const Thread busy(true);
  // On one core with others at work a thread may get nothing for some milliseconds.
  std::string seen;
  for (int i = 0; i < 20 && aftermath.said().empty(); ++i) seen += aftermath.after(output);
  CHECK(seen.empty());
  CHECK(aftermath.said() == "1 thread that it started went on working after the call had returned");
}

TEST_CASE("an output that changes after it was handed over is seen", "[aftermath]") {
  tasks::Aftermath aftermath;
  const at::Tensor output = at::zeros({1000});
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    at::Tensor(output).fill_(1);
  });
  const std::string seen = aftermath.after(output);
  late.join();
  CHECK(seen == "its output changed after the call had returned");
}
