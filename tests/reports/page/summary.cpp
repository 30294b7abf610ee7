#include "reports/page/summary.hpp"

#include <algorithm>

#include "reports/page/page.hpp"
#include "reports/verdict/input.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::reports;
using Catch::Contains;

namespace {

Section section_of(const std::string& name) {
  Section section;
  section.result = test::fixture_result("fixtures/" + name);
  section.verdict = verdict::verdict_of(section.result);
  section.source = "runs/" + name;
  section.links = {{"result.json", "result.json"}, {"result.csv", "tables/result.csv"}};
  return section;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a page begins with the verdict, contents and links to its data", "[page]") {
  const std::string html = page({section_of("quickstart"), section_of("decode")}, "", "");
  CHECK(html.find("<h1>") < html.find("<div class=\"ranked\">"));
  CHECK(html.find("<div class=\"ranked\">") < html.find("<h2 id=\"verdict-0\">"));
  CHECK(html.find("<h2 id=\"verdict-0\">In words</h2>") < html.find("<h2 id=\"tables-0\">"));
  CHECK_THAT(html, Contains("<p class=\"over\">"));  // the suite's title, above the answer
  CHECK(count_of(html, "<nav aria-label=\"Contents\">") == 2);
  for (const char* id : {"verdict-0", "tables-0", "statuses-0", "facts-1"}) {
    CHECK(count_of(html, std::string("href=\"#") + id + "\"") == 1);
    CHECK(count_of(html, std::string("id=\"") + id + "\"") == 1);
  }
  CHECK_THAT(html, Contains("<a href=\"tables/result.csv\">result.csv</a>") &&
                       Contains("<td class=\"best\">") && Contains("<table class=\"sortable\">") &&
                       Contains("makeSortable"));
}

TEST_CASE("a page shows what papers claim of its suite, and says nothing without claims",
          "[page]") {
  Section section = section_of("quickstart");
  CHECK(count_of(page({section}, "", ""), "What papers claim") == 0);
  const result::CellRecord& cell =
      *std::find_if(section.result.cells.begin(), section.result.cells.end(), result::is_ok);
  claims::PaperClaim claim;
  claim.paper = "latte_v1";
  claim.name = "one";
  claim.claim = "It takes <time>.";
  claim.place = "Figure 1";
  claim.suite = section.result.suite.name;
  claim.predicate = claims::Predicate{};
  claim.predicate->value = claims::ClaimedQuantity{
      "time",
      cell.label,
      "",
      {{"task_label", cell.task_name()}, {"length", cell.settings.at("length")}}};
  claim.predicate->within = claims::Bounds{0.0, 1e9};
  claims::PaperClaim gone = claim;
  gone.predicate->value->settings["depth"] = 3;
  claims::PaperClaim other = claim;
  other.suite = "decode";
  section.claims = claims::evaluate_all({claim, gone, other}, section.result);
  const std::string html = page({section}, "", "");
  CHECK(count_of(html, "<h2 id=\"claims-0\">What papers claim</h2>") == 1);
  CHECK(count_of(html, "It takes &lt;time&gt;. (latte_v1: Figure 1)") == 2);
  CHECK(count_of(html, "<td>seen</td>") == 1);
  CHECK(count_of(html, "<td>not run</td>") == 1);
  CHECK_THAT(html, Contains("&quot;depth&quot;"));
}

TEST_CASE("the notes of a suite stand below the answer, and cannot end an element", "[page]") {
  result::Result result = section_of("quickstart").result;
  result.suite.notes.reset();
  const std::string without = notes_html(result);
  result.suite.notes = "no ranking: <b>chance</b> & more";
  const std::string html = notes_html(result);
  const std::string added = "<p>no ranking: &lt;b&gt;chance&lt;/b&gt; &amp; more</p>\n";
  CHECK(count_of(html, added) == 1);
  CHECK(html.size() == without.size() + added.size());
}

TEST_CASE("a BLAS that is slow for the CPU is said in red, with what to install", "[page]") {
  result::Result result = section_of("quickstart").result;
  const std::string red = "<p class=\"note bad\">";
  // FLOP/s of multiply-adds and of products, on all threads and on one.
  const auto header_with = [&](double multiply_adds, double product, const char* kind) {
    Values& rates = result.ceilings["cpu"];
    rates = Values();
    rates["fma_float32_flops_per_second"] = 2 * multiply_adds;
    rates["gemm_float32_flops_per_second"] = 2 * product;
    rates["fma_float32_one_thread_flops_per_second"] = multiply_adds;
    rates["gemm_float32_one_thread_flops_per_second"] = product;
    result.machine.blas = result::Blas{};
    result.machine.blas->kind = kind;
    return header_html(result, "");
  };
  CHECK(count_of(header_with(230e9, 193e9, "openblas"), red) == 0);
  const std::string reference = header_with(230e9, 3e9, "reference");
  CHECK(count_of(reference, red) == 1);
  const std::string note = reference.substr(reference.find(red));
  CHECK_THAT(note.substr(0, note.find("</p>")),
             Contains("Matrix products reach 1 %") && Contains("libopenblas0-openmp"));
  CHECK_THAT(header_with(230e9, 3e9, "mkl"), Contains(red) && Contains("BLAS is mkl"));
}

TEST_CASE("the verdict's words cannot end an element of the page", "[page]") {
  verdict::Verdict verdict;
  verdict.sentence = "On <script>a</script> & b: c.";
  verdict.exceptions = {{Status::wrong, 1, {"<b>"}}};
  const std::string html = verdict_html(verdict);
  CHECK_THAT(html, Contains("&lt;script&gt;") && !Contains("<script>") && !Contains("<b>"));
  CHECK(verdict_html({}).empty());
  CHECK(contents_html(heading_html("one", "one")).empty());
}
