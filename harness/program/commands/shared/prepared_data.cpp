#include "harness/program/commands/shared/prepared_data.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "core/failure.hpp"
#include "core/option_json.hpp"
#include "core/process/signals.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/apply/out_folder.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/run/plan/pace.hpp"
#include "tasks/data/input.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/lra/png.hpp"
#include "tasks/data/prepare.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
namespace data = tasks::data;
namespace lra = data::lra;

constexpr std::size_t longest_shown = 600;  // letters of a row, on a terminal
constexpr double seconds_between_lines = 10;

/// "200,000".
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

/// Progress on standard error: one line, rewritten, on a terminal; elsewhere a line now and then.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name)
      : name_(std::move(name)), terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const data::PreparationProgress& progress) {
    const bool another = progress.stage != stage_;
    if (another) shown_ = -seconds_between_lines;  // each stage has a clock of its own
    stage_ = progress.stage;
    if (!terminal_) {
      const bool last = progress.done >= progress.total;
      if (!last && !another && progress.seconds - shown_ < seconds_between_lines) return;
      if (!another && progress.done == done_) return;
      shown_ = progress.seconds;
      done_ = progress.done;
      std::cerr << text(progress) << "\n";
      return;
    }
    // Not through std::cerr, which makes control characters visible.
    const std::string line = text::shorten(text(progress), terminal_width(100) - 1);
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    drawn_ = true;
  }

  /// Leaves the line as it is.
  void end() {
    if (drawn_) std::fputc('\n', stderr);
    drawn_ = false;
  }

 private:
  std::string text(const data::PreparationProgress& progress) const {
    const double share = progress.total == 0 ? 1
                                             : static_cast<double>(progress.done) /
                                                   static_cast<double>(progress.total);
    char percent[16];
    std::snprintf(percent, sizeof percent, " (%.0f %%)", 100 * share);
    const bool rows = progress.stage == data::PreparationProgress::Stage::making;
    std::string line = name_ + ": ";
    if (rows) {
      line += grouped(progress.done) + " of " + grouped(progress.total) + " rows";
    } else {
      line += "reading, " + text::human_bytes(static_cast<double>(progress.done)) + " of " +
              text::human_bytes(static_cast<double>(progress.total));
    }
    line += percent;
    if (progress.rate() > 0) {
      line += ", " +
              (rows ? grouped(static_cast<std::uint64_t>(progress.rate())) + " rows"
                    : text::human_bytes(progress.rate())) +
              "/s";
    }
    if (progress.done < progress.total && progress.seconds_left() >= 0) {
      line += ", " + run::human_duration(progress.seconds_left()) + " left";
    }
    return line;
  }

  std::string name_;
  bool terminal_;
  bool drawn_ = false;
  data::PreparationProgress::Stage stage_ = data::PreparationProgress::Stage::making;
  double shown_ = -seconds_between_lines;
  std::uint64_t done_ = 0;  ///< at the line before
};

