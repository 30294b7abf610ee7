// The orthogonal memory's slots, and what is read of them.
#include "attention/algorithms/lavo/lavo.hpp"

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::lavo {
namespace {

using at::Tensor;
using test::relative_error;

/// Orthonormal rows [2, r, 5] for two heads.
Tensor bases_of(std::int64_t rows) {
  const Tensor tall = at::randn({2, 5, rows}, at::kDouble);
  return std::get<0>(at::linalg_qr(tall)).transpose(1, 2).contiguous();
}

}  // namespace

TEST_CASE("the slots of the memory are orthogonal and add up to the mean's part along the bases") {
  const Tensor context = at::randn({2, 2, 33, 5}, at::kDouble);
  const Tensor mean = context.mean(2);
  for (const std::int64_t rows : {3, 5}) {
    const Memory memory{bases_of(rows), 1};
    const Tensor u = compressed(context, {}, memory);  // [B, H, r]
    const Tensor slots = u.unsqueeze(-1) * memory.bases;
    const Tensor products = at::matmul(slots, slots.transpose(-2, -1));
    CHECK((products - at::diag_embed(u * u)).abs().max().item<double>() < 1e-14);
    const Tensor part =
        at::matmul(memory.bases.transpose(1, 2), at::matmul(memory.bases, mean.unsqueeze(-1)))
            .squeeze(-1);
    CHECK(relative_error(slots.sum(2), part) < 1e-13);
    if (rows == 5) CHECK(relative_error(slots.sum(2), mean) < 1e-13);
    // A query of 0 reads all slots alike, a long one along a basis that slot alone.
    const Tensor blank = read(at::zeros({2, 2, 1, 5}, at::kDouble), u, memory).squeeze(2);
    CHECK(relative_error(blank * static_cast<double>(rows), part) < 1e-13);
    const Tensor signs = u.select(2, 1).sign().unsqueeze(-1).unsqueeze(-1);
    const Tensor along = memory.bases.narrow(1, 1, 1) * signs * 1e6;
    CHECK(relative_error(read(along, u, memory), slots.narrow(2, 1, 1)) < 1e-13);
  }
}

}  // namespace attnbench::lavo
