#include "harness/program/suite/suite.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/suite/cell.hpp"
#include "harness/program/suite/figure_list.hpp"
#include "harness/program/suite/overrides.hpp"
#include "harness/program/suite/schema_check.hpp"
#include "harness/program/suite/shapes.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr std::size_t max_cells = 20000;

class Expansion {
 public:
  Expansion(const Document& document, const Catalogue& catalogue, const Choices& choices)
      : document_(document),
        catalogue_(catalogue),
        choices_(choices),
        suite_(document, choices.profile) {
    check_schema(
        suite_.value(), [this](const std::string& at) { return suite_.place(at); }, problems_);
    for (const std::string& text : choices.set) add_flag(parse_set_flag(text));
    problems_.throw_if_any();
    for (const std::string& name : choices.with) {
      if (suite_.add_mechanism(name)) continue;
      problems_.add("--with " + name + ": ", "the suite has a mechanism labelled so already");
    }
    tasks_ = read_tasks(suite_, catalogue, flags_, problems_);
    entries_ = read_mechanisms(suite_, catalogue, problems_);
    figures_ = figure_names(catalogue);
  }

  Expanded expanded() {
    for (const MechanismEntry& entry : entries_) refuse_unused(entry);
    problems_.throw_if_any();
    check_keys(suite_, tasks_, entries_, flags_, problems_);
    device_ = device();
    Expanded result;
    result.measure = measure_block(suite_, flags_, problems_);
    result.gate = suite_.value().value("gate", Ordered());
    combine_all();
    result.header = header();
    problems_.throw_if_any();
    for (const Combination& combination : combinations_) make_cells(combination, result.cells);
    refuse_unused_shapes();
    problems_.throw_if_any();
    for (const auto& [name, use] : uses_) {
      result.header["shapes"].push_back(use.json());
      result.notes.push_back(use.text());
    }
    result.cells = filtered(std::move(result.cells), choices_);
    const Json departures = differs_from(result.cells);
    if (!departures.empty()) result.header["differs_from"] = departures;
    return result;
  }

 private:
  /// Refuses a key given twice: the later values would silently replace the earlier ones.
  void add_flag(SetFlag flag) {
    for (const SetFlag& other : flags_) {
      if (other.key != flag.key) continue;
      problems_.add(flag.place, "\"" + flag.key +
                                    "\" is given more than once; give its values in one "
                                    "list: " +
                                    flag.key + "=A,B");
    }
    flags_.push_back(std::move(flag));
  }

  struct Combination {
    const TaskEntry* task;
    const MechanismEntry* entry;
    ChosenShape chosen;
    Axes axes;
  };

  /// --shape, else the task's, else the suite's: never sizes of two.
  ChosenShape shape_for(const TaskEntry& task) {
    const bool own = task.overrides.contains("shape");
    const bool flagged = !choices_.shape.empty();
    if (!flagged && !own && !suite_.value().contains("shape")) return {};
    const Ordered& holder = own ? task.overrides : suite_.value();
    const std::string name = flagged ? choices_.shape : holder["shape"].get<std::string>();
    const std::string place =
        flagged ? "--shape " : suite_.place((own ? task.pointer : std::string()) + "/shape");
    if (!shapes_) shapes_ = Shapes::known();
    const ModelShape* const shape = shapes_->find(name);
    if (shape == nullptr) {
      problems_.add(
          flagged ? place + text::quotable(name) + ": " : place,
          "there is no shape \"" + name + "\"; " + text::suggestion(name, shapes_->names()));
      return {};
    }
    uses_.emplace(name, *shape);
    return {shape, place + name + ": "};
  }

