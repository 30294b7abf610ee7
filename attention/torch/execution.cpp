#include "attention/torch/execution.hpp"

#include "attention/torch/cuda.hpp"

namespace attnbench {

int AtenTeam::size() const { return at::get_num_threads(); }

void AtenTeam::run(const std::function<void(int)>& body) {
  at::parallel_for(0, size(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) body(static_cast<int>(worker));
  });
}

void* cuda_stream(const at::Device& device) { return current_stream(device).handle; }

}  // namespace attnbench
