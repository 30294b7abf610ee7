#include "harness/program/trace/trace_suite.hpp"

#include <filesystem>

#include "core/failure.hpp"
#include "tests/harness/program/trace/safetensors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

/// A definition as the trace has it, of our own sizes.
Json definition(const std::string& name, const std::string& op_type, const Json& axes,
                const std::string& dtype = "bfloat16") {
  Json made = {{"name", name},
               {"op_type", op_type},
               {"axes",
                {{"num_qo_heads", {{"type", "const"}, {"value", 8}}},
                 {"num_kv_heads", {{"type", "const"}, {"value", 2}}},
                 {"head_dim", {{"type", "const"}, {"value", 64}}},
                 {"len_indptr", {{"type", "var"}}}}},
               {"inputs",
                {{"q", {{"shape", {"total", "num_qo_heads", "head_dim"}}, {"dtype", dtype}}},
                 {"sm_scale", {{"shape", nullptr}, {"dtype", "float32"}}}}},
               {"outputs", Json::object()},
               {"tags", nullptr},
               {"reference", "def run(): pass"}};
  made["axes"].update(axes);
  return made;
}

Json ragged_prefill() {
  return definition("gqa_ragged_prefill_causal_h8", "gqa_ragged",
                    {{"total_q", {{"type", "var"}}}, {"total_kv", {{"type", "var"}}}});
}

Json paged(const std::string& name, const char* axis, int page_size) {
  return definition(name, "gqa_paged",
                    {{axis, {{"type", "var"}}},
                     {"num_kv_indices", {{"type", "var"}}},
                     {"num_pages", {{"type", "var"}}},
                     {"page_size", {{"type", "const"}, {"value", page_size}}}});
}

Json workload(const Json& of, const std::string& uuid, const Json& axes,
              const Json& inputs = Json::object()) {
  return {{"definition", of.at("name")},
          {"solution", nullptr},
          {"workload", {{"uuid", uuid}, {"axes", axes}, {"inputs", inputs}}},
          {"evaluation", nullptr}};
}

Json stored(const std::string& key) {
  return {{"type", "safetensors"}, {"path", "./blob/lists.safetensors"}, {"tensor_key", key}};
}

/// A trace in a folder: definitions, and workloads a line.
struct Trace {
  void write(const std::vector<Json>& definitions, const std::vector<Json>& workloads) {
    files.clear();
    std::filesystem::create_directories(folder / "workloads/gqa");
    for (const Json& one : definitions) {
      files.push_back((folder / ("definition" + std::to_string(files.size()) + ".json")).string());
      test::write_file(files.back(), one.dump());
    }
    std::string lines;
    for (const Json& one : workloads) lines += one.dump() + "\n";
    files.push_back((folder / "workloads/gqa/all.jsonl").string());
    test::write_file(files.back(), lines);
  }
  void store(const std::map<std::string, std::vector<std::int32_t>>& lists) const {
    std::filesystem::create_directories(folder / "blob");
    test::write_file(folder / "blob/lists.safetensors", test::safetensors_of(lists));
  }
  trace::TraceSuite suite() const { return trace::suite_of(trace::read_trace_files(files)); }

  test::TemporaryFolder folder;
  std::vector<std::string> files;
};

