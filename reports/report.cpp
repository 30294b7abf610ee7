#include "reports/report.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "harness/errors.hpp"
#include "harness/result/document.hpp"
#include "harness/result/file.hpp"
#include "reports/figure.hpp"
#include "reports/page.hpp"
#include "reports/render.hpp"
#include "reports/tables.hpp"
#include "reports/verdicts.hpp"

namespace attnbench::reports {
namespace {

namespace fs = std::filesystem;

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

/// Pictures and specifications of an earlier report, whose names need not come up again.
void remove_figures(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const std::size_t dot = name.find('.');
    static const std::set<std::string> ours{".vl.json", ".svg", ".png", ".pdf"};
    if (dot != std::string::npos && ours.contains(name.substr(dot))) {
      fs::remove(entry.path(), ignored);
    }
  }
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The suite's published numbers; a file that is missing or malformed is a message, no failure.
std::vector<PublishedRow> published_of(const Json& suite, const fs::path& result,
                                       std::vector<std::string>& messages) {
  const std::string name = suite.value("published", "");
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
std::vector<std::string> names_for(const Json& suite, const std::string& task_label) {
  const Json tasks = suite.value("tasks", Json::object());
  if (!tasks.contains(task_label)) return figure_names();
  const Json listed = tasks[task_label].value("figures", Json::array());
  std::vector<std::string> names;
  for (const Json& name : listed) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names.empty() ? figure_names() : names;
}

/// All panels of a task, where `panel` is the first of them; none otherwise.
std::vector<const result::Panel*> beside(const std::vector<result::Panel>& panels,
                                         const result::Panel& panel) {
  std::vector<const result::Panel*> all;
  for (const result::Panel& other : panels) {
    if (other.task_label == panel.task_label) all.push_back(&other);
  }
  return all.front() == &panel ? all : std::vector<const result::Panel*>{};
}

std::vector<Figure> figures_of(const Json& result, const std::vector<PublishedRow>& published,
                               std::vector<std::string>& messages) {
  const std::vector<result::Panel> panels = result::panels(result);
  std::vector<std::string> order;
  for (const result::Panel& panel : panels) {
    for (const std::string& series : panel.series) {
      if (std::find(order.begin(), order.end(), series) == order.end()) order.push_back(series);
    }
  }
  std::vector<const result::Panel*> all;
  for (const result::Panel& panel : panels) all.push_back(&panel);
  std::vector<Figure> figures;
  for (const result::Panel& panel : panels) {
    for (const std::string& name : names_for(result["attnbench"]["suite"], panel.task_label)) {
      try {
        for (Figure& figure : is_drawn_across(name)
                                  ? draw_across(name, beside(panels, panel), all, order, published)
                                  : draw(name, panel, order, published)) {
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
  return figures;
}

/// Names that no other figure of the page has; a suite reported twice gets numbers.
void make_unique(std::vector<Figure>& figures, std::set<std::string>& taken,
                 const std::string& prefix) {
  for (Figure& figure : figures) {
    const std::string wanted = prefix + figure.name;
    figure.name = wanted;
    for (int i = 2; !taken.insert(figure.name).second; ++i) {
      figure.name = wanted + "_" + std::to_string(i);
    }
  }
}

void write_tables(const fs::path& folder, const std::string& name, const Section& section) {
  const Json& result = section.result;
  result::write_atomically(folder / (name + ".md"),
                           verdicts_markdown(section.verdicts) + markdown_tables(result));
  result::write_atomically(folder / (name + ".tex"), latex_tables(result));
  result::write_atomically(folder / (name + ".csv"), csv_table(result));
}

/// A name that is safe as part of a file's.
std::string safe(std::string name) {
  for (char& letter : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) || letter == '-';
    if (!plain) letter = '_';
  }
  return name.empty() ? "result" : name;
}

}  // namespace

Report write_report(const std::vector<fs::path>& results, const ReportOptions& options) {
  const bool one = results.size() == 1;
  const fs::path out = !options.out.empty() ? options.out
                       : one                ? folder_of(results.front())
                                            : fs::path("report");
  Report report;
  std::vector<Section> sections;
  std::set<std::string> figure_names_taken;
  std::set<std::string> table_names_taken;
  for (const fs::path& path : results) {
    Section section;
    section.source = path.string();
    section.result = result::read_result(path);
    section.verdicts = verdicts_beside(path, report.messages);
    const Json& suite = section.result["attnbench"]["suite"];
    const auto published = published_of(suite, path, report.messages);
    section.figures = figures_of(section.result, published, report.messages);
    const std::string suite_name = safe(suite.value("name", ""));
    make_unique(section.figures, figure_names_taken, one ? "" : suite_name + "_");
    sections.push_back(std::move(section));
  }
  make_folder(out / "figures");
  make_folder(out / "tables");
  remove_figures(out / "figures");
  for (const Section& section : sections) {
    std::string name =
        one ? "result" : safe(section.result["attnbench"]["suite"].value("name", ""));
    while (!table_names_taken.insert(name).second) name += "_2";
    write_tables(out / "tables", name, section);
    for (const Figure& figure : section.figures) {
      const fs::path file = out / "figures" / (figure.name + ".vl.json");
      result::write_atomically(file, figure.spec.dump(1) + "\n");
      report.figures.push_back(file);
    }
  }
  Rendered rendered;
  if (options.render && !report.figures.empty()) {
    rendered = render(out / "figures", options.formats);
    if (!rendered.message.empty()) report.messages.push_back(rendered.message);
  }
  for (Section& section : sections) {
    for (const Figure& figure : section.figures) {
      section.svg.push_back(content(out / "figures" / (figure.name + ".svg")));
    }
  }
  report.page = out / "index.html";
  result::write_atomically(report.page, page(sections, rendered.bundle, rendered.message));
  return report;
}

}  // namespace attnbench::reports
