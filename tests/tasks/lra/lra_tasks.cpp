#include <cstdlib>

#include "tasks/data/data_task.hpp"
#include "tasks/data/prepare.hpp"
#include "tasks/lra/prepared_rows.hpp"
#include "tasks/training/task.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using std::int64_t;
using tasks::lra::PreparedRows;
using tasks::training::Batch;
using tasks::training::Split;

namespace {

/// A folder of prepared data that cells find while it exists.
class DataFolder {
 public:
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// The settings of the task that decide its rows, taken from those of a cell.
  void prepare(const char* name, const Settings& cell, const std::filesystem::path& from = {}) {
    const tasks::data::DataTask& task = *tasks::data::find_data_task(name);
    Settings own;
    for (const auto& [key, value] : cell) {
      if (task.setting(key) != nullptr) own[key] = value;
    }
    const auto source = task.open(Options::resolve(task.settings, own), from, {});
    tasks::data::prepare(*source, folder_ / tasks::data::cache_name(source->description()));
  }

 private:
  TemporaryFolder folder_;
  Variable variable_{"ATTNBENCH_DATA", folder_.path()};
};

const tasks::training::TrainingTask& training_task(const char* name) {
  return dynamic_cast<const tasks::training::TrainingTask&>(tasks::find_task(name));
}

std::unique_ptr<tasks::training::DataSet> data_of(const char* name, const Settings& said) {
  const auto& task = training_task(name);
  return task.data_set(Options::resolve(task.settings(), said), 0);
}

Settings small_listops() {
  return {{"length_minimum", n(4)},  {"length_maximum", n(30)},     {"depth", n(4)},
          {"train_examples", n(60)}, {"validation_examples", n(9)}, {"test_examples", n(9)},
          {"length", n(32)}};
}

Settings small_pathfinder() {
  return {{"train_examples", n(6)}, {"validation_examples", n(2)}, {"test_examples", n(2)}};
}

std::vector<int64_t> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

}  // namespace

TEST_CASE("the five tasks are there, bidirectional and without padding among images", "[lra]") {
  for (const char* name :
       {"lra.listops", "lra.text", "lra.retrieval", "lra.image", "lra.pathfinder"}) {
    INFO(name);
    const auto& task = training_task(name);
    const Options settings = Options::resolve(task.settings(), {});
    CHECK(settings.text("pattern") == "bidirectional");
    CHECK(task.data() == nullptr);
    CHECK(task.classifies());
    CHECK(settings.has("input") == (settings.integer("length") == 0));  // images
    tasks::training::ModelOptions model;
    task.fit(settings, model);
    CHECK(model.vocabulary == tasks::data::find_data_task(name)->vocabulary);
  }
}

TEST_CASE("rows of ListOps become padded batches with lengths", "[lra]") {
  DataFolder folder;
  folder.prepare("lra.listops", small_listops());
  const auto data = data_of("lra.listops", small_listops());
  CHECK(data->classes() == 10);
  CHECK(data->towers() == 1);
  CHECK(data->segments(Split::train).front().examples == 60);
  const Batch batch = data->batch(Split::train, 0, {3, 0, 63});
  CHECK(batch.tokens.sizes() == at::IntArrayRef({3, 32}));
  CHECK_FALSE(batch.positions.defined());
  CHECK_FALSE(batch.values.defined());
  REQUIRE(batch.lengths.sizes() == at::IntArrayRef({3}));
  const std::vector<int64_t> lengths = numbers(batch.lengths);
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<int64_t> row = numbers(batch.tokens[i]);
    for (int64_t t = 0; t < 32; ++t) {
      CHECK((row[static_cast<std::size_t>(t)] == 0) == (t >= lengths[static_cast<std::size_t>(i)]));
    }
  }
  // Numbers beyond the last example begin again.
  CHECK(at::equal(batch.tokens[0], batch.tokens[2]));
  CHECK(batch.labels[0].item<int64_t>() == batch.labels[2].item<int64_t>());
  CHECK_FALSE(at::equal(batch.tokens[0], batch.tokens[1]));
  // A split has rows of its own.
  CHECK_FALSE(at::equal(data->batch(Split::test, 0, {3}).tokens[0], batch.tokens[0]));
}

