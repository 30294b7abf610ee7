#include "tests/end_to_end/python_faults.hpp"

using namespace attnbench::test;

TEST_CASE("everything that a file in Python can do wrong is named", "[program][python]") {
  if (!have_python()) return;
  held_to(
      {{"nothing", "error", "bad.py:1: there is no nothing; .*"},
       {"no_query", "error", "bad.py:18: it takes no parameter query; .*"},
       {"unknown", "error", "bad.py:21: its parameter gate has no default .*"},
       {"no_pattern", "error", "bad.py:24: it takes neither causal nor pattern.*"},
       {"dtype", "error", "bad.py:30: dtype returned .* Double on cpu; expected .*"},
       {"device", "error", "bad.py:33: device returned .* on meta; expected .*"},
       {"no_tensor", "error", "bad.py:36: no_tensor returned int; expected .*"},
       {"pair", "error", "bad.py:39: pair returned tuple; expected .*"},
       {"ends", "crashed", "bad.py:49: .*exit code 3.*"},
       {"default", "error", "bad.py:52: default changed the default dtype.*"},
       {"graph", "error", "bad.py:60: graph returned an output with a graph .*"},
       {"leaf", "error", "bad.py:64: leaf changed requires_grad of its input query.*"},
       {"lines", "error", "bad.py:135: ValueError: what is wrong(;.*)?"},
       {"gap", "error", "bad.py:140: RuntimeError: what is wrong(;.*)?"},
       {"recurses", "error", "bad.py:90: RecursionError: .*"},
       {"claims", "error", "bad.py:98: its attribute claims has 'rows_sum_to_two'.*"},
       {"reference", "error", "bad.py:102: its reference: .*softmx.*"},
       {"leaves.py:f", "error", "leaves.py:2: SystemExit: 1.*"},
       {"no_such_package.inner:f", "unsupported",
        "there is no module no_such_package in Python .*"},
       {"Wants", "error", "bad.py:11: its constructor wants size; .*"},
       {"threads", "error", "bad.py:56: threads changed PyTorch's threads from .*"},
       {"overwrites", "wrong", "bad.py:75: .*"},
       {"sleeps", "timeout", "bad.py:92: no end within 40.*"},
       {"kinds.py:body", "measured", ""},
       {"kinds.py:Still", "measured", ""},
       {"kinds.py:Asks", "error", "kinds.py:10: its unavailable wants what; expected a .*"},
       {"kinds.py:Costs", "error", "kinds.py:33: its cost takes self, .*"},
       {"kinds.py:infinite", "error", "kinds.py:37: the default of its option slope is inf; .*"},
       {"kinds.py:Complex", "error", ".*kinds.py:40: its tensor turn is complex, .*"},
       {"kinds.py:Twice", "error",
        ".*kinds.py:48: its tensors a_weight and a.weight would both be called a_weight: .*"},
       {"kinds.py:mode", "error", "kinds.py:59: mode changed a mode of PyTorch, .*"},
       {"kinds.py:algorithms", "error", "kinds.py:66: algorithms changed whether PyTorch takes .*"},
       {"kinds.py:ranged", "error", "kinds.py:74: its option slope has the default 1.0, .*range.*"},
       {"kinds.py:worded", "error", "kinds.py:77: its option mode is Literal.*the default 'c'; .*"},
       {"zero.py:f", "error", "zero.py:2: it has a zero byte; .*"},
       {"deep.py:f", "error", "deep.py:1: an expression is nested more deeply .*"},
       {"falls.py:f", "crashed", ".*while python:.*falls.py:f was imported: .*"}});
}
