#include "harness/worker/replay.hpp"

#include <exception>
#include <memory>

#include "attention/torch/cuda.hpp"

namespace attnbench::worker {

#ifdef ATTNBENCH_CUDA_KERNELS

namespace cuda = kernels::cuda;

std::function<void()> recorded(const std::string& device, const std::function<void()>& body,
                               const std::function<void()>& before, std::string& why) {
  const auto prepare = [&before] {
    if (before) before();
  };
  try {
    synchronize(device);
    const SideStream side(device);
    const cuda::Stream stream = current_stream(at::Device(device));
    // Whatever is made once (handles, workspaces, cached blocks) is made before the recording.
    for (int i = 0; i < 2; ++i) {
      prepare();
      body();
    }
    prepare();
    cuda::synchronize(stream);
    const auto graph = std::make_shared<const cuda::Graph>(stream, body);
    prepare();
    graph->launch(stream);
    cuda::synchronize(stream);
    return [graph] { graph->launch({}); };
  } catch (const std::exception& error) {
    const std::string message = error.what();
    why = message.substr(0, message.find('\n'));
    return {};
  }
}

#else

std::function<void()> recorded(const std::string&, const std::function<void()>&,
                               const std::function<void()>&, std::string& why) {
  why = "this program was built without the CUDA toolkit";
  return {};
}

#endif

}  // namespace attnbench::worker
