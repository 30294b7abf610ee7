#include "attention/kernels/cuda/cards.hpp"

#include <map>
#include <mutex>

#include "attention/kernels/cuda/launch.cuh"

namespace attnbench::kernels::cuda {
namespace {

cudaEvent_t native_event(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

const Card& card(int device) {
  static std::mutex mutex;
  static std::map<int, Card> cards;
  const std::lock_guard lock(mutex);
  const auto known = cards.find(device);
  if (known != cards.end()) return known->second;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Card card;
  card.name = properties.name;
  card.major = properties.major;
  card.minor = properties.minor;
  card.multiprocessors = properties.multiProcessorCount;
  card.shared_bytes = properties.sharedMemPerBlockOptin;
  card.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  card.memory_bytes = properties.totalGlobalMem;
  return cards.emplace(device, card).first->second;
}

std::string refusal(int index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    return "there is no NVIDIA driver, or it is older than this program's CUDA";
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return "there is no CUDA device";
  }
  if (error != cudaSuccess) return std::string("CUDA says: ") + cudaGetErrorString(error);
  if (index == current_device) check(cudaGetDevice(&index), "cudaGetDevice");
  if (index >= count) {
    return "there are " + std::to_string(count) + " CUDA devices, numbered from 0";
  }
  const Card& asked = card(index);
  if (asked.major < 8) {
    return asked.name + " has compute capability " + std::to_string(asked.major) + "." +
           std::to_string(asked.minor) + ", and the kernels need 8.0 or newer";
  }
  return {};
}

void select(int index) { check(cudaSetDevice(index), "cudaSetDevice"); }

const Card& card() {
  if (Regarding::number() != Regarding::none) return card(Regarding::number());
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return card(device);
}

std::string pci_address(int index) {
  char address[32] = "";
  check(cudaDeviceGetPCIBusId(address, sizeof(address), index), "cudaDeviceGetPCIBusId");
  return address;
}

std::string driver_cuda() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return {};
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes == 0 ? 1 : bytes), "cudaMalloc");
  return memory;
}

void release(void* memory) noexcept { cudaFree(memory); }

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, native(stream)),
        "cudaMemcpyAsync");
  synchronize(stream);
}

void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, native(stream)),
        "cudaMemcpyAsync");
  synchronize(stream);
}

std::size_t used_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native(stream)),
        "cudaMemcpyAsync");
}

void fill(void* memory, unsigned char byte, std::size_t bytes, Stream stream) {
  check(cudaMemsetAsync(memory, byte, bytes, native(stream)), "cudaMemsetAsync");
}

void synchronize(Stream stream) {
  check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

OwnedStream::OwnedStream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.handle = stream;
}

OwnedStream::~OwnedStream() { cudaStreamDestroy(native(stream_)); }

Event::Event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  event_ = event;
}

Event::~Event() { cudaEventDestroy(native_event(event_)); }

void Event::record(Stream stream) {
  check(cudaEventRecord(native_event(event_), native(stream)), "cudaEventRecord");
}

double Event::seconds_since(const Event& earlier) const {
  check(cudaEventSynchronize(native_event(event_)), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, native_event(earlier.event_), native_event(event_)),
        "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

Graph::Graph(Stream stream, const std::function<void()>& body) {
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(native(stream), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(native(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "cudaGraphInstantiate");
  executable_ = executable;
}

Graph::~Graph() { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_)); }

void Graph::launch(Stream stream) const {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), native(stream)),
        "cudaGraphLaunch");
}

}  // namespace attnbench::kernels::cuda
