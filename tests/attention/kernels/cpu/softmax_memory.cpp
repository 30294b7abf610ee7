// What the softmax reads and writes, and that results are the same bits wherever rows lie, whoever
// computes them.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

/// A copy of numbers that ends where a page does; the page after it can be neither read nor
/// written.
template <class T>
class GuardedPages {
 public:
  explicit GuardedPages(const std::vector<T>& numbers) : count_(numbers.size()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (count_ * sizeof(T) + page - 1) / page * page;
    bytes_ = bytes + page;
    pages_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages_ != MAP_FAILED);
    auto* const end = static_cast<std::byte*>(pages_) + bytes;
    REQUIRE(mprotect(end, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(end) - count_;
    std::copy(numbers.begin(), numbers.end(), data_);
  }
  ~GuardedPages() { munmap(pages_, bytes_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  T* data() const { return data_; }
  std::vector<T> copy() const { return {data_, data_ + count_}; }

 private:
  std::size_t count_, bytes_ = 0;
  void* pages_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace

TEST_CASE("kernels softmax: rows give the same bits where they lie and where they are packed") {
  for (const std::int64_t left : {std::int64_t{127}, std::int64_t{300}, SoftmaxSizes::far}) {
    SoftmaxSizes sizes = square(300, 64, true);
    sizes.left = left;
    Problem<float> problem(sizes);
    const std::size_t count = problem.q.size();
    Block memory(4 * count * sizeof(float));
    auto* const aligned = static_cast<float*>(memory.data());
    SoftmaxArguments<float> arguments = problem.arguments();
    float* place = aligned;
    for (auto* rows : {&arguments.q, &arguments.k, &arguments.v}) {
      std::copy_n(rows->data, count, place);
      rows->data = place;
      place += count;
    }
    arguments.out.data = place;
    on_workspace(2, softmax_forward_bytes<float>(sizes, 2),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_forward(sizes, arguments, team, space, bytes);
                 });
    const std::vector<float> lying(place, place + count);
    std::fill_n(place, count, 0.0F);
    // One number further nothing is aligned.
    std::vector<float> moved(count + 64);
    auto* const odd =
        reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(moved.data() + 17) / 64 * 64) + 1;
    arguments.k.data = std::copy_n(arguments.k.data, count, odd) - count;
    on_workspace(2, softmax_forward_bytes<float>(sizes, 2),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_forward(sizes, arguments, team, space, bytes);
                 });
    CAPTURE(left);
    CHECK(memory.intact());
    CHECK(std::equal(lying.begin(), lying.end(), place));
    CHECK(relative_rms(lying, define(problem).out) < Bars<float>::forward);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: nothing is read or written past the last row", "", float,
                   BFloat16) {
  // Rows of whole vectors, used where they lie; the last panels' keys end within a group of 8.
  for (const std::int64_t length : {16, 130, 191, 192, 193, 199, 384, 777}) {
    for (const std::int64_t left : {std::int64_t{127}, SoftmaxSizes::far}) {
      for (const std::int64_t right : {0, 127}) {
        if (length > 384 && (left != 127 || right != 0)) continue;  // one of more than one item
        SoftmaxSizes sizes = square(length, 64, true);
        sizes.left = left;
        sizes.right = right;
        Problem<TestType> problem(sizes);
        const GuardedPages<TestType> q(problem.q), k(problem.k), v(problem.v), out(problem.out);
        SoftmaxArguments<TestType> arguments = problem.arguments();
        arguments.q.data = q.data();
        arguments.k.data = k.data();
        arguments.v.data = v.data();
        arguments.out.data = out.data();
        REQUIRE(reinterpret_cast<std::uintptr_t>(k.data()) % 64 == 0);
        on_workspace(2, softmax_forward_bytes<TestType>(sizes, 2),
                     [&](ThreadTeam& team, void* space, std::size_t bytes) {
                       softmax_forward(sizes, arguments, team, space, bytes);
                     });
        CAPTURE(length, left, right);
        CHECK(relative_rms(out.copy(), define(problem).out) < Bars<TestType>::forward);
      }
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax: the same bits for any number of threads", "", float,
                   BFloat16) {
  const auto bits_of = [](const std::vector<TestType>& x) {
    std::vector<double> bits;
    for (const auto value : x) bits.push_back(double{widen(value)});
    return bits;
  };
  for (const std::int64_t length : {40, 500}) {
    SoftmaxSizes sizes = square(length, 32, true);
    sizes.heads = sizes.kv_heads = 1;
    sizes.key_length = 1200;
    sizes.offset = sizes.key_length - length;
    Problem<TestType> one(sizes);
    Problem<TestType> many(sizes);
    one.forward(1);
    one.backward(1);
    many.forward(5);
    many.backward(5);
    CHECK(bits_of(one.out) == bits_of(many.out));
    CHECK(bits_of(one.dq) == bits_of(many.dq));
    CHECK(bits_of(one.dk) == bits_of(many.dk));
    CHECK(bits_of(one.dv) == bits_of(many.dv));
  }
}

TEMPLATE_TEST_CASE("kernels softmax: the forward workspace grows until an item is full", "", float,
                   double, BFloat16) {
  for (const std::int64_t left : {std::int64_t{127}, SoftmaxSizes::far}) {
    const auto bytes = [&](std::int64_t length) {
      SoftmaxSizes sizes = square(length, 64, true);
      sizes.left = left;
      return softmax_forward_bytes<TestType>(sizes, 2);
    };
    CAPTURE(left);
    std::size_t before = 0;
    for (const std::int64_t length : {1, 9, 64, 200, 500, 768}) {
      CHECK(bytes(length) >= before);
      before = bytes(length);
    }
    CHECK(bytes(1 << 12) == before);
    CHECK(bytes(1 << 20) == before);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: one token's step needs room for its own query alone", "",
                   float, BFloat16) {
  for (const std::int64_t left : {std::int64_t{127}, SoftmaxSizes::far}) {
    SoftmaxSizes sizes = square(1, 64, true);
    sizes.key_length = 128;
    sizes.offset = 127;
    sizes.left = left;
    // A panel of queries and results, a tile of keys and values, and the scores between.
    constexpr std::size_t numbers = (48 + 64) * (64 + 64) + 48 * (64 + 3);
    CHECK(softmax_forward_bytes<TestType>(sizes, 2) <= 2 * 4 * numbers + 4096);
  }
}
