// Expansion: from a suite with its profile to the list of cells.
#include <algorithm>
#include <set>

#include "core/failure.hpp"
#include "harness/suite/cell.hpp"
#include "harness/suite/filter.hpp"
#include "harness/suite/schema_check.hpp"
#include "harness/suite/overrides.hpp"
#include "harness/suite/measure_block.hpp"
#include "harness/suite/suite_entries.hpp"
#include "harness/suite/suite.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr std::size_t most_cells = 20000;

class Expansion {
 public:
  Expansion(const Document& document, const Catalogue& catalogue, const Choices& choices)
      : document_(document),
        catalogue_(catalogue),
        choices_(choices),
        suite_(document, choices.profile) {
    check_form(
        suite_.value(), [this](const std::string& at) { return suite_.place(at); }, problems_);
    for (const std::string& text : choices.set) flags_.push_back(parse_set_flag(text));
    problems_.throw_if_any();
    for (const std::string& name : choices.with) {
      if (suite_.add_mechanism(name)) continue;
      problems_.add("--with " + name + ": ", "the suite has a mechanism labelled so already");
    }
    groups_ = read_groups(suite_, catalogue, flags_, problems_);
    entries_ = read_entries(suite_, catalogue, problems_);
    figures_ = figure_names(catalogue);
  }

  Expanded expanded() {
    for (const Entry& entry : entries_) refuse_idle(entry);
    problems_.throw_if_any();
    check_keys(suite_, groups_, entries_, flags_, problems_);
    device_ = device();
    Expanded result;
    result.measure = measure_block(suite_, flags_, problems_);
    result.gate = suite_.value().value("gate", Ordered());
    lay_out_all();
    result.header = header();
    problems_.throw_if_any();
    for (const Layout& layout : layouts_) make_cells(layout, result.cells);
    problems_.throw_if_any();
    result.cells = filtered(std::move(result.cells), choices_);
    const Json departures = differs_from(result.cells);
    if (!departures.empty()) result.header["differs_from"] = departures;
    return result;
  }

 private:
  struct Layout {
    const Group* group;
    const Entry* entry;
    Axes axes;
  };

  /// By name of mechanism or task: where those of the cells are not what was published.
  Json differs_from(const std::vector<Json>& cells) const {
    Json all = Json::object();
    const auto note = [&](const std::string& name, const auto& specs) {
      const auto found = specs.find(name);
      if (found == specs.end() || found->second.differs_from.empty()) return;
      all[name] = found->second.differs_from;
    };
    for (const Json& cell : cells) {
      note(cell.at("mechanism"), catalogue_.mechanisms);
      note(cell.at("task"), catalogue_.tasks);
    }
    return all;
  }

  static std::vector<std::string> figure_names(const Catalogue& catalogue) {
    std::set<std::string> names;
    for (const auto& [name, task] : catalogue.tasks) {
      names.insert(task.figures.begin(), task.figures.end());
      names.insert(task.further_figures.begin(), task.further_figures.end());
    }
    return {names.begin(), names.end()};
  }

