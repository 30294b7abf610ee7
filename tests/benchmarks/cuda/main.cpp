// attnbench_cuda_bench: the CUDA kernels alone. Needs a driver; no LibTorch.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/benchmarks/cuda/registry.hpp"

namespace {

constexpr const char* help =
    "attnbench_cuda_bench [--benchmark_filter=REGEX] [--benchmark_out=FILE.json]\n"
    "\n"
    "Times the CUDA kernels on the current device: one median of launches a repetition, on inputs\n"
    "rotated past the L2, by replays of a graph where a launch is short.\n"
    "\n"
    "  --benchmark_filter=REGEX     only these, such as softmax_forward/bf16.*D:128; -REGEX: not "
    "these\n"
    "  --benchmark_out=FILE         Google Benchmark's JSON, all repetitions and their aggregates\n"
    "  --benchmark_repetitions=N    medians a benchmark (3)\n"
    "  --benchmark_list_tests       the names; needs no device\n"
    "\n"
    "Any other option is Google Benchmark's. Exit code: 0 done, 1 a benchmark failed, 2 bad usage "
    "or\n"
    "nothing matched, 3 no device.\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace attnbench;
  bool listing = false;
  // Ours first: what the user says later holds.
  std::vector<std::string> words{argv[0], "--benchmark_repetitions=3",
                                 "--benchmark_display_aggregates_only=true"};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(help, stdout);
      return 0;
    }
    listing = listing || word.rfind("--benchmark_list_tests", 0) == 0;
    words.push_back(word == "--benchmark_list_tests" ? word + "=true" : word);
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(words.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

  bench::add_softmax();
  bench::add_recurrent();
  bench::add_lavo();
  if (!listing) {
    if (const std::string why = kernels::cuda::refusal(); !why.empty()) {
      std::fprintf(stderr, "attnbench_cuda_bench: %s\n", why.c_str());
      return 3;
    }
    benchmark::AddCustomContext("card", kernels::cuda::card().name);
  }
  const std::size_t ran = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (bench::failures() > 0) return 1;
  return ran == 0 && !listing ? 2 : 0;
}