TEST_CASE("two documents of a pair stand in two halves of a batch", "[lra]") {
  DataFolder folder;
  const std::filesystem::path raw = folder / "raw/deep/deeper";
  write_file(raw / "new_aan_pairs.train.tsv", "0.0\t1\t2\tab\tcde\n1.0\t3\t4\tf\tgh\n");
  write_file(raw / "new_aan_pairs.eval.tsv", "1\t1\t2\tx\ty\n");
  write_file(raw / "new_aan_pairs.test.tsv", "0\t1\t2\tx\ty\n");
  folder.prepare("lra.retrieval", {}, raw);
  const auto data = data_of("lra.retrieval", {{"length", n(2)}});
  CHECK(data->towers() == 2);
  const Batch batch = data->batch(Split::train, 0, {0, 1});
  CHECK(numbers(batch.tokens) == std::vector<int64_t>{'a' + 1, 'b' + 1, 'f' + 1, 0,  //
                                                      'c' + 1, 'd' + 1, 'g' + 1, 'h' + 1});
  CHECK(numbers(batch.lengths) == std::vector<int64_t>{2, 1, 2, 2});
  CHECK(numbers(batch.labels) == std::vector<int64_t>{0, 1});
  CHECK_THROWS_WITH(data_of("lra.retrieval", {{"length", n(2)}, {"truncate", false}}),
                    Contains("3 tokens, length is 2"));
}

TEST_CASE("images have a token for each pixel, and no lengths", "[lra]") {
  DataFolder folder;
  folder.prepare("lra.pathfinder", small_pathfinder());
  const auto data = data_of("lra.pathfinder", small_pathfinder());
  const Batch batch = data->batch(Split::train, 0, {0, 1});
  CHECK(batch.tokens.sizes() == at::IntArrayRef({2, 1024}));
  CHECK_FALSE(batch.lengths.defined());
  CHECK(batch.tokens.max().item<int64_t>() == 255);
  CHECK_FALSE(batch.real.defined());
  const auto masked =
      data_of("lra.pathfinder", with(small_pathfinder(), {{"image_mask", s("zero_is_pad")}}));
  const Batch black_left_out = masked->batch(Split::train, 0, {0, 1});
  CHECK(at::equal(black_left_out.real, batch.tokens.ne(0)));
  CHECK(at::equal(tasks::training::key_mask_of(black_left_out), black_left_out.real));
  CHECK_THROWS_WITH(data_of("lra.pathfinder", with(small_pathfinder(), {{"length", n(900)}})),
                    Contains("1024 pixels"));
}

TEST_CASE("what mixes neighbours is refused where black pixels are masked between others",
          "[lra]") {
  DataFolder folder;
  folder.prepare("lra.pathfinder", small_pathfinder());
  const Settings plain =
      with(small_pathfinder(), {{"width", n(16)}, {"heads", n(2)}, {"batch", n(2)}});
  const Settings masked = with(plain, {{"image_mask", s("zero_is_pad")}});
  const auto support = [&](const char* mechanism, const Settings& settings,
                           const Settings& options) {
    const tasks::ResolvedCell cell =
        make_cell("lra.pathfinder", mechanism, "auto", settings, options);
    return training_task("lra.pathfinder").forecast(registry(), cell).support;
  };
  for (const char* mechanism : {"latte", "window", "macchiato"}) {
    for (const char* before : {"conv", "rg_lru"}) {
      for (const char* directions : {"forward", "both"}) {
        INFO(mechanism << " " << before << " " << directions);
        const Settings options{{"before", s(before)}, {"directions", s(directions)}};
        CHECK(support(mechanism, plain, options).reason.empty());
        const Support refused = support(mechanism, masked, options);
        CHECK_FALSE(refused);
        CHECK_THAT(refused.reason, Contains(mechanism + std::string(": before=") + before) &&
                                       Contains("image_mask=zero_is_pad") &&
                                       Contains("choose before=none"));
      }
    }
    CHECK(support(mechanism, masked, {{"before", s("none")}}).reason.empty());
  }
  CHECK(support("rg_lru", masked, {{"directions", s("both")}}).reason.empty());
  const Settings layout{{"layout", s("convolution_first")}};
  CHECK(support("softmax", with(plain, layout), {}).reason.empty());
  CHECK_THAT(support("softmax", with(masked, layout), {}).reason,
             Contains("layout=convolution_first") && Contains("image_mask=zero_is_pad"));
}