  /// A mechanism of --with that no task is for would add nothing, and nobody would know why.
  void refuse_idle(const Entry& entry) {
    const auto& with = choices_.with;
    if (std::find(with.begin(), with.end(), entry.label) == with.end()) return;
    const bool wanted = std::any_of(groups_.begin(), groups_.end(),
                                    [&](const Group& group) { return is_for(group, entry); });
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

  void lay_out_all() {
    std::size_t cells = 0;
    for (const Group& group : groups_) {
      for (const Entry& entry : entries_) {
        if (!is_for(group, entry)) continue;
        layouts_.push_back({&group, &entry, lay_out(suite_, group, entry, flags_, problems_)});
        const std::size_t count = layouts_.back().axes.count();
        cells = count > most_cells ? most_cells + 1 : std::min(cells + count, most_cells + 1);
      }
    }
    if (cells > most_cells) {
      problems_.add(suite_.place("/set"), "the axes make more than " + std::to_string(most_cells) +
                                              " cells; expected fewer or shorter lists");
    }
  }

  void make_cells(const Layout& layout, std::vector<Json>& cells) {
    const std::vector<std::string> varies = layout.axes.varying();
    const std::string place = suite_.place(layout.entry->pointer);
    for (std::size_t i = 0; i < layout.axes.count(); ++i) {
      auto cell =
          make_cell(*layout.group, *layout.entry, layout.axes.point(i), device_, place, problems_);
      if (!cell) continue;
      (*cell)["varies"] = varies;
      if (give_id(*cell, layout)) cells.push_back(std::move(*cell));
    }
  }

  /// False where the cell is in the suite already. One cell under two labels is two: the second
  /// one's label goes into its id.
  bool give_id(Json& cell, const Layout& layout) {
    Json identity = suite::identity(cell, *layout.group, *layout.entry);
    const std::string labels = cell["task_label"].dump() + cell["label"].dump();
    std::string id = cell_id(identity);
    const auto [known, fresh] = labels_.emplace(id, labels);
    if (!fresh && known->second == labels) return false;
    if (!fresh) {
      identity["label"] = cell["label"];
      identity["task_label"] = cell["task_label"];
      id = cell_id(identity);
      if (!labels_.emplace(id, labels).second) return false;
    }
    cell["id"] = id;
    return true;
  }

  Json figures_of(const Group& group) {
    const bool own = group.said.contains("figures");
    const std::string pointer = (own ? group.pointer : std::string()) + "/figures";
    const Ordered& holder = own ? group.said : suite_.value();
    if (!holder.contains("figures")) return group.task->figures;
    std::size_t index = 0;
    for (const Ordered& figure : holder["figures"]) {
      const std::string name = figure;
      if (std::find(figures_.begin(), figures_.end(), name) == figures_.end()) {
        problems_.add(suite_.place(pointer + "/" + std::to_string(index)),
                      "there is no figure \"" + name + "\"; " + suggestion(name, figures_));
      }
      ++index;
    }
    return Json(holder["figures"]);
  }

  /// The task's own axis where that varies, else the first that does. One that is no setting is
  /// worked out from the cells, by whoever lays them out.
  std::string axis_of(const Group& group) const {
    std::vector<std::string> varying;
    for (const Layout& layout : layouts_) {
      if (layout.group != &group) continue;
      for (const std::string& key : layout.axes.varying()) varying.push_back(key);
    }
    const std::string& usual = group.task->axis;
    const auto& settings = group.task->settings;
    const bool is_setting = std::any_of(settings.begin(), settings.end(),
                                        [&](const auto& one) { return one.name == usual; });
    if (!is_setting) return usual;
    const bool usual_varies = std::find(varying.begin(), varying.end(), usual) != varying.end();
    return usual_varies || varying.empty() ? usual : varying.front();
  }

  Json header() {
    const Ordered& value = suite_.value();
    Json header = {{"name", value["name"]}, {"hash", document_.hash}, {"tasks", Json::object()}};
    for (const char* key : {"title", "source", "published", "notes"}) {
      if (value.contains(key)) header[key] = value[key];
    }
    if (value.contains("published")) {
      const std::filesystem::path beside = std::filesystem::path(document_.name).parent_path();
      header["published"] = (beside / value["published"].get<std::string>()).string();
    }
    if (!choices_.profile.empty()) header["profile"] = choices_.profile;
    for (const Group& group : groups_) {
      header["tasks"][group.label] = {{"task", group.task->name},
                                      {"title", group.said.value("title", group.task->title)},
                                      {"axis", axis_of(group)},
                                      {"figures", figures_of(group)}};
    }
    header["labels"] = Json::array();
    for (const Entry& entry : entries_) header["labels"].push_back(entry.label);
    return header;
  }

  const Document& document_;
  const Catalogue& catalogue_;
  const Choices& choices_;
  ProfiledSuite suite_;
  Problems problems_;
  std::vector<SetFlag> flags_;
  std::vector<Group> groups_;
  std::vector<Entry> entries_;
  std::vector<std::string> figures_;
  std::string device_;
  std::vector<Layout> layouts_;
  std::map<std::string, std::string> labels_;  ///< by id, which labels it is under
};

}  // namespace

Expanded expand(const Document& document, const Catalogue& catalogue, const Choices& choices) {
  return Expansion(document, catalogue, choices).expanded();
}

}  // namespace attnbench::suite
