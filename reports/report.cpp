#include "reports/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/manifest.hpp"
#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "core/result/machines.hpp"
#include "core/text/printable.hpp"
#include "reports/draw.hpp"
#include "reports/figures/kinds.hpp"
#include "reports/figures/provenance.hpp"
#include "reports/figures/verdicts.hpp"
#include "reports/joint.hpp"
#include "reports/page/page.hpp"
#include "reports/render.hpp"
#include "reports/tables/csv.hpp"
#include "reports/tables/tables.hpp"
#include "reports/verdict/input.hpp"
#include "reports/verdict/ranking.hpp"

namespace attnbench::reports {
namespace {

namespace fs = std::filesystem;

constexpr const char* page_name = "index.html";

fs::path folder_of(const fs::path& result) {
  std::error_code ignored;
  if (fs::is_directory(result, ignored)) return result;
  return result.has_parent_path() ? result.parent_path() : fs::path(".");
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw EnvironmentFailure("cannot make the folder " + folder.string() + ": " + error.message() +
                             "; choose another with --out");
  }
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The suite's published numbers; a file that is missing or malformed is a message, no failure.
std::vector<PublishedRow> published_of(const std::string& name, const fs::path& result,
                                       std::vector<std::string>& messages) {
  if (name.empty()) return {};
  for (const fs::path& file : {fs::path(name), folder_of(result) / name}) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    try {
      return read_published(file);
    } catch (const Failure& failure) {
      messages.push_back(std::string("published numbers left out: ") + failure.what());
      return {};
    }
  }
  messages.push_back("published numbers left out: there is no " + name);
  return {};
}

/// What to draw of a task: what the suite says, else what can be drawn.
std::vector<std::string> names_for(const result::SuiteInfo& suite, const std::string& task_label) {
  const auto task = suite.tasks.find(task_label);
  const bool listed =
      task != suite.tasks.end() && task->second.figures && !task->second.figures->empty();
  return listed ? *task->second.figures : figure_names();
}

/// All panels of a task, where `panel` is the first of them; none otherwise.
std::vector<const Panel*> beside(const std::vector<Panel>& panels, const Panel& panel) {
  std::vector<const Panel*> all;
  for (const Panel& other : panels) {
    if (other.task_label == panel.task_label) all.push_back(&other);
  }
  return all.front() == &panel ? all : std::vector<const Panel*>{};
}

/// What is known of the axes of the paper's figure that the result's suite follows.
PaperAxes axes_of(const result::Result& result, const std::map<std::string, PaperAxes>& known) {
  const Json* const figure = find_value(result.suite.further, "figure");
  if (figure == nullptr || !figure->is_string()) return {};
  const auto found = known.find(figure->get<std::string>());
  return found == known.end() ? PaperAxes{} : found->second;
}

std::vector<Figure> figures_of(const result::Result& result,
                               const std::map<std::string, PaperAxes>& axes,
                               const std::vector<PublishedRow>& published,
                               std::vector<std::string>& messages) {
  std::vector<Panel> panels = reports::panels(result);
  for (Panel& panel : panels) panel.paper = axes_of(result, axes);
  const Palette palette(panels);
  std::vector<const Panel*> all;
  for (const Panel& panel : panels) all.push_back(&panel);
  std::vector<Figure> figures;
  for (const Panel& panel : panels) {
    for (const std::string& name : names_for(result.suite, panel.task_label)) {
      try {
        for (Figure& figure : is_drawn_across(name) ? draw_across(name, beside(panels, panel), all,
                                                                  palette, published)
                                                    : draw(name, panel, palette, published)) {
          figures.push_back(std::move(figure));
        }
      } catch (const UsageFailure& failure) {
        const std::string message = panel.task_label + ": " + failure.what();
        if (std::find(messages.begin(), messages.end(), message) == messages.end()) {
          messages.push_back(message);
        }
      }
    }
  }
  tell_titles_apart(figures);
  for (Figure& figure : figures) add_provenance(figure, result);
  return figures;
}

/// `name` where a file can be called so with any ending, else its beginning and its hash.
std::string short_name(const std::string& name) {
  constexpr std::size_t longest = 120;
  constexpr std::size_t digits = 12;
  if (name.size() <= longest) return name;
  return name.substr(0, longest - digits - 1) + "_" + hash_text(name).substr(0, digits);
}

/// Names that no other figure of the page has; a suite reported twice gets numbers.
void make_unique(std::vector<Figure>& figures, std::set<std::string>& taken,
                 const std::string& prefix) {
  for (Figure& figure : figures) {
    const std::string wanted = short_name(prefix + figure.name);
    figure.name = wanted;
    for (int i = 2; !taken.insert(figure.name).second; ++i) {
      figure.name = wanted + "_" + std::to_string(i);
    }
  }
}

void write_tables(const fs::path& folder, const std::string& name, const Section& section) {
  const result::Result& result = section.result;
  write_atomically(folder / (name + ".md"),
                   verdicts_markdown(section.verdicts) + markdown_tables(result));
  write_atomically(folder / (name + ".tex"), latex_tables(result));
  write_atomically(folder / (name + ".csv"), csv_table(result));
}

/// A name that is safe as part of a file's.
std::string safe(std::string name) {
  for (char& letter : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) || letter == '-';
    if (!plain) letter = '_';
  }
  return name.empty() ? "result" : name;
}