TEST_CASE("a cls token may stand before black pixels", "[lra]") {
  DataFolder folder;
  folder.prepare("lra.pathfinder", small_pathfinder());
  const Settings settings = with(small_pathfinder(), {{"width", n(16)},
                                                      {"heads", n(2)},
                                                      {"layers", n(1)},
                                                      {"batch", n(2)},
                                                      {"epochs", n(1)},
                                                      {"pooling", s("cls")},
                                                      {"image_mask", s("zero_is_pad")}});
  const auto data = data_of("lra.pathfinder", settings);
  const at::Tensor real = data->batch(Split::train, 0, {0, 1, 2, 3, 4, 5}).real;
  CHECK_FALSE(real.select(1, 0).any().item<bool>());  // images of Pathfinder begin in black
  const tasks::ResolvedCell cell = make_cell("lra.pathfinder", "linear", "auto", settings);
  const Ran ran = run_cell(registry(), "lra.pathfinder", cell);
  CHECK(ran.check["verdict"] == "ok");
  CHECK(ran.sections["training"]["confusion"].size() == 2);
}

TEST_CASE("grey levels can be numbers from -1 to 1", "[lra]") {
  DataFolder folder;
  folder.prepare("lra.pathfinder", small_pathfinder());
  const auto data = data_of("lra.pathfinder", with(small_pathfinder(), {{"input", s("values")}}));
  const Batch batch = data->batch(Split::train, 0, {0, 1});
  CHECK_FALSE(batch.tokens.defined());
  CHECK(batch.values.scalar_type() == at::kFloat);
  CHECK(batch.values.sizes() == at::IntArrayRef({2, 1024}));
  CHECK(batch.values.min().item<float>() == Approx(-1));
  CHECK(batch.values.max().item<float>() == Approx(1));
}

TEST_CASE("the test's rows validate where that is asked for", "[lra]") {
  DataFolder folder;
  for (const char* name : {"train/a/1.txt", "train/b/1.txt", "test/a/1.txt", "test/b/1.txt"}) {
    write_file(folder / ("raw/deep/" + std::string(name)), name);
  }
  const Settings none_held{{"hold_out", n(0)}};
  folder.prepare("lra.text", none_held, folder / "raw/deep");
  CHECK_THROWS_WITH(data_of("lra.text", none_held), Contains("set validation to test"));
  const auto data = data_of("lra.text", with(none_held, {{"validation", s("test")}}));
  CHECK(at::equal(data->batch(Split::validation, 0, {1}).tokens,
                  data->batch(Split::test, 0, {1}).tokens));
  const Json facts = dynamic_cast<const PreparedRows&>(*data).facts();
  CHECK(facts["splits"]["validation"]["rows_of"] == "test");
  CHECK(facts["splits"]["train"]["majority"] == Approx(0.5));
  CHECK(facts["content_hash"].get<std::string>().size() == 32);
}

TEST_CASE("a cell without its data has the forecast that it has with them", "[lra]") {
  const auto both = [](const char* name, const Settings& settings) {
    DataFolder folder;
    const auto& task = tasks::find_task(name);
    const tasks::ResolvedCell cell = make_cell(name, "softmax", "auto", settings);
    CHECK_THROWS_AS(task.forecast(registry(), cell), tasks::data::MissingData);
    const auto without = task.forecast_without_data(registry(), cell);
    folder.prepare(name, settings);
    const tasks::TaskForecast prepared = task.forecast(registry(), cell);
    REQUIRE(without);
    REQUIRE(prepared.support);
    CHECK(without->support);
    CHECK(without->once);
    CHECK(without->problem.length == prepared.problem.length);
    CHECK(without->cost.model_flops == prepared.cost.model_flops);
    CHECK(without->peak_bytes == prepared.peak_bytes);
    return without->cost.model_flops;
  };
  const Settings small{{"batch", n(4)}, {"width", n(16)}, {"heads", n(2)}, {"epochs", n(3)}};
  const double few = both("lra.listops", with(small_listops(), small));
  const double more =
      both("lra.listops", with(with(small_listops(), small), {{"train_examples", n(120)}}));
  CHECK(more == Approx(2 * few));
  both("lra.pathfinder", with(small_pathfinder(), small));
  both("lra.pathfinder", with(with(small_pathfinder(), small), {{"image_mask", s("zero_is_pad")}}));
}

