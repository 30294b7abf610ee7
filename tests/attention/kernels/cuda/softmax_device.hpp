// A softmax problem on the device: its arrays, poisoned where they are written, and the calls.
#pragma once

#include <cstring>

#include "attention/kernels/cuda/softmax/shape.hpp"
#include "attention/kernels/cuda/softmax/softmax.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/cuda/device_array.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

namespace attnbench::kernels::cuda::test {

using kernels::test::Bars;
using kernels::test::define;
using kernels::test::Expected;
using kernels::test::Problem;
using kernels::test::relative_rms;
using kernels::test::square;

/// Whether the kernels run in the emulator, where a product takes a thousand times as long: sizes
/// shrink there, kinds of cases do not.
inline bool emulated() { return card().name == "an emulated card"; }

/// Rows of an array of [B, T, H, width + pad], as models that keep heads side by side hold them, or
/// dense [B, H, T, width].
struct Layout {
  bool token_major = false;
  std::int64_t pad = 0;

  std::int64_t stride(std::int64_t heads, std::int64_t width) const {
    return token_major ? heads * (width + pad) : width + pad;
  }
  template <class T>
  Rows<T> rows(T* data, std::int64_t heads, std::int64_t length, std::int64_t width) const {
    const std::int64_t row = width + pad;
    if (token_major) return {data, length * heads * row, row, heads * row};
    return {data, heads * length * row, length * row, row};
  }
  std::size_t count(std::int64_t batch, std::int64_t heads, std::int64_t length,
                    std::int64_t width) const {
    return static_cast<std::size_t>(batch * heads * length * (width + pad));
  }
};

/// An array [B, H, T, width] on the device in some layout.
template <class T>
class DeviceRows {
 public:
  DeviceRows(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t width,
             const Layout& layout)
      : batch_(batch),
        heads_(heads),
        length_(length),
        width_(width),
        layout_(layout),
        array_(layout.count(batch, heads, length, width)) {}

  void write(const std::vector<T>& dense) {
    std::vector<T> laid = array_.values();
    each(laid, dense, [](T& device, const T& host) { device = host; });
    if (!laid.empty()) copy_to_device(array_.data(), laid.data(), array_.bytes());
  }
  /// Dense [B, H, T, width]. What lies between the rows must still be poisoned.
  std::vector<T> read() const {
    std::vector<T> laid = array_.values();
    std::vector<T> dense(static_cast<std::size_t>(batch_ * heads_ * length_ * width_));
    each(laid, dense, [](T& device, T& host) {
      host = device;
      std::memset(static_cast<void*>(&device), 0xff, sizeof(T));
    });
    const auto* bytes = reinterpret_cast<const unsigned char*>(laid.data());
    if (std::any_of(bytes, bytes + laid.size() * sizeof(T), [](auto x) { return x != 0xff; })) {
      throw std::logic_error("a kernel wrote between the rows of an array");
    }
    return dense;
  }
  template <class U>
  Rows<U> rows() const {
    return layout_.template rows<U>(array_.data(), heads_, length_, width_);
  }

 private:
  template <class Laid, class Dense, class F>
  void each(Laid& laid, Dense& dense, F&& f) const {
    const auto rows = layout_.rows(laid.data(), heads_, length_, width_);
    std::size_t i = 0;
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t t = 0; t < length_; ++t) {
          for (std::int64_t d = 0; d < width_; ++d) f(rows.at(b, h, t)[d], dense[i++]);
        }
      }
    }
  }

  std::int64_t batch_, heads_, length_, width_;
  Layout layout_;
  DeviceArray<T> array_;
};

/// The kernel that sizes and rows call for, or the plain one.
enum class Way { chosen, plain };

template <class T>
class DeviceProblem {
 public:
  explicit DeviceProblem(Problem<T>& problem, const Layout& layout = {})
      : problem_(problem),
        z_(problem.sizes),
        q_(z_.batch, z_.heads, z_.length, z_.head_dim, layout),
        k_(z_.batch, z_.kv_heads, z_.key_length, z_.head_dim, layout),
        v_(z_.batch, z_.kv_heads, z_.key_length, z_.value_dim, layout),
        d_out_(z_.batch, z_.heads, z_.length, z_.value_dim, layout),
        out_(z_.batch, z_.heads, z_.length, z_.value_dim, layout),
        dq_(z_.batch, z_.heads, z_.length, z_.head_dim, layout),
        dk_(z_.batch, z_.kv_heads, z_.key_length, z_.head_dim, layout),
        dv_(z_.batch, z_.kv_heads, z_.key_length, z_.value_dim, layout),
        mask_(problem.mask),
        lse_(problem.lse.size()) {
    q_.write(problem.q);
    k_.write(problem.k);
    v_.write(problem.v);
    d_out_.write(problem.d_out);
  }
  SoftmaxArguments<T> arguments() const {
    SoftmaxArguments<T> a;
    a.q = q_.template rows<const T>();
    a.k = k_.template rows<const T>();
    a.v = v_.template rows<const T>();
    a.out = out_.template rows<T>();
    a.lse = lse_.data();
    if (!problem_.mask.empty()) a.key_mask = mask_.data();
    a.mask_stride = z_.key_length;
    return a;
  }
  /// Leaves values in the problem.
  void forward(Way way = Way::chosen) {
    if (way == Way::chosen) {
      const DeviceArray<unsigned char> workspace(cuda::softmax_forward_bytes<T>(z_));
      cuda::softmax_forward<T>(z_, arguments(), Stream{}, workspace.data(), workspace.bytes());
      workspace.values();  // throws where the end was passed
    } else {
      softmax_forward_plain(SoftmaxCall<T>{arguments(), SoftmaxShape(z_)}, Stream{});
    }
    problem_.out = out_.read();
    problem_.lse = lse_.values();
  }
  /// Whether the forward kernel of the tensor cores is for this problem; runs it.
  bool on_tensor_cores() {
    return softmax_forward_mma(SoftmaxCall<T>{arguments(), SoftmaxShape(z_)}, Stream{});
  }
  /// After forward; leaves gradients in the problem.
  void backward() {
    SoftmaxGradients<T> g;
    g.d_out = d_out_.template rows<const T>();
    g.dq = dq_.template rows<T>();
    g.dk = dk_.template rows<T>();
    g.dv = dv_.template rows<T>();
    const DeviceArray<unsigned char> workspace(cuda::softmax_backward_bytes<T>(z_));
    cuda::softmax_backward<T>(z_, arguments(), g, Stream{}, workspace.data(), workspace.bytes());
    workspace.values();
    problem_.dq = dq_.read();
    problem_.dk = dk_.read();
    problem_.dv = dv_.read();
  }

 private:
  Problem<T>& problem_;
  SoftmaxSizes z_;
  DeviceRows<T> q_, k_, v_, d_out_, out_, dq_, dk_, dv_;
  DeviceArray<std::uint8_t> mask_;
  DeviceArray<float> lse_;
};

}  // namespace attnbench::kernels::cuda::test