std::string complaint_of(const Trace& trace) {
  try {
    trace.suite();
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

/// The reason why the only thing that was left out is.
std::string reason_of(const Json& of, const Json& one) {
  Trace trace;
  trace.write({of}, {one});
  const trace::TraceSuite made = trace.suite();
  CHECK(made.sizes == 0);
  return made.left_out.size() == 1 ? made.left_out.front().reason : "";
}

}  // namespace

TEST_CASE("a ragged prefill becomes cells of kernel, one for each size", "[trace]") {
  Trace trace;
  const Json of = ragged_prefill();
  const Json lists = {{"qo_indptr", stored("q")}, {"kv_indptr", stored("kv")}};
  trace.write({of},
              {workload(of, "1", {{"len_indptr", 2}, {"total_q", 35}, {"total_kv", 35}}),
               workload(of, "2", {{"len_indptr", 2}, {"total_q", 35}, {"total_kv", 35}}),
               workload(of, "2", {{"len_indptr", 2}, {"total_q", 35}, {"total_kv", 35}}),
               workload(of, "3", {{"len_indptr", 2}, {"total_q", 16}, {"total_kv", 80}}),
               workload(of, "4", {{"len_indptr", 5}, {"total_q", 60}, {"total_kv", 60}}, lists)});
  trace.store({{"q", {0, 20, 40, 40, 60}}, {"kv", {0, 20, 40, 40, 60}}});
  const trace::TraceSuite made = trace.suite();
  CHECK(made.taken == 4);  // the same uuid counts once
  CHECK(made.sizes == 3);
  CHECK(made.left_out.empty());
  const Json task = made.suite.at("tasks").at("gqa_ragged_prefill_causal_h8");
  CHECK(task["task"] == "kernel");
  CHECK(task["set"] == Json({{"heads", 8},
                             {"kv_heads", 2},
                             {"head_dim", 64},
                             {"dtype", "bfloat16"},
                             {"pattern", "causal"},
                             {"pass", "forward"}}));
  // The third sequence of the last one has no queries, which costs nothing.
  CHECK(task["zip"] ==
        Json({{"batch", {1, 1, 3}}, {"length", {35, 16, 20}}, {"past", {0, 64, 0}}}));
  CHECK(made.suite["mechanisms"] == Json({{"softmax", Json::object()}}));
  CHECK(made.suite["name"] == "gqa_ragged_prefill_causal_h8");
  trace.store({{"q", {0, 20, 25, 25, 60}}, {"kv", {0, 20, 25, 25, 60}}});
  const Json zip = trace.suite().suite["tasks"]["gqa_ragged_prefill_causal_h8"]["zip"];
  CHECK(zip["lengths"] == Json({"", "", "20+5+35"}));
  CHECK(zip["length"] == Json({35, 16, 35}));
}

TEST_CASE("a suite of a trace is written with a line for each member, and reads the same",
          "[trace]") {
  Trace trace;
  const Json of = ragged_prefill();
  trace.write({of}, {workload(of, "1", {{"len_indptr", 2}, {"total_q", 8}, {"total_kv", 8}})});
  const trace::TraceSuite made = trace.suite();
  const std::string text = trace::suite_text(made.suite);
  CHECK(nlohmann::ordered_json::parse(text) == made.suite);
  CHECK_THAT(text, Contains("\n        \"length\": [8]\n") && Contains("\n    \"softmax\": {}\n"));
}

TEST_CASE("steps in pages become cells of decode, whose context is without the token itself",
          "[trace]") {
  Trace trace;
  const Json ones = paged("gqa_paged_decode_h8_ps1", "batch_size", 1);
  const Json pages = paged("gqa_paged_decode_h8_ps64", "batch_size", 64);
  const Json lists = {{"kv_indptr", stored("kv")}, {"kv_last_page_len", stored("last")}};
  const auto axes = [](int batch, int indices) {
    return Json{{"batch_size", batch},
                {"len_indptr", batch + 1},
                {"num_kv_indices", indices},
                {"num_pages", 900}};
  };
  trace.write({ones, pages},
              {workload(ones, "1", axes(1, 513)), workload(ones, "2", axes(3, 60), lists),
               workload(pages, "3", axes(3, 60), lists), workload(pages, "4", axes(1, 7)),
               workload(pages, "5", axes(1, 1), lists)});
  trace.store({{"kv", {0, 10, 30, 60}}, {"last", {64, 1, 5}}});
  const trace::TraceSuite made = trace.suite();
  const Json first = made.suite["tasks"]["gqa_paged_decode_h8_ps1"];
  CHECK(first["task"] == "decode");
  CHECK(first["set"]["steps"] == 1);
  CHECK_FALSE(first["set"].contains("pattern"));
  CHECK(first["zip"] ==
        Json({{"batch", {1, 3}}, {"length", {512, 29}}, {"lengths", {"", "9+19+29"}}}));
  CHECK(made.suite["tasks"]["gqa_paged_decode_h8_ps64"]["zip"] ==
        Json({{"batch", {3}}, {"length", {29 * 64 + 5 - 1}}, {"lengths", {"639+1216+1860"}}}));
  REQUIRE(made.left_out.size() == 2);
  CHECK_THAT(made.left_out[0].reason, Contains("its kv_last_page_len is not stored"));
  CHECK_THAT(made.left_out[1].reason, Contains("kv_last_page_len has 3 numbers for 1"));
  CHECK(made.suite["name"] == "trace");
  CHECK_THAT(made.suite["notes"].get<std::string>(), Contains("Left out: 2 workloads"));
}

TEST_CASE("a scale that is not the usual one is that of the scores", "[trace]") {
  Trace trace;
  const Json of = ragged_prefill();
  const auto scaled = [&](const std::string& uuid, double scale) {
    return workload(of, uuid, {{"len_indptr", 2}, {"total_q", 8}, {"total_kv", 8}},
                    {{"sm_scale", {{"type", "scalar"}, {"value", scale}}}});
  };
  trace.write({of}, {scaled("1", 0.125), scaled("2", 0.1250000001)});
  CHECK_FALSE(trace.suite().suite["tasks"].front()["zip"].contains("scale"));
  CHECK(trace.suite().sizes == 1);
  trace.write({of}, {scaled("1", 0.125), scaled("2", 0.25)});
  CHECK(trace.suite().suite["tasks"].front()["zip"]["scale"] == Json({0.0, 0.25}));
  CHECK_THAT(reason_of(of, scaled("1", -1)), Contains("sm_scale is not above 0"));
}

TEST_CASE("what is not measured is left out, with its reason", "[trace]") {
  const auto of_type = [](const char* type) {
    return reason_of(definition("other", type, Json::object()),
                     workload({{"name", "other"}}, "1", {{"len_indptr", 2}}));
  };
  CHECK(of_type("rmsnorm") == "it is no attention");
  CHECK(of_type("gemm") == "it is no attention");
  CHECK_THAT(of_type("mla_paged"), Contains("latent attention"));
  CHECK_THAT(of_type("dsa_paged"), Contains("chosen tokens"));
  CHECK_THAT(of_type("gdn"), Contains("gated delta"));
  CHECK_THAT(of_type("gqa_ragged"), Contains("neither the axis total_q"));

  const Json of = ragged_prefill();
  const auto with_axes = [&](const Json& axes, const Json& inputs = Json::object()) {
    return reason_of(of, workload(of, "1", axes, inputs));
  };
  CHECK_THAT(with_axes({{"len_indptr", 3}, {"total_q", 81}, {"total_kv", 81}}),
             Contains("its qo_indptr is not stored"));
  CHECK_THAT(with_axes({{"len_indptr", 3}, {"total_q", 81}, {"total_kv", 81}},
                       {{"qo_indptr", {{"type", "random"}}}}),
             Contains("its qo_indptr is not stored"));
  CHECK_THAT(with_axes({{"len_indptr", 3}, {"total_q", 81}, {"total_kv", 81}},
                       {{"qo_indptr", stored("q")}}),
             Contains("its qo_indptr, are in a file that is not there, of the folder blob"));
  CHECK_THAT(with_axes({{"len_indptr", 2}, {"total_q", 34}, {"total_kv", 1}}),
             Contains("34 queries and 1 keys"));
  CHECK_THAT(with_axes({{"len_indptr", 2}, {"total_q", 34}}), Contains("its axis total_kv"));
  CHECK_THAT(with_axes({{"len_indptr", 2}, {"total_q", 0}, {"total_kv", 4}}),
             Contains("its axis total_q is 0"));
  CHECK_THAT(with_axes({{"len_indptr", 2}, {"total_q", 1 << 27}, {"total_kv", 1 << 27}}),
             Contains("more than 67108864 tokens"));
  CHECK_THAT(with_axes({{"len_indptr", 1}, {"total_q", 4}, {"total_kv", 4}}),
             Contains("no sequence"));

  Json not_causal = of;
  not_causal["name"] = "gqa_ragged_prefill_h8";
  CHECK_THAT(reason_of(not_causal, workload(not_causal, "1", {{"len_indptr", 2}})),
             Contains("does not say that it is causal"));
  Json quantised = of;
  quantised["inputs"]["k"] = {{"shape", {"total_kv"}}, {"dtype", "float8_e4m3fn"}};
  CHECK_THAT(reason_of(quantised, workload(of, "1", {{"len_indptr", 2}})),
             Contains("its queries are bfloat16 and its k is float8_e4m3fn"));
  Json narrow = of;
  narrow["inputs"]["q"]["dtype"] = "float8_e4m3fn";
  CHECK_THAT(reason_of(narrow, workload(of, "1", {{"len_indptr", 2}})),
             Contains("tasks have float32, float16 and bfloat16"));
  Json varies = of;
  varies["axes"]["head_dim"] = {{"type", "var"}};
  CHECK_THAT(reason_of(varies, workload(of, "1", {{"len_indptr", 2}})),
             Contains("its axis head_dim is no constant"));

  Trace trace;
  trace.write({of}, {workload({{"name", "elsewhere"}}, "1", {{"len_indptr", 2}})});
  const auto both = trace.suite().left_out;
  REQUIRE(both.size() == 2);
  CHECK(both[0].reason == "it has no workload in these files");
  CHECK(both[1].definition == "elsewhere");
  CHECK(both[1].reason == "its definition is in none of the files");
}

TEST_CASE("batches that differ in more than one task can say are left out", "[trace]") {
  const Json of = ragged_prefill();
  const Json lists = {{"qo_indptr", stored("q")}, {"kv_indptr", stored("kv")}};
  const auto reason = [&](std::vector<std::int32_t> queries, std::vector<std::int32_t> keys) {
    Trace trace;
    trace.write(
        {of}, {workload(of, "1",
                        {{"len_indptr", 3}, {"total_q", queries.back()}, {"total_kv", keys.back()}},
                        lists)});
    trace.store({{"q", queries}, {"kv", keys}});
    const auto left = trace.suite().left_out;
    return left.empty() ? std::string() : left.front().reason;
  };
  CHECK(reason({0, 4, 8}, {0, 10, 20}).empty());
  CHECK_THAT(reason({0, 4, 8}, {0, 10, 21}), Contains("pasts of several lengths"));
  CHECK_THAT(reason({0, 4, 9}, {0, 10, 21}), Contains("several lengths after a past"));
  CHECK_THAT(reason({0, 9, 8}, {0, 10, 20}), Contains("no list of offsets from 0 to 8"));
  CHECK_THAT(reason({1, 4, 8}, {0, 10, 20}), Contains("no list of offsets from 0 to 8"));
}

TEST_CASE("a file that is no trace is refused, with its place", "[trace]") {
  const Json of = ragged_prefill();
  const Json one = workload(of, "1", {{"len_indptr", 2}, {"total_q", 4}, {"total_kv", 4}});
  const auto refused = [&](const Json& broken_definition, const Json& broken_workload) {
    Trace trace;
    trace.write({broken_definition}, {one, broken_workload});
    return complaint_of(trace);
  };
  const auto changed = [](Json json, const std::string& pointer, const Json& value) {
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  const std::string of_line = "all.jsonl:2: /workload";
  CHECK_THAT(refused(changed(of, "/version", 2), one),
             Contains("definition0.json: /version: unknown key") &&
                 Contains("expected those that FlashInfer-Bench documents"));
  CHECK_THAT(refused(changed(of, "/axes/head_dim/value", 0), one),
             Contains("/axes/head_dim/value: expected a whole number above 0"));
  CHECK_THAT(refused(changed(of, "/axes/head_dim/value", -64), one),
             Contains("/axes/head_dim/value: expected a whole number above 0"));
  CHECK_THAT(refused(changed(of, "/axes/head_dim/value", 2.5), one),
             Contains("/axes/head_dim/value: expected"));
  CHECK_THAT(refused(changed(of, "/axes/head_dim/type", "dynamic"), one),
             Contains("/axes/head_dim/type: expected const or var, found \"dynamic\""));
  CHECK_THAT(refused(changed(of, "/axes/num_kv_heads/value", 3), one),
             Contains("/axes/num_kv_heads: 3 does not divide the 8 of num_qo_heads"));
  CHECK_THAT(refused(of, changed(one, "/workload/axes/total_q", -4)),
             Contains(of_line + "/axes/total_q: expected a whole number of at least 0, found -4"));
  CHECK_THAT(refused(of, changed(one, "/workload/axes/total_q", "4")),
             Contains(of_line + "/axes/total_q: expected"));
  CHECK_THAT(refused(of, changed(one, "/workload/seed", 4)), Contains(of_line + "/seed"));
  CHECK_THAT(refused(of, changed(one, "/workload/uuid", 4)), Contains(of_line + "/uuid"));
  CHECK_THAT(refused(of, changed(one, "/baseline", 4)), Contains("all.jsonl:2: /baseline"));
  CHECK_THAT(refused(of, {{"some", "thing"}}),
             Contains("all.jsonl:2: ") &&
                 Contains("expected a definition or a workload of FlashInfer's trace"));
  Trace trace;
  trace.write({of, changed(of, "/axes/head_dim/value", 128)}, {one});
  CHECK_THAT(complaint_of(trace), Contains("definition1.json: another definition is called"));
  trace.write({of, of}, {one});
  CHECK(complaint_of(trace).empty());
  test::write_file(trace.files.back(), one.dump() + "\n{\"definition\": NaN}\n");
  CHECK_THAT(complaint_of(trace), Contains("all.jsonl:2:16: "));
  trace.files.push_back((trace.folder / "none.json").string());
  test::write_file(trace.files[2], one.dump());
  CHECK_THAT(complaint_of(trace), Contains("none.json: there is no such file"));
}
