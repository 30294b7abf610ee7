// Settings of mqar trainings that take moments.
#pragma once

#include "tests/tasks/run_cell.hpp"

namespace attnbench::test {

/// Two epochs over few short examples, the longest ones in the test; `more` overrides or adds.
inline Settings small_recall(const Settings& more = {}) {
  return with({{"batch", std::int64_t{8}},
               {"width", std::int64_t{16}},
               {"heads", std::int64_t{2}},
               {"layout", std::string("convolution_first")},
               {"mlp", std::string("identity")},
               {"vocabulary", std::int64_t{64}},
               {"train_mix", std::string("16x2:20, 24x3:9")},
               {"validation_mix", std::string("16x2:10")},
               {"test_mix", std::string("16x2:5, 40x4:5")},
               {"epochs", std::int64_t{2}}},
              more);
}

/// A window shorter than these examples.
inline Settings options_of(const std::string& mechanism) {
  if (mechanism == "window" || mechanism == "macchiato") return {{"window", Window{7, 0}}};
  return {};
}

}  // namespace attnbench::test
