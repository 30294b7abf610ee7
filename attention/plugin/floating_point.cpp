#include "attention/plugin/floating_point.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace attnbench {
namespace {

struct Control {
  bool flushes_results = false;
  bool flushes_operands = false;
  bool traps = false;
};

#if defined(__x86_64__)

constexpr unsigned flush_to_zero = 1U << 15;
constexpr unsigned denormals_are_zero = 1U << 6;
constexpr unsigned flushing = flush_to_zero | denormals_are_zero;
constexpr unsigned all_masked = 0x3fU << 7;
constexpr unsigned x87_masked = 0x3fU;

std::uint64_t control_register() { return _mm_getcsr(); }
void set_control_register(std::uint64_t to) { _mm_setcsr(static_cast<unsigned>(to)); }

Control control() {
  const unsigned vector_control = _mm_getcsr();
  std::uint16_t x87_control = 0;
  asm volatile("fnstcw %0" : "=m"(x87_control));
  return {(vector_control & flush_to_zero) != 0, (vector_control & denormals_are_zero) != 0,
          (vector_control & all_masked) != all_masked || (x87_control & x87_masked) != x87_masked};
}

#elif defined(__aarch64__)

/// FPCR.FZ, of results and operands alike.
constexpr std::uint64_t flushing = std::uint64_t{1} << 24;

std::uint64_t control_register() {
  std::uint64_t fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}
void set_control_register(std::uint64_t to) { asm volatile("msr fpcr, %0" : : "r"(to)); }

Control control() {
  const std::uint64_t fpcr = control_register();
  constexpr std::uint64_t traps = std::uint64_t{0x9f} << 8;
  return {(fpcr & flushing) != 0, false, (fpcr & traps) != 0};
}

#else
#error "the floating-point control of this machine is unknown"
#endif

std::string rounding() {
  switch (std::fegetround()) {
    case FE_UPWARD:
      return "rounds upward";
    case FE_DOWNWARD:
      return "rounds downward";
    case FE_TOWARDZERO:
      return "rounds toward zero";
    default:
      return {};
  }
}

}  // namespace

KeepDenormals::KeepDenormals() : before_(control_register()) {
  set_control_register(before_ & ~std::uint64_t{flushing});
}
KeepDenormals::~KeepDenormals() { set_control_register(before_); }

void reset_floating_point() { std::fesetenv(FE_DFL_ENV); }

std::string floating_point_changes() {
  const Control now = control();
  std::string changes;
  const auto add = [&changes](const std::string& change) {
    if (!change.empty()) changes += (changes.empty() ? "" : ", ") + change;
  };
  if (now.flushes_results) add("flush-to-zero on");
  if (now.flushes_operands) add("denormals-are-zero on");
  if (now.traps) add("traps on");
  add(rounding());
  return changes;
}

}  // namespace attnbench
