// A catalogue written by hand, in the shape the worker's has: what the suite's tests expand
// against.
#pragma once

#include "core/catalogue.hpp"

namespace attnbench::test {

inline const char* catalogue_text() {
  return R"JSON({
  "mechanisms": [
    {"name": "softmax", "title": "Softmax attention", "citation": "Vaswani et al. 2017",
     "origin": "built in", "patterns": ["bidirectional", "causal", "cross"], "claims": {},
     "options": [
       {"name": "scale", "type": "number", "default": 0.0, "meaning": "0 = 1/sqrt(head_dim)"},
       {"name": "query_chunk", "type": "integer", "default": 1024, "minimum": 1.0,
        "meaning": "queries of one chunk"},
       {"name": "key_chunk", "type": "integer", "default": 4096, "minimum": 1.0,
        "meaning": "keys of one chunk"}],
     "implementations": [
       {"name": "composite", "title": "tensor operations", "differentiable": true,
        "growth": {"time_in_length": 2, "workspace_in_length": 2}},
       {"name": "chunked", "title": "by chunks of queries", "differentiable": true, "growth": {}},
       {"name": "tiled", "title": "tiles with a running maximum", "differentiable": false,
        "growth": {}}],
     "aliases": [
       {"name": "flash", "implementation": "tiled", "options": {}, "title": "Flash attention"},
       {"name": "chunked_softmax", "implementation": "chunked", "options": {"query_chunk": 256},
        "title": "Softmax by chunks"}],
     "differs_from": []},
    {"name": "window", "title": "Sliding window", "citation": "", "origin": "built in",
     "patterns": ["bidirectional", "causal"], "claims": {},
     "options": [{"name": "window", "type": "window", "default": {"left": -1, "right": -1},
                  "meaning": "keys seen"}],
     "implementations": [{"name": "composite", "title": "masked", "differentiable": true,
                          "growth": {}}], "aliases": [], "differs_from": []},
    {"name": "latte", "title": "Latent attention", "citation": "Dolga et al. 2024",
     "origin": "built in", "patterns": ["bidirectional", "causal"], "claims": {},
     "options": [
       {"name": "latents_total", "type": "integer", "default": 0, "minimum": 0, "meaning": "L"},
       {"name": "latents_per_head", "type": "integer", "default": 0, "minimum": 0,
        "meaning": "L per head"},
       {"name": "stabiliser", "type": "text", "default": "running", "meaning": "how it is kept finite",
        "choices": ["running", "none"]}],
     "implementations": [
       {"name": "composite", "title": "vectorised", "differentiable": true, "growth": {}},
       {"name": "scan", "title": "token by token", "differentiable": true, "growth": {}},
       {"name": "chunked", "title": "by chunks", "differentiable": true, "growth": {}},
       {"name": "fused", "title": "one kernel", "differentiable": true, "growth": {}}],
     "aliases": [], "differs_from": []},
    {"name": "linear", "title": "Linear attention", "citation": "", "origin": "built in",
     "patterns": ["bidirectional", "causal", "cross"], "claims": {},
     "options": [{"name": "normalise", "type": "boolean", "default": true, "meaning": "divide"}],
     "implementations": [
       {"name": "composite", "title": "", "differentiable": true, "growth": {}},
       {"name": "scan", "title": "", "differentiable": true, "growth": {}},
       {"name": "chunked", "title": "", "differentiable": true, "growth": {}},
       {"name": "fused", "title": "", "differentiable": true, "growth": {}}], "aliases": [], "differs_from": []}],
  "tasks": [
    {"name": "kernel", "title": "Time, memory and correctness of one call", "axis": "length",
     "origin": "built in", "further_figures": [], "data_settings": [], "differs_from": [],
     "figures": ["time", "memory", "slopes", "roofline"],
     "settings": [
       {"name": "batch", "type": "integer", "default": 1, "minimum": 1, "meaning": "B"},
       {"name": "heads", "type": "integer", "default": 4, "minimum": 1, "meaning": "H"},
       {"name": "kv_heads", "type": "integer", "default": 0, "minimum": 0, "meaning": ""},
       {"name": "width", "type": "integer", "default": 0, "minimum": 0, "meaning": "C"},
       {"name": "head_dim", "type": "integer", "default": 0, "minimum": 0, "meaning": "D"},
       {"name": "value_dim", "type": "integer", "default": 0, "minimum": 0, "meaning": "Dv"},
       {"name": "length", "type": "integer", "default": 1024, "minimum": 1, "maximum": 1073741824,
        "meaning": "T"},
       {"name": "key_length", "type": "integer", "default": 0, "minimum": 0, "meaning": "S"},
       {"name": "pattern", "type": "text", "default": "causal", "meaning": "",
        "choices": ["bidirectional", "causal", "cross"]},
       {"name": "pass", "type": "text", "default": "forward", "meaning": "",
        "choices": ["forward", "backward", "forward+backward"]},
       {"name": "scope", "type": "text", "default": "mix", "meaning": "",
        "choices": ["mix", "projected", "layer"]},
       {"name": "dtype", "type": "text", "default": "float32", "meaning": "",
        "choices": ["float32", "float64", "bfloat16", "float16"]},
       {"name": "input_scale", "type": "number", "default": 1.0, "minimum": 0, "meaning": ""}]},
    {"name": "decode", "title": "One token from a state", "axis": "length",
     "origin": "built in", "further_figures": [], "data_settings": [], "differs_from": [],
     "figures": ["time", "state"],
     "settings": [
       {"name": "batch", "type": "integer", "default": 1, "minimum": 1, "meaning": "B"},
       {"name": "heads", "type": "integer", "default": 4, "minimum": 1, "meaning": "H"},
       {"name": "kv_heads", "type": "integer", "default": 0, "minimum": 0, "meaning": ""},
       {"name": "width", "type": "integer", "default": 0, "minimum": 0, "meaning": "C"},
       {"name": "head_dim", "type": "integer", "default": 0, "minimum": 0, "meaning": "D"},
       {"name": "value_dim", "type": "integer", "default": 0, "minimum": 0, "meaning": "Dv"},
       {"name": "length", "type": "integer", "default": 1024, "minimum": 1, "meaning": "context"},
       {"name": "steps", "type": "integer", "default": 16, "minimum": 1, "meaning": "tokens"},
       {"name": "dtype", "type": "text", "default": "float32", "meaning": "",
        "choices": ["float32", "float64", "bfloat16", "float16"]},
       {"name": "input_scale", "type": "number", "default": 1.0, "minimum": 0, "meaning": ""}]}],
  "plugins": [], "stamp": {"attnbench": "test", "abi": 1, "torch": "", "compiler": ""}})JSON";
}

inline suite::Catalogue catalogue() {
  return nlohmann::json::parse(catalogue_text()).get<suite::Catalogue>();
}

}  // namespace attnbench::test
