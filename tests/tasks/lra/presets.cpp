// The models of presets, counted in weights as the papers' code has them: a wrong number in
// suites/form/presets.json is seen here.
#include <algorithm>

#include "core/option_json.hpp"
#include "tasks/settings.hpp"
#include "tasks/training/task.hpp"
#include "tests/support/files.hpp"
#include "tests/tasks/run_cell.hpp"
#include "tests/tasks/training/model_of.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

struct Chosen {
  Options settings;  ///< of the task
  Settings options;  ///< of the mechanism
  ModelOptions model;
  Problem problem;
};

/// What a suite with that preset gives a cell. The classes and sequences of an example are the
/// data's, which are not prepared here.
Chosen chosen_by(const char* preset, const std::string& task_name, const char* mechanism,
                 std::int64_t classes, std::int64_t towers) {
  static const Json presets =
      Json::parse(read_file(test::source_folder() + "/suites/form/presets.json"));
  const auto& task = dynamic_cast<const TrainingTask&>(tasks::find_task(task_name));
  const std::vector<Option> declared = task.settings();
  const auto knows = [](const std::vector<Option>& options, const std::string& name) {
    return std::any_of(options.begin(), options.end(),
                       [&](const Option& one) { return one.name == name; });
  };
  Json said = presets.at(preset).at("set");
  said.update(presets.at(preset).at("tasks").at(task_name));
  Chosen chosen;
  Settings settings;
  for (const auto& [name, value] : said.items()) {
    INFO(name);
    const bool of_task = knows(declared, name);
    if (!of_task && !knows(registry().entry(mechanism).options, name)) {
      // A preset says for all tasks what some of them have, such as image_mask.
      REQUIRE(knows(tasks::find_task("lra.image").settings(), name));
      continue;
    }
    (of_task ? settings : chosen.options)[name] = value_from(value, name);
  }
  chosen.settings = Options::resolve(declared, settings);
  chosen.model = task.model_options(chosen.settings);
  chosen.model.classifier.classes = classes;
  chosen.model.classifier.towers = towers;
  Options sized = chosen.settings;
  sized.set("length", mix_length(chosen.model, sized.integer("length")));
  chosen.problem = tasks::problem_from(sized);
  return chosen;
}

}  // namespace

TEST_CASE("the softmax models of lra.skyformer have Skyformer's numbers of weights", "[lra]") {
  // Chen et al. 2021, its code.
  struct Row {
    const char* task;
    std::int64_t classes, towers, weights;
  };
  for (const Row& wanted : {Row{"lra.listops", 10, 1, 209802}, Row{"lra.text", 2, 1, 370562},
                            Row{"lra.retrieval", 2, 2, 395138}, Row{"lra.image", 10, 1, 158602},
                            Row{"lra.pathfinder", 2, 1, 173954}}) {
    INFO(wanted.task);
    const Chosen chosen =
        chosen_by("lra.skyformer", wanted.task, "softmax", wanted.classes, wanted.towers);
    const auto model = model_of("softmax", chosen.problem, chosen.model);
    CHECK(weights_in(*model) == wanted.weights);
    // As a forecast counts them.
    const std::int64_t width = chosen.problem.width();
    const std::int64_t projections = chosen.model.layers * 4 * (width * width + width);
    CHECK(weights_around(chosen.model, chosen.problem) + projections == wanted.weights);
  }
}

TEST_CASE("the models of lra.latte_v1 have Latte's numbers of weights", "[lra]") {
  // Dolga et al. 2024, its code, by hand to 0.5 %. Its rows "L = D" set latents_total=width.
  struct Row {
    const char* task;
    bool latents_of_width;
    std::int64_t classes, towers;
    double weights;
  };
  for (const Row& wanted :
       {Row{"lra.listops", false, 10, 1, 1.055e6}, Row{"lra.text", true, 2, 1, 4.80e6},
        Row{"lra.retrieval", false, 2, 2, 1.15e6}, Row{"lra.image", true, 10, 1, 19.0e6},
        Row{"lra.pathfinder", true, 2, 1, 4.73e6}}) {
    INFO(wanted.task);
    const Chosen chosen =
        chosen_by("lra.latte_v1", wanted.task, "latte", wanted.classes, wanted.towers);
    const std::int64_t width = chosen.problem.width();
    const std::int64_t latents = wanted.latents_of_width
                                     ? width
                                     : std::get<std::int64_t>(chosen.options.at("latents_total"));
    // Two of latents, values and output.
    const std::int64_t mixes = chosen.model.layers * (2 * width * latents + 2 * width * width);
    CHECK(static_cast<double>(weights_around(chosen.model, chosen.problem) + mixes) ==
          Approx(wanted.weights).epsilon(5e-3));
  }
}
