#include "tasks/rows_apart.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("the rows that differ most are found, the worst first", "[rows]") {
  const at::Tensor a = at::randn({2, 3, 50, 8});
  at::Tensor b = a.clone();
  CHECK(tasks::rows_apart(a, b, 1e-6, 4).empty());
  b[1][2][49].mul_(3);
  b[0][1][7].mul_(1.5);
  b[0][0][0].mul_(1 + 1e-7);
  const tasks::Rows rows = tasks::rows_apart(b, a, 1e-3, 4);
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].b == 1 && rows[0].h == 2 && rows[0].t == 49));
  CHECK((rows[1].b == 0 && rows[1].h == 1 && rows[1].t == 7));
  CHECK(tasks::rows_apart(b, a, 1e-3, 1).size() == 1);
  CHECK(tasks::count_rows_apart(b, a, 1e-3) == 2);
}

TEST_CASE("a small row is no nearer than usual ones, a large one by its own size", "[rows]") {
  at::Tensor a = at::ones({1, 1, 100, 4});
  a[0][0][3] = 1e-6;
  a[0][0][4] = 1000;
  at::Tensor b = a.clone();
  b[0][0][3] = 2e-6;
  b[0][0][4] = 1001;
  CHECK(tasks::count_rows_apart(b, a, 2e-3) == 0);
  CHECK(tasks::count_rows_apart(b, a, 0.5e-3) == 1);
}
