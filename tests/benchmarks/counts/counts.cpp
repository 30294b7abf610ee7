// One call of one kernel on one thread, for valgrind to count its instructions:
//   attnbench-counts --list          the names of the calls, then "isa" and the instruction set
//   attnbench-counts KERNEL.LENGTH   makes that call once to touch its memory, and once counted
//   attnbench-counts causal_product.….LENGTH PERCENT
//       the same, followed in what is counted by a call of PERCENT % of the tokens: the true ratio
//       of the plugin `slowed`
// Under `valgrind --tool=callgrind --toggle-collect=attnbench_counted` only what the second call
// does is counted.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/benchmarks/counts/calls.hpp"

/// Where counting begins and ends.
extern "C" __attribute__((noinline, noclone, used)) void attnbench_counted(
    const std::function<void()>& call) {
  call();
  asm volatile("" ::: "memory");  // no tail call: the end is the end of this function
}

namespace attnbench::counts {

void count(const std::function<void()>& call) {
  call();
  attnbench_counted(call);
}

namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& cases : {softmax_cases(), recurrent_cases(), pool_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

const char* isa_name() {
  switch (best_isa()) {
    case Isa::baseline:
      return "baseline";
    case Isa::neon:
      return "neon";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

/// A number from `least` to `most`, and nothing else.
std::optional<std::int64_t> number_of(std::string_view text, std::int64_t least,
                                      std::int64_t most) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < least || number > most) return std::nullopt;
  return number;
}

/// Whether there is such a call.
bool make_call(const std::string& name, const char* percent) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  const auto length = number_of(std::string_view(name).substr(dot + 1), 1, 65536);
  const auto more =
      percent == nullptr ? std::optional<std::int64_t>(0) : number_of(percent, 0, 100);
  if (!length || !more || (percent != nullptr && name.rfind("causal_product.", 0) != 0))
    return false;
  for (const Case& one : all_cases()) {
    if (name.compare(0, dot, one.kernel) != 0) continue;
    one.call({*length, *more});
    return true;
  }
  return false;
}

}  // namespace
}  // namespace attnbench::counts

int main(int argc, char** argv) {
  using namespace attnbench::counts;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Case& one : all_cases()) {
      for (const std::int64_t length : one.lengths) {
        std::printf("%s.%lld\n", one.kernel.c_str(), static_cast<long long>(length));
      }
    }
    std::printf("isa %s\n", isa_name());
    return 0;
  }
  if ((argc == 2 || argc == 3) && make_call(argv[1], argc == 3 ? argv[2] : nullptr)) return 0;
  std::fputs("attnbench-counts KERNEL.LENGTH [PERCENT], or --list\n", stderr);
  return 2;
}