/// A folder for files that are moved to `out` once they are all there.
class Staging {
 public:
  explicit Staging(const fs::path& out) : path_(out / (".report-" + std::to_string(getpid()))) {
    make_folder(path_ / "figures");
    make_folder(path_ / "tables");
  }
  ~Staging() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A result, or what each machine measured of it. One control character would cost a picture.
std::vector<result::Result> parts_of(const fs::path& path) {
  return result::by_machine(text::printable_json(result::read_result(path)).get<result::Result>());
}

/// Whether a figure shows what a ranking's headline says.
bool shows(const Figure& figure, const verdict::Ranking& ranking) {
  if (figure.group != ranking.task) return false;
  if (ranking.by_quality) {
    static const std::set<std::string> shown{"accuracy", "bits_per_byte"};
    return shown.contains(figure.what) || figure.what.ends_with("_over_state");
  }
  return figure.what == (ranking.what == "step" ? "step_time" : "time");
}

/// Puts the figure that shows the verdict's answer first, with the answer as its title.
void lead_with_answer(std::vector<Figure>& figures, const verdict::Verdict& verdict) {
  if (verdict.rankings.empty()) return;
  const verdict::Ranking& ranking = verdict.rankings.front();
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const Figure& figure) { return shows(figure, ranking); });
  if (found == figures.end()) return;
  std::rotate(figures.begin(), found, std::next(found));
  lead_with(figures.front(), ranking.headline);
}

Section section_of(const fs::path& path, result::Result result, const ReportOptions& options,
                   std::vector<std::string>& messages) {
  Section section;
  section.source = path.string();
  section.result = std::move(result);
  section.verdicts = verdicts_beside(path, messages);
  section.verdict = verdict::verdict_of(section.result);
  section.claims = claims::evaluate_all(options.claims, section.result);
  const auto published = published_of(section.result.suite.published, path, messages);
  if (section.verdicts) {
    if (auto forest = forest_figure(*section.verdicts)) {
      add_provenance(*forest, section.result);
      section.figures.push_back(std::move(*forest));
      section.verdict_figures = 1;
    }
  }
  for (Figure& figure : figures_of(section.result, options.axes, published, messages)) {
    section.figures.push_back(std::move(figure));
  }
  if (!section.verdicts) lead_with_answer(section.figures, section.verdict);
  return section;
}

std::vector<Section> read_sections(const std::vector<fs::path>& results,
                                   const ReportOptions& options, Report& report) {
  std::vector<Section> sections;
  std::set<std::string> names_taken;
  for (const fs::path& path : results) {
    try {
      for (result::Result& part : parts_of(path)) {
        Section section = section_of(path, std::move(part), options, report.messages);
        make_unique(section.figures, names_taken,
                    results.size() == 1 ? "" : safe(section.result.suite.name) + "_");
        sections.push_back(std::move(section));
      }
    } catch (const SchemaError& error) {
      throw UsageFailure(path.string() + ": " + error.what());
    } catch (const Json::exception& error) {
      refuse_unreadable(path, error);
    }
  }
  return sections;
}

/// The section before those of results that share cells: these side by side, with verdicts where
/// they are `of_two` files.
std::optional<Section> joint_section(const std::vector<Section>& sections,
                                     const ReportOptions& options, bool of_two) {
  if (sections.size() < 2) return std::nullopt;
  std::vector<result::Result> results;
  std::string sources;
  for (const Section& section : sections) {
    results.push_back(section.result);
    sources += (sources.empty() ? "" : ", ") + section.source;
  }
  const std::vector<std::string> names = names_apart(results);
  const std::vector<std::string> labels = brief_names(results);
  Section joint;
  joint.joint = true;
  joint.source = sources;
  joint.result = joined(results, labels);
  if (joint.result.cells.empty()) return std::nullopt;
  if (options.compared && of_two) {
    joint.verdicts = options.compared(results[0], results[1]);
    joint.verdicts->turns.base = names[0];
    joint.verdicts->turns.changed = names[1];
    if (auto forest = forest_figure(*joint.verdicts)) {
      add_provenance(*forest, joint.result);
      joint.figures.push_back(std::move(*forest));
      joint.verdict_figures = 1;
    }
  }
  for (Figure& figure : joint_figures(joint.result, labels)) {
    joint.figures.push_back(std::move(figure));
  }
  return joint;
}

/// Names of the tables' files, without their endings; none for what several results share, whose
/// numbers stand in their own.
std::vector<std::string> table_names(const std::vector<Section>& sections) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const Section& section : sections) {
    if (section.joint) {
      names.emplace_back();
      continue;
    }
    std::string name = "result";
    if (sections.size() > 1) {
      name = short_name(safe(section.result.suite.name));
    }
    while (!taken.insert(name).second) name += "_2";
    names.push_back(name);
  }
  return names;
}