  /// Notes what a cell has of its shape.
  void note_shape(const Combination& combination, const std::map<std::string, const Term*>& point,
                  const Cell& cell) {
    if (combination.chosen.shape == nullptr) return;
    const ModelShape& shape = *combination.chosen.shape;
    for (const auto& [key, value] : shape.sizes.items()) {
      const auto found = point.find(key);
      const bool idle = key == "layers" && !has_layers(cell);
      const bool derived = key == "length" && is_ragged(cell);
      // Tasks without patterns are causal.
      if (found == point.end() && key == "pattern" && value == "causal") continue;
      ShapeUse::Of of = ShapeUse::Of::replaced;
      if (found == point.end() || (idle && found->second->of_shape)) {
        of = ShapeUse::Of::missing;
      } else if (found->second->of_shape && !derived) {
        of = ShapeUse::Of::taken;
      } else if (found->second->value == Json(value) && !derived) {
        of = ShapeUse::Of::same;
      }
      uses_.at(shape.name).add(key, of, cell.task_label, cell.label);
    }
  }

  /// Refuses a shape that changes nothing.
  void refuse_unused_shapes() {
    for (const Combination& combination : combinations_) {
      const ChosenShape& chosen = combination.chosen;
      if (chosen.shape == nullptr || !uses_.at(chosen.shape->name).is_idle()) continue;
      problems_.add(chosen.place,
                    "no cell takes any of its sizes, as the suite says all of them otherwise; "
                    "leave the shape out, or the suite's own sizes");
    }
  }

  /// By name of mechanism or task: departures from what was published.
  Json differs_from(const std::vector<Cell>& cells) const {
    Json all = Json::object();
    const auto note = [&](const auto& spec) {
      if (!spec.differs_from.empty()) all[spec.name] = spec.differs_from;
    };
    for (const Cell& cell : cells) {
      note(*catalogue_.find(cell.mechanism)->mechanism);
      note(*catalogue_.task(cell.task));
    }
    return all;
  }

  static std::vector<std::string> figure_names(const Catalogue& catalogue) {
    std::set<std::string> names;
    for (const TaskSpec& task : catalogue.tasks) {
      names.insert(task.figures.begin(), task.figures.end());
      names.insert(task.further_figures.begin(), task.further_figures.end());
    }
    return {names.begin(), names.end()};
  }

  /// Refuses a mechanism of --with that no task runs: it would add nothing.
  void refuse_unused(const MechanismEntry& entry) {
    const auto& with = choices_.with;
    if (std::find(with.begin(), with.end(), entry.label) == with.end()) return;
    const bool wanted = std::any_of(tasks_.begin(), tasks_.end(),
                                    [&](const TaskEntry& task) { return applies_to(task, entry); });
    if (wanted) return;
    problems_.add("--with " + entry.label + ": ",
                  "every task of this suite names its own mechanisms; expected a task for all");
  }

  std::string device() {
    const std::string suites = suite_.value().value("device", "cpu");
    std::string complaint = device_complaint(suites);
    if (!complaint.empty()) problems_.add(suite_.place("/device"), complaint);
    if (choices_.device.empty()) return suites;
    complaint = device_complaint(choices_.device);
    if (!complaint.empty()) problems_.add("--device: ", complaint);
    flags_.push_back({"device", Ordered::array({choices_.device}), "--device: "});
    return choices_.device;
  }

  /// Refuses a plugin's option that is named like a setting of the task or a keyword of suites: a
  /// suite would set that instead, and never the option.
  void refuse_hidden(const TaskEntry& task, const MechanismEntry& entry) {
    const std::string& origin = entry.mechanism->origin;
    if (origin.empty() || origin == "built in") return;
    static const std::set<std::string> words{"use",    "as",  "zip", "implementation",
                                             "device", "task"};
    for (const Option& option : entry.mechanism->options) {
      const auto& settings = task.spec->settings;
      const bool is_setting = std::any_of(settings.begin(), settings.end(), [&](const Option& one) {
        return one.name == option.name;
      });
      const bool is_word = words.contains(option.name) || default_measure().contains(option.name);
      if (!is_setting && !is_word) continue;
      problems_.add(suite_.place(entry.pointer),
                    "its option " + option.name + " has the name of " +
                        (is_setting ? "a setting of the task " + task.spec->name
                                    : "something else in suites") +
                        ", which hides it: give the option another name in " + origin);
    }
  }

