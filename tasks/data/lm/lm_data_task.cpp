#include "tasks/data/lm/lm_data_task.hpp"

#include "tasks/data/lm/text_source.hpp"

namespace attnbench::tasks::data::lm {

void expect_vocabulary(const Options& settings) {
  const std::int64_t vocabulary = settings.integer("vocabulary");
  if (settings.text("tokens") != "bytes" || vocabulary == 256) return;
  throw UsageError("vocabulary is " + std::to_string(vocabulary) +
                   ", and tokens are bytes, of which there are 256: leave it out, or set tokens");
}

/// The one of the task lm.
std::vector<DataTask> all_data_tasks() {
  DataTask task;
  task.name = "lm";
  task.title = "The next byte or token of a text";
  task.vocabulary = 256;
  task.how_to_get =
      "any text, or ids of its tokens: a file (gzip and dictzip are unpacked), an archive or a "
      "folder of files; English of 40 MB is in Debian's package dict-gcide, as "
      "/usr/share/dictd/gcide.dict.dz (its licence is "
      "the GPL)";
  task.settings = {
      Option::text("split", {"place", "enwik8", "folders", "files"},
                   "place: by shares, in the order of the text; enwik8: 90, 5 and 5 million bytes; "
                   "folders: files in train, validation and test, as PG-19; files: train, val, "
                   "valid, validation or test in a file's name, as train.bin, wiki.valid.tokens"),
      Option::text("tokens", {"bytes", "uint16", "uint32", "llm.c", "words"},
                   "what files hold: bytes; ids, little-endian, as nanoGPT writes them; the same "
                   "after llm.c's header; words between white space, with <eos> after each line"),
      Option::integer("vocabulary", 256,
                      "ids of tokens are below it; of words their number, <eos> and <unk> included",
                      1, most_tokens),
      Option::number("validation_share", 0.05, "of the tokens, which follow those of training", 0,
                     1),
      Option::number("test_share", 0.05, "of the tokens, the last ones", 0, 1),
      {"text", OptionType::text, std::string(),
       "the text's name, where several are prepared; empty = that of its file, or whichever is "
       "there"}};
  task.decisive = [](const Options& settings) {
    std::vector<std::string> names{"split", "tokens", "vocabulary"};
    if (settings.text("split") == "place") {
      names.insert(names.end(), {"validation_share", "test_share"});
    }
    if (!settings.text("text").empty()) names.emplace_back("text");
    return names;
  };
  task.wants_from = [](const std::string&) { return "FILE"; };
  task.expected = [](const Options& settings) -> std::optional<ExpectedRows> {
    if (settings.text("split") != "enwik8") return std::nullopt;
    return ExpectedRows{{90'000'000, 5'000'000, 5'000'000}, 0, "enwik8, Hutter 2006"};
  };
  const auto opening = [](bool raw) {
    return [raw](const Options& settings, const std::filesystem::path& from,
                 const ProgressCall& progress) {
      expect_from(*find_data_task("lm"), "", from);
      expect_vocabulary(settings);
      TextFileRules rules;
      rules.encoding = encoding_from(settings.text("tokens"));
      rules.vocabulary = settings.integer("vocabulary");
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
