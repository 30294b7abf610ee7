// LibTorch's threads and CUDA streams, for kernels.
#pragma once

#include "attention/kernels/team.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench {

/// LibTorch's intra-op threads.
class AtenTeam : public kernels::ThreadTeam {
 public:
  /// at::get_num_threads().
  int size() const override;
  /// Runs `body(worker)` for every worker in [0, size()) and waits for all of them.
  void run(const std::function<void(int)>& body) override;
};

/// The stream where LibTorch queues this thread's work on a CUDA device: a cudaStream_t, null = the
/// default stream. Memory from LibTorch's allocator is safe to use only in this stream.
void* cuda_stream(const at::Device& device);

}  // namespace attnbench