  void combine_all() {
    std::size_t cells = 0;
    for (const TaskEntry& task : tasks_) {
      const ChosenShape chosen = shape_for(task);
      for (const MechanismEntry& entry : entries_) {
        if (!applies_to(task, entry)) continue;
        refuse_hidden(task, entry);
        combinations_.push_back(
            {&task, &entry, chosen, axes_of(suite_, task, entry, chosen, flags_, problems_)});
        const std::size_t count = combinations_.back().axes.count();
        cells = count > max_cells ? max_cells + 1 : std::min(cells + count, max_cells + 1);
      }
    }
    if (cells > max_cells) {
      problems_.add(suite_.place("/set"), "the axes make more than " + std::to_string(max_cells) +
                                              " cells; expected fewer or shorter lists");
    }
  }

  void make_cells(const Combination& combination, std::vector<Cell>& cells) {
    const std::vector<std::string> varies = combination.axes.varying();
    const std::string place = suite_.place(combination.entry->pointer);
    for (std::size_t i = 0; i < combination.axes.count(); ++i) {
      const std::map<std::string, const Term*> point = combination.axes.point(i);
      auto cell =
          make_cell(*combination.task, *combination.entry, point, device_, place, problems_);
      if (!cell) continue;
      note_shape(combination, point, *cell);
      cell->varies = varies;
      if (give_id(*cell, combination)) cells.push_back(std::move(*cell));
    }
  }

  /// False where the suite has the cell already. A cell under two labels counts twice: the id of
  /// the second includes its label.
  bool give_id(Cell& cell, const Combination& combination) {
    Json identity = suite::identity(cell, *combination.task, *combination.entry,
                                    std::filesystem::path(document_.name).parent_path());
    const std::pair labels(cell.task_label, cell.label);
    cell.id = cell_id(identity);
    const auto [known, fresh] = labels_.emplace(cell.id, labels);
    if (fresh) return true;
    if (known->second == labels) return false;
    identity.update({{"label", cell.label}, {"task_label", cell.task_label}});
    cell.id = cell_id(identity);
    return labels_.emplace(cell.id, labels).second;
  }

  Json figures_of(const TaskEntry& task) {
    const bool own = task.overrides.contains("figures");
    const std::string pointer = (own ? task.pointer : std::string()) + "/figures";
    const Ordered& holder = own ? task.overrides : suite_.value();
    if (!holder.contains("figures")) return task.spec->figures;
    std::size_t index = 0;
    for (const Ordered& figure : holder["figures"]) {
      const std::string name = figure;
      if (std::find(figures_.begin(), figures_.end(), name) == figures_.end()) {
        problems_.add(suite_.place(pointer + "/" + std::to_string(index)),
                      "there is no figure \"" + name + "\"; " + text::suggestion(name, figures_));
      }
      ++index;
    }
    return Json(holder["figures"]);
  }

  /// The task's own axis where it varies or is not a setting, else the first setting that varies.
  std::string axis_of(const TaskEntry& task) const {
    std::vector<std::string> varying;
    for (const Combination& combination : combinations_) {
      if (combination.task != &task) continue;
      for (const std::string& key : combination.axes.varying()) varying.push_back(key);
    }
    const std::string& usual = task.spec->axis;
    const auto& settings = task.spec->settings;
    const bool is_setting = std::any_of(settings.begin(), settings.end(),
                                        [&](const auto& one) { return one.name == usual; });
    if (!is_setting) return usual;
    const bool usual_varies = std::find(varying.begin(), varying.end(), usual) != varying.end();
    return usual_varies || varying.empty() ? usual : varying.front();
  }

  Json header() {
    const Ordered& value = suite_.value();
    Json header = {{"name", value["name"]},
                   {"hash", document_.hash},
                   {"settings_hash", settings_hash(Json(document_.value))},
                   {"tasks", Json::object()}};
    for (const char* key : {"title", "source", "figure", "published", "notes"}) {
      if (value.contains(key)) header[key] = value[key];
    }
    if (value.contains("published")) {
      const std::filesystem::path beside = std::filesystem::path(document_.name).parent_path();
      header["published"] = (beside / value["published"].get<std::string>()).string();
    }
    if (!choices_.profile.empty()) header["profile"] = choices_.profile;
    for (const TaskEntry& task : tasks_) {
      header["tasks"][task.label] = {{"task", task.spec->name},
                                     {"title", task.overrides.value("title", task.spec->title)},
                                     {"axis", axis_of(task)},
                                     {"figures", figures_of(task)}};
    }
    header["labels"] = Json::array();
    for (const MechanismEntry& entry : entries_) header["labels"].push_back(entry.label);
    return header;
  }

