// The CUDA device as the rest of the tree sees it, without a CUDA header: what card it is, its
// memory, streams, events and graphs. Thin on purpose: whoever has LibTorch uses LibTorch's memory
// and streams and hands them over here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace attnbench::kernels::cuda {

/// A call to CUDA failed; the message names the call and says it in CUDA's words.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Work is queued in order of launch; null = the default stream. A cudaStream_t that is not owned.
struct Stream {
  void* handle = nullptr;
};

struct Card {
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t shared_bytes = 0;  ///< at most, for one block
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
};

/// The number of whatever device is this thread's current one.
constexpr int current_device = -1;

/// Why no kernel can run on device number `index` (no driver, no such device, too old a card);
/// empty where they can. Makes no context on the device.
std::string refusal(int index = current_device);
/// Makes it the current device of this thread.
void select(int index);
/// The card of the current device; asked once a device. Throws Error where there is none.
const Card& card();

/// Plain device memory, aligned to 256 bytes and not initialised.
void* allocate(std::size_t bytes);
void release(void* memory) noexcept;
/// Bytes of the current device that all processes use.
std::size_t used_memory();
/// In order with the stream's work; both return when the copy is done.
void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream = {});
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream = {});
/// On the device alone, from one place to another; queued.
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream = {});
void fill(void* memory, unsigned char byte, std::size_t bytes, Stream stream = {});
/// Waits for all work of the stream, and throws Error where any of it failed.
void synchronize(Stream stream = {});

/// A stream of its own: graphs cannot be captured on the default one.
class OwnedStream {
 public:
  OwnedStream();
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  operator Stream() const { return stream_; }

 private:
  Stream stream_;
};

/// A point in a stream's work, for timing on the device.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Stream stream);
  /// Waits for both.
  double seconds_since(const Event& earlier) const;

 private:
  void* event_ = nullptr;
};

/// What `body` queues on the stream, recorded once and launched as one.
class Graph {
 public:
  Graph(Stream stream, const std::function<void()>& body);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(Stream stream) const;

 private:
  void* executable_ = nullptr;
};

}  // namespace attnbench::kernels::cuda