/// All files that a report may write.
std::vector<std::string> files_of(const std::vector<Section>& sections,
                                  const ReportOptions& options) {
  std::vector<std::string> files{"index.html"};
  for (const std::string& name : table_names(sections)) {
    if (name.empty()) continue;
    for (const char* ending : {".md", ".tex", ".csv"}) {
      files.push_back("tables/" + name + ending);
    }
    if (!options.render) continue;
    files.push_back("tables/" + name + ".parquet");
  }
  for (const Section& section : sections) {
    for (const Figure& figure : section.figures) {
      files.push_back("figures/" + figure.name + ".vl.json");
      if (!options.render) continue;
      for (const std::string& format : options.formats) {
        files.push_back("figures/" + figure.name + "." + format);
      }
    }
  }
  return files;
}

/// Links to what the page stands beside: the tables, and the result where it is in the same folder.
void add_links(Section& section, const std::string& name, const fs::path& out) {
  if (name.empty()) return;
  std::error_code ignored;
  if (fs::equivalent(folder_of(section.source), out, ignored)) {
    section.links.emplace_back("result.json", "result.json");
  }
  section.links.emplace_back(name + ".csv", "tables/" + name + ".csv");
}

void write_files(std::vector<Section>& sections, const ReportOptions& options,
                 const fs::path& folder, Report& report) {
  const std::vector<std::string> names = table_names(sections);
  bool any = false;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    try {
      if (!names[i].empty()) write_tables(folder / "tables", names[i], sections[i]);
    } catch (const Json::exception& error) {
      refuse_unreadable(sections[i].source, error);
    }
    for (const Figure& figure : sections[i].figures) {
      write_atomically(folder / "figures" / (figure.name + ".vl.json"), figure.spec.dump(1) + "\n");
      any = true;
    }
  }
  Rendered rendered;
  if (options.render && any) rendered = render(folder / "figures", options.formats);
  if (!rendered.message.empty()) report.messages.push_back(rendered.message);
  for (Section& section : sections) {
    for (const Figure& figure : section.figures) {
      section.svg.push_back(content(folder / "figures" / (figure.name + ".svg")));
    }
  }
  try {
    write_atomically(folder / page_name, page(sections, rendered.bundle, rendered.message));
  } catch (const Json::exception& error) {
    refuse_unreadable(sections.front().source, error);
  }
}

}  // namespace

Report write_report(const std::vector<fs::path>& results, const ReportOptions& options) {
  const fs::path out = !options.out.empty()  ? options.out
                       : results.size() == 1 ? folder_of(results.front())
                                             : fs::path("report");
  Report report;
  std::vector<Section> sections = read_sections(results, options, report);
  if (auto joint = joint_section(sections, options, results.size() == 2 && sections.size() == 2)) {
    report.compared = joint->verdicts;
    std::set<std::string> names;
    make_unique(joint->figures, names, "");
    sections.insert(sections.begin(), std::move(*joint));
  } else if (results.size() > 1) {
    report.messages.push_back("nothing is drawn side by side: no two of the results share a cell");
  }
  Manifest manifest(out, "report");
  if (!options.force) manifest.expect_ours(files_of(sections, options));
  make_folder(out);
  const Staging staging(out);
  const std::vector<std::string> names = table_names(sections);
  for (std::size_t i = 0; i < sections.size(); ++i) add_links(sections[i], names[i], out);
  write_files(sections, options, staging.path(), report);
  publish(staging.path(), out, manifest, page_name);
  for (const Section& section : sections) {
    if (!section.joint) report.verdicts.push_back(section.verdict);
    for (const Figure& figure : section.figures) {
      report.figures.push_back(out / "figures" / (figure.name + ".vl.json"));
    }
  }
  report.page = out / page_name;
  return report;
}

std::vector<verdict::Verdict> verdicts_of(const std::vector<fs::path>& results) {
  std::vector<verdict::Verdict> verdicts;
  for (const fs::path& path : results) {
    try {
      for (const result::Result& part : parts_of(path)) {
        verdicts.push_back(verdict::verdict_of(part));
      }
    } catch (const SchemaError& error) {
      throw UsageFailure(path.string() + ": " + error.what());
    } catch (const Json::exception& error) {
      refuse_unreadable(path, error);
    }
  }
  return verdicts;
}

std::string csv_of(const std::vector<fs::path>& results) {
  std::string text;
  std::string last_header;
  for (const fs::path& path : results) {
    try {
      for (const result::Result& part : parts_of(path)) {
        const std::string table = csv_table(part);
        const std::size_t body = table.find('\n') + 1;
        const std::string header = table.substr(0, body);
        text += header == last_header ? table.substr(body) : table;
        last_header = header;
      }
    } catch (const Json::exception& error) {
      refuse_unreadable(path, error);
    }
  }
  return text;
}

}  // namespace attnbench::reports