TEST_CASE("published data have their size before they are prepared", "[lra]") {
  const auto outline = [](const char* name, const Settings& said) {
    const auto& task = training_task(name);
    return task.outline(Options::resolve(task.settings(), said));
  };
  const auto sizes = [](const tasks::training::DataSet& data) {
    std::vector<int64_t> examples;
    for (const Split split : tasks::training::every_split) {
      examples.push_back(data.segments(split).front().examples);
    }
    return examples;
  };
  const auto text = outline("lra.text", {});
  CHECK(sizes(*text) == std::vector<int64_t>{22'500, 2'500, 25'000});
  CHECK(text->segments(Split::train).front().length == 4'000);
  CHECK(text->classes() == 2);
  CHECK(sizes(*outline("lra.text", {{"train_examples", n(100)}})).front() == 100);
  CHECK(sizes(*outline("lra.text", {{"train_examples", n(30'000)}})).front() == 22'500);
  CHECK(outline("lra.text", {{"hold_out", n(25'000)}}) == nullptr);
  const auto pairs = outline("lra.retrieval", {});
  CHECK(sizes(*pairs) == std::vector<int64_t>{147'086, 18'090, 17'437});
  CHECK(pairs->towers() == 2);
  const auto images = outline("lra.image", {{"image_mask", s("zero_is_pad")}});
  CHECK(sizes(*images) == std::vector<int64_t>{45'000, 5'000, 10'000});
  CHECK(images->segments(Split::test).front().length == 1024);
  CHECK(images->masks_between() == "image_mask=zero_is_pad");
  const auto clothes = outline("lra.image", {{"source", s("fashion_mnist")}, {"side", n(28)}});
  CHECK(sizes(*clothes) == std::vector<int64_t>{55'000, 5'000, 10'000});
  CHECK(clothes->segments(Split::train).front().length == 784);
  CHECK(clothes->masks_between().empty());
  CHECK_THROWS_AS(clothes->batch(Split::train, 0, {0}), std::logic_error);
}

TEST_CASE("data that do not fit a cell are refused, missing data are skipped", "[lra]") {
  DataFolder folder;
  CHECK_THROWS_AS(data_of("lra.listops", small_listops()), tasks::data::MissingData);
  folder.prepare("lra.listops", small_listops());
  CHECK_NOTHROW(data_of("lra.listops", with(small_listops(), {{"train_examples", n(40)}})));
  CHECK_THROWS_AS(data_of("lra.listops", with(small_listops(), {{"train_examples", n(61)}})),
                  tasks::data::MissingData);
  CHECK_THROWS_AS(data_of("lra.listops", with(small_listops(), {{"data_seed", n(1)}})),
                  tasks::data::MissingData);
  CHECK_THROWS_WITH(data_of("lra.listops", with(small_listops(), {{"length", n(8)}})),
                    Contains("length is 8") && Contains("truncate"));
  tasks::training::ModelOptions model;
  const auto& task = training_task("lra.listops");
  CHECK_THROWS_WITH(task.fit(Options::resolve(task.settings(), {{"vocabulary", n(15)}}), model),
                    Contains("at least 16"));
  const Variable without("ATTNBENCH_DATA", {});
  CHECK_THROWS_WITH(data_of("lra.listops", small_listops()), Contains("--data DIR"));
}

TEST_CASE("a mechanism is trained on prepared rows, and the record tells of them", "[lra]") {
  DataFolder folder;
  folder.prepare("lra.listops", small_listops());
  const Settings settings = with(small_listops(), {{"batch", n(16)},
                                                   {"width", n(16)},
                                                   {"heads", n(2)},
                                                   {"epochs", n(2)},
                                                   {"positions", s("learned")}});
  const Ran ran =
      run_cell(registry(), "lra.listops", make_cell("lra.listops", "softmax", "auto", settings));
  CHECK(ran.check["verdict"] == "ok");
  const Json& training = ran.sections["training"];
  CHECK(training["chance"] == Approx(0.1));
  CHECK(training["data"]["source"] == "generated");
  CHECK(training["data"]["splits"]["train"]["rows"] == 60);
  CHECK(training["guess"] == training["data"]["splits"]["test"]["majority"]);
}
