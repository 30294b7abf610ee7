// Files of ids and of words, as other programs write them.
#include "tasks/data/lm/token_files.hpp"

#include <cstring>

#include "tasks/data/data_task.hpp"
#include "tasks/data/lm/text.hpp"
#include "tasks/data/lm/text_source.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data::lm;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::uint32_t>;

/// Ids of `Stored`, little-endian, one after the other.
template <class Stored>
std::string ids_as(const Ids& ids) {
  std::string bytes;
  for (const std::uint32_t id : ids) {
    const auto stored = static_cast<Stored>(id);
    bytes.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
  return bytes;
}

/// The header of llm.c: 256 int32, zeros but for these.
std::string header(std::uint32_t magic, std::uint32_t version, std::uint32_t count) {
  Ids numbers(256, 0);
  numbers[0] = magic;
  numbers[1] = version;
  numbers[2] = count;
  return ids_as<std::uint32_t>(numbers);
}

/// Ids below `vocabulary` that have no period, the greatest among them.
Ids some_ids(std::size_t count, std::uint32_t vocabulary, std::uint32_t seed = 7) {
  Ids ids{vocabulary - 1};
  while (ids.size() < count) {
    seed = seed * 1664525u + 1013904223u;
    ids.push_back((seed >> 8) % vocabulary);
  }
  return ids;
}

TextFileRules rules_of(Encoding encoding, std::int64_t vocabulary,
                       Division division = Division::files) {
  TextFileRules rules;
  rules.encoding = encoding;
  rules.vocabulary = vocabulary;
  rules.division = division;
  return rules;
}

struct Prepared {
  TemporaryFolder folder;
  std::shared_ptr<const Cache> cache;

  Prepared(const fs::path& from, const TextFileRules& rules) {
    const auto source = read_text(from, rules);
    prepare(*source, folder / "text.prepared");
    cache = std::make_shared<Cache>(folder / "text.prepared");
  }
  Ids ids(Split split) const {
    const Text text(cache);
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(text.tokens(split)));
    text.copy(split, 0, tokens);
    return {tokens.begin(), tokens.end()};
  }
};

std::string ids_refused(const fs::path& from, const TextFileRules& rules) {
  return refusal([&] { read_text(from, rules); });
}

}  // namespace

