// A catalogue as a worker lists it: what the suite's tests expand against.
#pragma once

#include <utility>

#include "core/catalogue.hpp"

namespace attnbench::test {

inline MechanismSpec mechanism_spec(const std::string& name, bool crosses,
                                    std::vector<Option> options,
                                    const std::vector<std::string>& implementations) {
  MechanismSpec made;
  made.name = name;
  made.patterns = {"bidirectional", "causal"};
  if (crosses) made.patterns.push_back("cross");
  made.options = std::move(options);
  for (const std::string& one : implementations)
    made.implementations.push_back({one, "", {}, true});
  return made;
}

inline TaskSpec task_spec(const std::string& name, std::vector<std::string> figures,
                          std::vector<Option> further) {
  TaskSpec made;
  made.name = name;
  made.axis = "length";
  made.figures = std::move(figures);
  for (const auto& [size, usual] : {std::pair{"batch", 1}, {"heads", 4}}) {
    made.settings.push_back(Option::integer(size, usual, "", 1));
  }
  for (const char* size : {"kv_heads", "width", "head_dim", "value_dim"}) {
    made.settings.push_back(Option::integer(size, 0, "", 0));
  }
  made.settings.push_back(Option::text("dtype", {"float32", "float64", "bfloat16", "float16"}, ""));
  made.settings.push_back(Option::number("input_scale", 1, "", 0));
  for (Option& one : further) made.settings.push_back(std::move(one));
  return made;
}

inline Catalogue catalogue() {
  Catalogue made;
  made.mechanisms = {
      mechanism_spec("softmax", true,
                     {Option::number("scale", 0, ""), Option::integer("query_chunk", 1024, "", 1),
                      Option::integer("key_chunk", 4096, "", 1)},
                     {"composite", "chunked", "tiled"}),
      mechanism_spec("window", false, {{"window", OptionType::window, Window{-1, -1}, ""}},
                     {"composite"}),
      mechanism_spec("latte", false,
                     {Option::integer("latents_total", 0, "", 0),
                      Option::integer("latents_per_head", 0, "", 0),
                      Option::text("stabiliser", {"running", "none"}, "")},
                     {"composite", "scan", "chunked", "fused"}),
      mechanism_spec("linear", true, {Option::boolean("normalise", true, "")},
                     {"composite", "scan", "chunked", "fused"})};
  made.mechanisms[0].aliases = {
      {"flash", "softmax", "tiled", {}, ""},
      {"chunked_softmax", "softmax", "chunked", {{"query_chunk", std::int64_t{256}}}, ""}};
  Option pattern = Option::text("pattern", {"bidirectional", "causal", "cross"}, "");
  pattern.fallback = std::string("causal");
  made.tasks = {
      task_spec("kernel", {"time", "memory", "slopes", "roofline"},
                {Option::integer("length", 1024, "", 1, 1073741824),
                 Option::integer("key_length", 0, "", 0),
                 Option::integer("past", 0, "", 0),
                 {"lengths", OptionType::text, std::string(), "lengths joined by +"},
                 pattern,
                 Option::text("pass", {"forward", "backward", "forward+backward"}, ""),
                 Option::text("scope", {"mix", "projected", "layer"}, "")}),
      task_spec("decode", {"time", "state"},
                {Option::integer("length", 1024, "", 1), Option::integer("steps", 16, "", 1)})};
  return made;
}

}  // namespace attnbench::test