  const Document& document_;
  const Catalogue& catalogue_;
  const Choices& choices_;
  ProfiledSuite suite_;
  Problems problems_;
  std::vector<SetFlag> flags_;
  std::vector<TaskEntry> tasks_;
  std::vector<MechanismEntry> entries_;
  std::vector<std::string> figures_;
  std::string device_;
  std::optional<Shapes> shapes_;          ///< read where one is named
  std::map<std::string, ShapeUse> uses_;  ///< by name of the shape
  std::vector<Combination> combinations_;
  std::map<std::string, std::pair<std::string, std::string>>
      labels_;  ///< task's, mechanism's; by id
};

}  // namespace

constexpr std::size_t max_published_bytes = 4 * mebibyte;  // what reports accept

std::string Expanded::name() const { return header.value("name", "run"); }

int Expanded::further_rounds() const {
  return measure.is_object() ? measure.value("further_rounds", 0) : 0;
}

int Expanded::rounds(int usual) const {
  return measure.is_object() ? measure.value("rounds", usual) : usual;
}

double Expanded::cell_timeout_seconds(double usual) const {
  return measure.is_object() ? measure.value("cell_timeout_seconds", usual) : usual;
}

Document load(const std::filesystem::path& file) {
  Document document = read_document(file);
  Problems problems;
  check_schema(
      document.value, [&](const std::string& at) { return document.place(at); }, problems);
  if (document.value.is_object() && document.value.contains("published") &&
      document.value["published"].is_string()) {
    const std::string name = document.value["published"];
    try {
      expect_regular_file(file.parent_path() / name, "the name of a CSV file beside the suite",
                          max_published_bytes);
    } catch (const UsageFailure& failure) {
      problems.add(document.place("/published"), failure.what());
    }
  }
  if (document.value.is_object() && document.value.contains("figure") &&
      document.value["figure"].is_string()) {
    const std::string complaint = figure_complaint(document.value["figure"]);
    if (!complaint.empty()) problems.add(document.place("/figure"), complaint);
  }
  problems.throw_if_any();
  return document;
}

Document from_command_line(const std::vector<std::string>& mechanisms) {
  std::string name = "adhoc";
  for (const std::string& mechanism : mechanisms) {
    if (name.size() + mechanism.size() > 60) break;
    name += "-" + mechanism;
  }
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.'; },
      '-');
  Document document;
  document.name = "command line";
  document.value = {
      {"name", name},
      {"task", "kernel"},
      {"mechanisms", mechanisms},
      // Rounds differ by far more than a longer one could tell.
      {"measure", {{"max_seconds", 0.3}}},
      {"profiles", {{"quick", {{"measure", {{"rounds", 3}, {"max_seconds", 0.1}}}}}}}};
  document.hash = hash_text(document.value.dump());
  return document;
}

Document pair_from_command_line(const std::string& base, const std::string& changed,
                                const std::string& control) {
  Document document = from_command_line({base, changed});
  const std::string name = document.value["name"];
  document.value["name"] = "ab" + name.substr(name.find('-'));
  document.value["mechanisms"] = {
      {base, {{"use", base}}}, {changed, {{"use", changed}}}, {control, {{"use", base}}}};
  // An interval that leaves out the extremes at some sizes needs as many rounds (statistics.hpp).
  document.value["measure"] = {{"rounds", 12}, {"max_seconds", 0.3}};
  document.value.erase("profiles");
  document.hash = hash_text(document.value.dump());
  return document;
}

Expanded expand(const Document& document, const Catalogue& catalogue, const Choices& choices) {
  return Expansion(document, catalogue, choices).expanded();
}

}  // namespace attnbench::suite