TEST_CASE("nanoGPT's train.bin and val.bin are the splits, and val the test, too", "[lm]") {
  const TemporaryFolder folder;
  const Ids train = some_ids(10'000, 50'257), val = some_ids(5'000, 50'257, 8);
  write_files(folder / "owt", {{"train.bin", ids_as<std::uint16_t>(train)},
                               {"val.bin", ids_as<std::uint16_t>(val)},
                               {"meta.pkl", "passed over"},
                               {"readme.md", "passed over"}});
  const Prepared prepared(folder / "owt", rules_of(Encoding::uint16, 50'257));
  CHECK(prepared.ids(Split::train) == train);
  CHECK(prepared.ids(Split::validation) == val);
  CHECK(prepared.ids(Split::test) == val);
  const DataDescription& description = prepared.cache->description();
  CHECK(description.vocabulary == 50'257);
  CHECK(description.notes["files"] == 2);
  CHECK(says(description.notes["test"], {"tokens of validation"}));
  CHECK_FALSE(Text(prepared.cache).bytes_per_token(Split::test).has_value());
  // A file of the test is the test.
  write_file(folder / "owt/test.bin", ids_as<std::uint16_t>({1, 2, 3}));
  CHECK(Prepared(folder / "owt", rules_of(Encoding::uint16, 50'257)).ids(Split::test) ==
        Ids{1, 2, 3});
}

TEST_CASE("ids of uint32 reach a vocabulary of 2^17", "[lm]") {
  const TemporaryFolder folder;
  const Ids ids = some_ids(9'000, 1 << 17);
  write_file(folder / "all.bin", ids_as<std::uint32_t>(ids));
  const Prepared prepared(folder / "all.bin", rules_of(Encoding::uint32, 1 << 17, Division::place));
  Ids read;
  for (const Split split : every_split) {
    const Ids part = prepared.ids(split);
    read.insert(read.end(), part.begin(), part.end());
  }
  CHECK(read == ids);
  CHECK(prepared.ids(Split::test).size() == 450);
}

TEST_CASE("llm.c's shards are read behind their headers, of both widths", "[lm]") {
  const TemporaryFolder folder;
  const Ids ids = some_ids(6'000, 50'257);
  const Ids first(ids.begin(), ids.begin() + 2'500), second(ids.begin() + 2'500, ids.end());
  write_files(
      folder / "gpt2",
      {{"fineweb_train_000001.bin", header(20240520, 1, 2'500) + ids_as<std::uint16_t>(first)},
       {"fineweb_train_000002.bin", header(20240520, 1, 3'500) + ids_as<std::uint16_t>(second)},
       {"fineweb_val_000000.bin", header(20240520, 1, 3) + ids_as<std::uint16_t>({7, 8, 9})}});
  const Prepared gpt2(folder / "gpt2", rules_of(Encoding::llm_c, 50'257));
  CHECK(gpt2.ids(Split::train) == ids);
  CHECK(gpt2.ids(Split::test) == Ids{7, 8, 9});
  const Ids wide = some_ids(3'000, 128'256);
  write_files(
      folder / "llama3",
      {{"tiny_shakespeare_train.bin", header(20240801, 7, 3'000) + ids_as<std::uint32_t>(wide)},
       {"tiny_shakespeare_val.bin", header(20240801, 7, 1) + ids_as<std::uint32_t>({128'255})}});
  const Prepared llama(folder / "llama3", rules_of(Encoding::llm_c, 128'256));
  CHECK(llama.ids(Split::train) == wide);
  CHECK(llama.ids(Split::validation) == Ids{128'255});
}

TEST_CASE("words of published splits have ids by first occurrence, <eos> after each line", "[lm]") {
  const TemporaryFolder folder;
  const std::string test = " = A <unk> = \n\n a cat \n";
  write_files(folder / "wikitext-2", {{"wiki.test.tokens", test},
                                      {"wiki.train.tokens", "a cat\tsat\r\nA cat"},
                                      {"wiki.valid.tokens", "sat sat\n"}});
  // In the order of files: = A <unk> <eos> a cat sat.
  const Prepared prepared(folder / "wikitext-2", rules_of(Encoding::words, 7));
  CHECK(prepared.ids(Split::test) == Ids{0, 1, 2, 0, 3, 3, 4, 5, 3});
  CHECK(prepared.ids(Split::train) == Ids{4, 5, 6, 3, 1, 5, 3});
  CHECK(prepared.ids(Split::validation) == Ids{6, 6, 3});
  CHECK(Text(prepared.cache).bytes_per_token(Split::test) == Approx(test.size() / 9.0));
  CHECK(says(ids_refused(folder / "wikitext-2", rules_of(Encoding::words, 6)),
             {"7 different words", "<eos> among them", "vocabulary is 6"}));
  // The same files as bytes.
  const Prepared bytes(folder / "wikitext-2", rules_of(Encoding::bytes, 256));
  CHECK(bytes.ids(Split::test).size() == test.size());
  CHECK(bytes.ids(Split::test)[1] == '=');
  CHECK(Text(bytes.cache).bytes_per_token(Split::test) == 1);
}

TEST_CASE("files of ids that are not what was said are refused with the remedy", "[lm]") {
  const TemporaryFolder folder;
  const auto by_place = [](Encoding encoding, std::int64_t vocabulary = 50'257) {
    return rules_of(encoding, vocabulary, Division::place);
  };
  const Ids ids = some_ids(1'000, 50'257);
  const std::string narrow = ids_as<std::uint16_t>(ids), wide = ids_as<std::uint32_t>(ids);
  write_file(folder / "odd", narrow + "x");
  CHECK(says(ids_refused(folder / "odd", by_place(Encoding::uint16)),
             {"ends within an id", "2 bytes each", "1 are left over"}));
  write_file(folder / "narrow", narrow);
  CHECK(ids_refused(folder / "narrow", by_place(Encoding::uint16)).empty());
  CHECK(says(ids_refused(folder / "narrow", by_place(Encoding::uint16, 50'256)),
             {"the id 50256 at place 0", "not below the vocabulary of 50256"}));
  CHECK(says(ids_refused(folder / "narrow", by_place(Encoding::uint32)),
             {"is not below the vocabulary", "tokens to the width"}));
  write_file(folder / "wide", wide);
  CHECK(ids_refused(folder / "wide", by_place(Encoding::uint32)).empty());
  CHECK(says(ids_refused(folder / "wide", by_place(Encoding::uint16)),
             {"every second uint16", "set tokens to uint32"}));
  write_file(folder / "llama", ids_as<std::uint32_t>(some_ids(1'000, 1 << 17)));
  CHECK(says(ids_refused(folder / "llama", by_place(Encoding::uint16, 1 << 16)),
             {"every second uint16", "set tokens to uint32"}));
  // Two ids by turns are no uint32.
  Ids turns;
  for (int i = 0; i < 64; ++i) turns.push_back(i % 2 == 0 ? 0 : 1);
  write_file(folder / "turns", ids_as<std::uint16_t>(turns));
  CHECK(ids_refused(folder / "turns", by_place(Encoding::uint16, 2)).empty());
}

TEST_CASE("packed files are no ids, whatever their size", "[lm]") {
  const TemporaryFolder folder;
  const Ids train = some_ids(4'000, 50'257), val = some_ids(1'000, 50'257, 8);
  const std::string ids = ids_as<std::uint16_t>(train);
  write_files(folder / "zipped",
              {{"train.bin.gz", gzipped(ids)}, {"val.bin", ids_as<std::uint16_t>(val)}});
  const TextFileRules rules = rules_of(Encoding::uint16, 1 << 16);
  CHECK(Prepared(folder / "zipped", rules).ids(Split::train) == train);
  for (const char* ending : {".zst", ".xz", ".ZIP", ".tgz"}) {
    INFO(ending);
    const fs::path packed = folder / ("packed" + std::string(ending));
    write_files(packed, {{"train.bin" + std::string(ending), ids}, {"val.bin", ids}});
    CHECK(says(ids_refused(packed, rules), {"is named .", "unpack it", "--raw"}));
    TextFileRules raw = rules;
    raw.raw = true;
    CHECK(Prepared(packed, raw).ids(Split::train) == train);
  }
  write_tar(folder / "shards.tar",
            {{"train.bin.gz", gzipped(ids) + "x", ""}, {"val.bin", ids, ""}});
  CHECK(says(ids_refused(folder / "shards.tar", rules), {"train.bin.gz", "is named .gz"}));
  // Ids may begin as anything.
  write_file(folder / "bare/PK",
             ids_as<std::uint16_t>({'P' + ('K' << 8), 3 + (4 << 8), 1, 2}) + ids);
  CHECK(ids_refused(folder / "bare", rules_of(Encoding::uint16, 50'257, Division::place)).empty());
}

TEST_CASE("a split by file names is one form, whose files follow each other", "[lm]") {
  const TemporaryFolder folder;
  const TextFileRules words = rules_of(Encoding::words, 100);
  const auto said_of = [&](const std::map<std::string, std::string>& files) {
    static int number = 0;
    const fs::path one = folder / std::to_string(++number);
    write_files(one, files);
    return ids_refused(one, words);
  };
  CHECK(
      says(said_of({{"wiki.train.raw", "a"}, {"wiki.train.tokens", "a"}, {"wiki.valid.raw", "b"}}),
           {"member wiki.train.tokens", "holds train in another form than", "than wiki.train.raw",
            "leave one of both"}));
  CHECK(says(said_of({{"raw/wiki.test.raw", "a"}, {"tokens/wiki.test.tokens", "a"}}),
             {"holds test in another form than", "raw/wiki.test.raw"}));
  CHECK(says(said_of({{"train.txt", "a"}, {"train.txt.gz", gzipped("a")}, {"val.txt", "b"}}),
             {"is there twice, packed and unpacked"}));
  CHECK(says(said_of({{"a_train.txt", "a"}, {"b_val.txt", "b"}, {"c_train.txt", "c"}}),
             {"files of train stand apart", "rename them", "train_1"}));
  CHECK(said_of({{"de/train.txt", "a"}, {"en/train.txt", "c"}, {"val.1", "b"}, {"val.2", "b"}}) ==
        "");
}

TEST_CASE("headers that llm.c does not write are refused", "[lm]") {
  const TemporaryFolder folder;
  const TextFileRules rules = rules_of(Encoding::llm_c, 100, Division::place);
  const std::string ids = ids_as<std::uint16_t>(some_ids(100, 100));
  write_file(folder / "magic", header(20240522, 1, 100) + ids);  // its file of evaluations
  CHECK(
      says(ids_refused(folder / "magic", rules), {"20240520 or 20240801", "set tokens to uint16"}));
  write_file(folder / "bare", ids);
  CHECK(says(ids_refused(folder / "bare", rules), {"does not begin with a header of llm.c"}));
  write_file(folder / "version", header(20240520, 2, 100) + ids);
  CHECK(says(ids_refused(folder / "version", rules), {"is of version 2", "expected 1"}));
  for (const std::uint32_t count : {99u, 101u}) {
    write_file(folder / "count", header(20240520, 1, count) + ids);
    CHECK(says(ids_refused(folder / "count", rules),
               {"header says " + std::to_string(count), "it holds 100"}));
  }
  write_file(folder / "headed", header(20240520, 1, 100) + ids);
  CHECK(ids_refused(folder / "headed", rules).empty());
  CHECK(says(ids_refused(folder / "headed", rules_of(Encoding::uint16, 1 << 16, Division::place)),
             {"begins with a header of llm.c", "set tokens to llm.c"}));
}

TEST_CASE("splits by name that are missing or empty are refused", "[lm]") {
  const TemporaryFolder folder;
  const TextFileRules rules = rules_of(Encoding::uint16, 100);
  const std::string ids = ids_as<std::uint16_t>(some_ids(100, 100));
  write_file(folder / "data/train.bin", ids);
  CHECK(says(ids_refused(folder / "data", rules), {"no tokens in a file of validation", "val"}));
  write_file(folder / "data/val.bin", "");
  CHECK(says(ids_refused(folder / "data", rules), {"val.bin", "is empty"}));
  write_file(folder / "data/val.bin", ids);
  CHECK(ids_refused(folder / "data", rules).empty());
  CHECK(says(ids_refused(folder / "data", rules_of(Encoding::uint16, 100, Division::place)),
             {"holds 2 files", "set split to files"}));
  CHECK(says(ids_refused(folder / "data", rules_of(Encoding::uint16, 100, Division::enwik8)),
             {"split by its bytes"}));
  fs::rename(folder / "data/train.bin", folder / "data/training.bin");
  CHECK(says(ids_refused(folder / "data", rules), {"no tokens in a file of train"}));
}

TEST_CASE("ids are another text than the same bytes, and their vocabulary decides", "[lm]") {
  const TemporaryFolder folder;
  const DataTask& task = *find_data_task("lm");
  const auto resolved = [&](const std::map<std::string, OptionValue>& said) {
    return Options::resolve(task.settings, said);
  };
  write_file(folder / "all.bin", ids_as<std::uint16_t>(some_ids(1'000, 100)));
  const std::map<std::string, OptionValue> said{{"tokens", std::string("uint16")},
                                                {"vocabulary", std::int64_t{100}}};
  const auto source = task.open(resolved(said), folder / "all.bin", {});
  prepare(*source, folder / "data" / cache_name(source->description()));
  CHECK_NOTHROW(find_cache(folder / "data", wanted_of(task, resolved(said))));
  CHECK_THROWS_AS(find_cache(folder / "data", wanted_of(task, resolved({}))), MissingData);
  auto other = said;
  other["vocabulary"] = std::int64_t{101};
  CHECK(says(refusal([&] { find_cache(folder / "data", wanted_of(task, resolved(other))); }),
             {"vocabulary 100, not 101", "--set tokens=uint16", "--set vocabulary=101"}));
  CHECK(says(refusal([&] {
               task.open(resolved({{"vocabulary", std::int64_t{100}}}), folder / "all.bin", {});
             }),
             {"vocabulary is 100", "tokens are bytes"}));
  CHECK(says(refusal([] { encoding_from("int16"); }), {"bytes, uint16, uint32, llm.c, words"}));
  // Of ids there is no text to write.
  const Cache cache(folder / "data" / cache_name(source->description()));
  CHECK(says(refusal([&] { task.export_published(cache, folder / "out"); }),
             {"tokens that are no bytes", "--as arrays"}));
}
