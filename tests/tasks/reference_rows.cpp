#include "tasks/reference_rows.hpp"

#include <set>
#include <tuple>

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

Problem sized(std::int64_t batch, std::int64_t heads, std::int64_t length) {
  Problem problem;
  problem.batch = batch;
  problem.heads = heads;
  problem.length = problem.key_length = length;
  problem.value_dim = 3;
  return problem;
}

using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

std::set<Place> places(const tasks::Rows& rows) {
  std::set<Place> found;
  for (const auto& row : rows) found.insert({row.b, row.h, row.t});
  return found;
}

}  // namespace

TEST_CASE("sampled rows are distinct, in range, and hold the first and last token", "[rows]") {
  for (const auto& [b, h, t] : std::vector<Place>{{1, 1, 33}, {2, 4, 5}, {1, 4, 4096}, {3, 5, 7}}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Problem problem = sized(b, h, t);
      const tasks::Rows rows = tasks::sampled_rows(problem, 32, seed);
      REQUIRE(rows.size() == 32);
      CHECK(places(rows).size() == 32);
      CHECK(rows.front().t == 0);
      CHECK(rows.back().t == t - 1);
      for (const auto& row : rows) {
        CHECK((row.b >= 0 && row.b < b));
        CHECK((row.h >= 0 && row.h < h));
        CHECK((row.t >= 0 && row.t < t));
      }
    }
  }
}

TEST_CASE("all of few rows are sampled, and every batch and head is reached", "[rows]") {
  CHECK(places(tasks::sampled_rows(sized(2, 3, 4), 32, 1)).size() == 24);
  std::set<std::pair<std::int64_t, std::int64_t>> sides;
  for (const auto& row : tasks::sampled_rows(sized(2, 2, 1024), 32, 5))
    sides.insert({row.b, row.h});
  CHECK(sides.size() == 4);
}

TEST_CASE("rows are sampled among the tokens of a mask alone", "[rows]") {
  const Problem problem = sized(3, 2, 40);
  const std::int64_t lengths[] = {40, 1, 13};
  at::Tensor real = at::zeros({3, 44}, at::kBool);
  for (std::int64_t b = 0; b < 3; ++b) real[b].narrow(0, 0, lengths[b]).fill_(true);
  std::set<std::int64_t> sequences;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const tasks::Rows rows = tasks::sampled_rows(problem, 32, seed, real);
    CHECK(places(rows).size() == 32);
    CHECK(rows.front().t == 0);
    CHECK(rows.back().t == 39);
    for (const auto& row : rows) {
      CHECK(row.t < lengths[row.b]);
      sequences.insert(row.b);
    }
  }
  CHECK(sequences.size() == 3);
  CHECK(places(tasks::sampled_rows(problem, 1000, 1, real)).size() == 2 * (40 + 1 + 13));
  const at::Tensor all = at::ones({3, 40}, at::kBool);
  CHECK((places(tasks::sampled_rows(problem, 32, 7, all)) ==
         places(tasks::sampled_rows(problem, 32, 7))));
}

TEST_CASE("reference rows keep their order whatever the number of threads", "[rows]") {
  const reference::Reference echo = [](const Options&, const Problem& problem,
                                       const reference::ReferenceInputs&,
                                       const std::vector<reference::RowIndex>& rows) {
    std::vector<double> values;
    for (const auto& row : rows) {
      for (std::int64_t d = 0; d < problem.value_dim; ++d) {
        values.push_back(static_cast<double>(1000 * row.t + 10 * row.h + d));
      }
    }
    return values;
  };
  const Problem problem = sized(1, 4, 100);
  const tasks::Rows rows = tasks::sampled_rows(problem, 33, 3);
  const int threads = at::get_num_threads();
  for (const int count : {1, 2, 5}) {
    at::set_num_threads(count);
    const auto values = tasks::reference_rows(echo, {}, problem, {}, rows);
    REQUIRE(values.size() == 99);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(values[3 * i + 2] == static_cast<double>(1000 * rows[i].t + 10 * rows[i].h + 2));
    }
  }
  at::set_num_threads(threads);
}

TEST_CASE("an exception in a reference reaches the caller", "[rows]") {
  const reference::Reference broken =
      [](const Options&, const Problem&, const reference::ReferenceInputs&,
         const std::vector<reference::RowIndex>&) -> std::vector<double> {
    throw UnsupportedError("not this one");
  };
  const Problem problem = sized(1, 1, 10);
  CHECK_THROWS_AS(
      tasks::reference_rows(broken, {}, problem, {}, tasks::sampled_rows(problem, 4, 0)),
      UnsupportedError);
}

TEST_CASE("tensors become arrays of the same numbers", "[rows]") {
  const at::Tensor tensor = tasks::seeded_normal({2, 3, 4, 5}, 7, 2.0, at::kBFloat16);
  const reference::Array array = tasks::to_array(tensor.transpose(2, 3).contiguous());
  CHECK(array.shape == std::vector<std::int64_t>{2, 3, 5, 4});
  CHECK(array.row(1, 2, 4)[3] == tensor[1][2][3][4].item<double>());
  CHECK(tasks::to_array(tensor.transpose(2, 3)).values == array.values);
  CHECK(tasks::seeded_normal({2, 3, 4, 5}, 7, 2.0, at::kBFloat16).equal(tensor));
  CHECK_FALSE(tasks::seeded_normal({2, 3, 4, 5}, 8, 2.0, at::kBFloat16).equal(tensor));
}
