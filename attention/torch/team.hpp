// LibTorch's threads, lent to the kernels.
#pragma once

#include "attention/kernels/team.hpp"

namespace attnbench {

class AtenTeam : public kernels::ThreadTeam {
 public:
  /// at::get_num_threads().
  int size() const override;
  void run(const std::function<void(int)>& body) override;
};

}  // namespace attnbench
