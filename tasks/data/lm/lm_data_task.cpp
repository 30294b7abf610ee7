#include "tasks/data/lm/lm_data_task.hpp"

#include "tasks/data/lm/text_source.hpp"

namespace attnbench::tasks::data::lm {

/// The one of the task lm.
std::vector<DataTask> all_data_tasks() {
  DataTask task;
  task.name = "lm";
  task.title = "The next byte of a text";
  task.vocabulary = 256;
  task.how_to_get =
      "any text: a file (gzip and dictzip are unpacked), an archive or a folder of files; English "
      "of "
      "40 MB is in Debian's package dict-gcide, as /usr/share/dictd/gcide.dict.dz (its licence is "
      "the GPL)";
  task.settings = {
      Option::text("split", {"place", "enwik8", "folders"},
                   "place: by shares, in the order of the text; enwik8: 90, 5 and 5 million bytes; "
                   "folders: files in train, validation and test, as PG-19"),
      Option::number("validation_share", 0.05, "of the bytes, which follow those of training", 0,
                     1),
      Option::number("test_share", 0.05, "of the bytes, the last ones", 0, 1),
      {"text", OptionType::text, std::string(),
       "the text's name, where several are prepared; empty = that of its file, or whichever is "
       "there"}};
  task.decisive = [](const Options& settings) {
    std::vector<std::string> names{"split"};
    if (settings.text("split") == "place") {
      names.insert(names.end(), {"validation_share", "test_share"});
    }
    if (!settings.text("text").empty()) names.emplace_back("text");
    return names;
  };
  task.wants_from = [](const std::string&) { return "FILE"; };
  const auto opening = [](bool raw) {
    return [raw](const Options& settings, const std::filesystem::path& from,
                 const ProgressCall& progress) {
      expect_from(*find_data_task("lm"), "", from);
      TextFileRules rules;
      rules.division = division_from(settings.text("split"));
      rules.validation_share = settings.number("validation_share");
      rules.test_share = settings.number("test_share");
      rules.name = settings.text("text");
      rules.raw = raw;
      return read_text(from, rules, progress);
    };
  };
  task.open = opening(false);
  task.open_raw = opening(true);
  task.export_published = write_whole_texts;
  return {std::move(task)};
}

}  // namespace attnbench::tasks::data::lm
