// Random tensors of a test case are the same in every run: LibTorch begins with a seed that is not.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // Catch2 2: with listeners
#include "attention/torch/torch.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::test {
namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

struct Seeded : Listener {
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    Listener::testCaseStarting(info);
    at::manual_seed(1);
  }
};
CATCH_REGISTER_LISTENER(Seeded);

}  // namespace
}  // namespace attnbench::test