/// "hold_out=2500 data_seed=0"; versions of generators and readers are not settings of users.
std::string settings_text(const data::DataDescription& description) {
  std::string text;
  for (const auto& [name, value] : description.settings.items()) {
    if (name == "generator" || name == "reader") continue;
    text += (text.empty() ? "" : " ") + name + "=" +
            (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

/// Of texts of the task lm: whether tokens are bytes.
bool holds_bytes(const data::DataDescription& description) {
  return !description.settings.contains("tokens");
}

std::string split_text(const data::Cache& cache) {
  std::string text;
  for (const data::Split split : data::every_split) {
    const data::SplitFacts& facts = cache.facts(split);
    if (facts.rows == 0) continue;
    if (cache.description().classes.size() == 1) {  // one text, cut into rows
      text += "  " + std::string(data::to_string(split)) + ": " + grouped(facts.tokens) +
              (holds_bytes(cache.description()) ? " bytes\n" : " tokens\n");
      continue;
    }
    char majority[16];
    std::snprintf(majority, sizeof majority, "%.1f %%", 100 * facts.majority());
    text += "  " + std::string(data::to_string(split)) + ": " + grouped(facts.rows) + " rows of " +
            (facts.shortest == facts.longest
                 ? grouped(facts.longest)
                 : grouped(facts.shortest) + " to " + grouped(facts.longest)) +
            " tokens, the most frequent class " + majority + "\n";
  }
  return text;
}

std::string document_text(const data::Cache& cache, std::uint64_t row, int tower) {
  std::vector<std::int64_t> ids(cache.length(row, tower));
  cache.copy(row, tower, ids);
  if (cache.description().task == "lra.listops") {
    const std::vector<data::Token> tokens(ids.begin(), ids.end());
    return lra::listops_text(tokens);
  }
  std::string text;
  for (const std::int64_t id : ids) {
    if (holds_bytes(cache.description())) {
      text += static_cast<char>(id - cache.description().first_token);
    } else {
      text += (text.empty() ? "" : " ") + std::to_string(id);
    }
  }
  return text;
}

/// Rows are whole where a file or another program reads them.
void show_texts(const data::Cache& cache, std::span<const std::uint32_t> rows) {
  const std::size_t longest = ::isatty(STDOUT_FILENO) == 1 ? longest_shown : SIZE_MAX;
  for (const std::uint32_t row : rows) {
    const auto label = static_cast<std::size_t>(cache.label(row));
    std::cout << cache.description().classes.at(label) << "\t";
    for (int tower = 0; tower < cache.description().towers; ++tower) {
      std::cout << (tower == 0 ? "" : "\t")
                << text::quotable(document_text(cache, row, tower), longest);
    }
    std::cout << "\n";
  }
}

/// The first rows: images on a sheet beside the cache, others as text.
void show(const data::Cache& cache, int count) {
  std::span<const std::uint32_t> rows;
  for (const data::Split split : data::every_split) {
    if (rows.empty()) rows = cache.index(split);
  }
  rows = rows.first(std::min<std::size_t>(rows.size(), static_cast<std::size_t>(count)));
  if (cache.description().width == 0) return show_texts(cache, rows);
  fs::path sheet = cache.file();
  sheet.replace_extension(".png");
  lra::write_contact_sheet(cache, rows, sheet);
  std::cout << "sheet   " << sheet.string() << " (the lighter a frame, the higher the label)\n";
}

void prepare_and_show(const PrepareRequest& request, const data::ProgressCall& call,
                      ProgressLine& line) {
  const auto& open = request.raw ? request.task->open_raw : request.task->open;
  const auto source = open(request.settings, request.from, call);
  const fs::path file = fs::path(request.out) / data::cache_name(source->description());
  data::PrepareOptions options;
  options.threads = request.threads;
  options.progress = call;
  line.end();
  std::cerr << request.task->name << ": " << grouped(source->rows()) << " rows, at most "
            << text::human_bytes(static_cast<double>(source->cache_bytes())) << ", into "
            << file.string() << "\n";
  const data::PrepareResult made = data::prepare(*source, file, options);
  line.end();
  const data::Cache cache(file);
  if (made.already_there) {
    std::cout << "there already\n";
  } else if (made.resumed_rows > 0) {
    std::cout << "went on from row " << grouped(made.resumed_rows) << "\n";
  }
  std::cout << "file    " << file.string() << "\n"
            << "size    " << grouped(made.rows) << " rows, "
            << text::human_bytes(static_cast<double>(made.bytes)) << "\n"
            << split_text(cache) << "content " << cache.content_hash() << "\n";
  for (const auto& [what, note] : cache.description().notes.items()) {
    std::cout << what << ": " << (note.is_string() ? note.get<std::string>() : note.dump()) << "\n";
  }
  if (request.show > 0) show(cache, request.show);
  if (!request.export_to.empty()) export_prepared(cache, request.export_to, request.form);
  std::cout << "Suites find it with --data " << request.out << " or ATTNBENCH_DATA=" << request.out
            << "\n";
}

}  // namespace

int prepare_data(const PrepareRequest& request) {
  process::Interrupts interrupts;
  ProgressLine line(request.task->name);
  const auto call = [&](const data::PreparationProgress& progress) {
    line.show(progress);
    return interrupts.count() == 0;
  };
  try {
    prepare_and_show(request, call, line);
  } catch (const data::PreparationCancelled&) {
    line.end();
    std::cerr
        << "interrupted: what was prepared is kept, and the same command continues from there\n";
    return static_cast<int>(ExitCode::interrupted);
  } catch (const UsageError& error) {
    line.end();
    throw UsageFailure(error.what());
  }
  return static_cast<int>(ExitCode::done);
}

void expect_form(const data::DataTask& task, const std::string& form) {
  if (form != "published" || task.export_published) return;
  throw UsageFailure("the published form of " + task.name +
                     " is not written: " + task.not_exported + "; pass --as arrays");
}

void export_prepared(const data::Cache& cache, const std::string& to, const std::string& form) {
  const data::DataTask& task = *data::find_data_task(cache.description().task);
  expect_form(task, form);
  apply::OutFolder out(to, apply::Replacing::never, "--export");
  const bool published = form != "arrays" && task.export_published;
  std::vector<data::ExportedFile> files;
  try {
    files = published ? task.export_published(cache, out.staging())
                      : data::write_arrays(cache, out.staging());
  } catch (const UsageError& error) {
    throw UsageFailure(error.what());
  } catch (const fs::filesystem_error& error) {
    throw EnvironmentFailure("cannot write to " + to + ": " + error.code().message());
  }
  out.publish();
  print_exported(to, files);
}

void print_exported(const std::string& to, const std::vector<data::ExportedFile>& files) {
  std::vector<TableRow> rows;
  for (const data::ExportedFile& file : files) {
    rows.push_back({(fs::path(to) / file.file).string(), grouped(file.rows), "rows"});
  }
  print_columns(std::cout, rows);
}

std::shared_ptr<const data::Cache> prepared_cache(const std::string& folder,
                                                  const data::DataTask& task,
                                                  const OptionValues& settings) {
  data::Wanted wanted{task.name};
  for (const auto& [name, value] : settings) wanted.settings[name] = attnbench::to_json(value);
  const auto rows_said = [&](const char* name) {
    const std::uint32_t rows = wanted.settings.value(name, 0u);
    wanted.settings.erase(name);
    return rows;
  };
  wanted.rows = {rows_said("train_examples"), rows_said("validation_examples"),
                 rows_said("test_examples")};
  std::vector<data::PreparedFile> fitting;
  if (!folder.empty()) {
    for (data::PreparedFile& file : data::caches_in(folder)) {
      if (file.cache && data::difference(*file.cache, wanted).empty()) {
        fitting.push_back(std::move(file));
      }
    }
  }
  if (fitting.size() == 1) return fitting.front().cache;
  try {
    if (fitting.empty()) return data::find_cache(folder, wanted);  // says why there is none
  } catch (const UsageError& error) {
    throw UsageFailure(error.what());
  }
  std::string each;
  for (const data::PreparedFile& file : fitting) {
    each += "\n  " + file.file.string() + ": " + settings_text(file.cache->description());
  }
  throw UsageFailure(folder + ": several data of " + task.name +
                     "; say with --set in what they differ:" + each);
}

int list_prepared_data(const std::string& folder) {
  const std::vector<data::PreparedFile> files =
      folder.empty() ? std::vector<data::PreparedFile>{} : data::caches_in(folder);
  std::vector<TableRow> rows{{"task", "rows", "size", "content", "file", "settings"}};
  for (const data::PreparedFile& file : files) {
    if (!file.cache) {
      rows.push_back({"?", "-", "-", "-", file.file.string(), file.fault});
      continue;
    }
    const data::DataDescription& description = file.cache->description();
    rows.push_back({description.task, grouped(file.cache->rows()),
                    text::human_bytes(static_cast<double>(file.cache->bytes())),
                    file.cache->content_hash().substr(0, 12), file.file.string(),
                    settings_text(description) + ", from " + description.source});
  }
  if (rows.size() > 1) {
    print_columns(std::cout, rows, "", terminal_width(whole_lines));
  } else {
    std::cout << (folder.empty() ? "no folder of data is given: --data DIR or ATTNBENCH_DATA"
                                 : "nothing is prepared in " + folder)
              << "\n";
  }
  for (const data::DataTask& task : data::data_tasks()) {
    const bool there = std::any_of(files.begin(), files.end(), [&](const data::PreparedFile& file) {
      return file.cache && file.cache->description().task == task.name;
    });
    if (there) continue;
    data::Wanted wanted{task.name};
    const std::string from = task.wants_from("");
    std::cout << "missing: " << task.name << ", " << task.title << "\n    "
              << data::prepare_command(wanted, folder.empty() ? "DIR" : folder) << "\n";
    if (from.empty()) continue;
    std::cout << "    " << from << ": " << task.how_to_get
              << (data::reads_archives() ? "" : "; unpack what is an archive") << "\n";
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace attnbench::commands
