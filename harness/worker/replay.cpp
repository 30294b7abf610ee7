#include "harness/worker/replay.hpp"

#include <exception>

#include "attention/torch_cuda.hpp"

namespace attnbench::worker {

#ifdef ATTNBENCH_CUDA_KERNELS

namespace cuda = kernels::cuda;

struct Replay::Recorded {
  Recorded(cuda::Stream stream, const std::function<void()>& body) : graph(stream, body) {}
  cuda::Graph graph;
};

std::unique_ptr<Replay> Replay::of(const std::string& device, const std::function<void()>& body,
                                   std::string& why) {
  try {
    synchronize(device);
    const SideStream side(device);
    const cuda::Stream stream = current_stream(at::Device(device));
    // Whatever is made once (handles, workspaces, cached blocks) is made before the recording.
    for (int i = 0; i < 2; ++i) body();
    cuda::synchronize(stream);
    auto recorded = std::make_unique<Recorded>(stream, body);
    recorded->graph.launch(stream);
    cuda::synchronize(stream);
    return std::unique_ptr<Replay>(new Replay(std::move(recorded)));
  } catch (const std::exception& error) {
    const std::string message = error.what();
    why = message.substr(0, message.find('\n'));
    return nullptr;
  }
}

void Replay::launch() const { recorded_->graph.launch({}); }

#else

struct Replay::Recorded {};

std::unique_ptr<Replay> Replay::of(const std::string&, const std::function<void()>&,
                                   std::string& why) {
  why = "this program was built without the CUDA toolkit";
  return nullptr;
}

void Replay::launch() const {}

#endif

Replay::Replay(std::unique_ptr<Recorded> recorded) : recorded_(std::move(recorded)) {}

Replay::~Replay() = default;

}  // namespace attnbench::worker
