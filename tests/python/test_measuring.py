"""attnbench.measure: what is taken of tensors, what comes back, and what is refused."""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attnbench
import pytest
from attnbench.measuring import _cell, _measurement, _settings
from conftest import FIXTURES, Stand

SOURCE = """
def near(query, key, value, causal: bool, slope: float = 0.1):
    shared = query.size(1) // value.size(1)
    mean = (slope * key * value).mean(2, keepdim=True).repeat_interleave(shared, 1)
    return query + mean

near.patterns = ["cross"]
near.shares_heads = True

def fails(query, key, value, causal: bool):
    raise RuntimeError("no such thing")
"""
SHORT: dict[str, Any] = {"now": True, "threads": 1, "progress": "none", "rounds": 1}
TWO_ROUNDS: dict[str, Any] = {**SHORT, "rounds": 2, "no_report": True}


T: Any = Stand()


@pytest.fixture
def own(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user's module, beside an empty folder for what is temporary."""
    (tmp_path / "own_measured.py").write_text(SOURCE)
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.delitem(sys.modules, "own_measured", raising=False)
    return __import__("own_measured")


def test_a_function_is_measured_in_the_sizes_of_its_tensors(own: Any) -> None:
    tensors: list[Any] = [Stand((2, 4, 16, 8)), *[Stand((2, 2, 24, 8), requires_grad=True)] * 2]
    found = attnbench.measure(
        own.near, *tensors, causal=False, slope=0.5, out="kept/run", **TWO_ROUNDS
    )
    sizes = dict(batch=2, heads=4, kv_heads=2, length=16, key_length=24, head_dim=8, value_dim=8)
    assert sizes.items() <= found.record["problem"].items()
    assert found.record["options"] == {"slope": 0.5}
    assert (found.record["problem"]["pattern"], found.timing) == ("cross", "forward+backward")
    assert found.status in ("ok", "disturbed")
    # Of one quiet round, where the other was disturbed, it is the interval of its samples.
    assert found.rounds == 2 and found.interval in ("range", "samples")
    assert found.median_seconds and found.low_seconds and found.high_seconds
    assert 0 < found.low_seconds <= found.median_seconds <= found.high_seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cell that is disturbed
        [row] = attnbench.read("kept/run").to_dict("records")
    for column in ("median_seconds", "workspace_bytes", "peak_bytes"):
        assert row[column] == getattr(found, column)
    assert found.peak_bytes and found.peak_bytes > 4 * (2 * 4 * 16 * 8 + 2 * 2 * 2 * 24 * 8)
    assert repr(found).startswith("near: batch=2, dtype=float32, head_dim=8, heads=4, key_length=24")
    assert "forward+backward " in repr(found) and ")\nrounds 2, " in repr(found)
    assert found._repr_html_().startswith("<pre>near: batch=2")


def test_nothing_is_left_behind_and_a_failure_has_its_reason(own: Any) -> None:
    with pytest.raises(attnbench.ProgramFailed) as caught:
        attnbench.measure(own.fails, T, T, T, **SHORT)
    assert caught.value.message.startswith("fails: error: own_measured.py:11: RuntimeE")
    assert caught.value.result is None
    with pytest.raises(attnbench.ProgramFailed, match="near: unsupported: near: the pattern bid"):
        attnbench.measure(own.near, T, T, T, causal=False, **SHORT)
    assert {file.name for file in Path().iterdir()} <= {"__pycache__", own.__name__ + ".py", "temporary"}
    assert not list(Path("temporary").iterdir())
    with pytest.raises(attnbench.ProgramFailed, match="no such thing") as caught:
        attnbench.measure(own.fails, T, T, T, out="failed", **SHORT)
    assert caught.value.result == Path("failed/result.json")
    with pytest.raises(attnbench.ProgramFailed, match="exit code 2.*"):
        attnbench.measure(own.fails, T, T, T, no_such_option=3, **SHORT)


def test_several_cells_are_refused_before_any_is_measured() -> None:
    def mine(query: Any, key: Any, value: Any, slope: float = 0.1) -> Any:
        return value

    for several in ([0.1, 0.2], (0.1, 0.2), range(3), []):
        with pytest.raises(ValueError, match="slope: [023] values; expected one, for one cell"):
            attnbench.measure(mine, T, T, T, slope=several, program="/nowhere")
    with pytest.raises(attnbench.ProgramNotFound):  # a flag that takes several
        attnbench.measure(mine, T, T, T, fail_on=["wrong", "crashed"], program="/nowhere")
    with pytest.raises(ValueError, match="[0-9]+ cells; expected one value of each option"):
        _cell(FIXTURES / "decode.json")  # as of slope="0.1,0.2"


def test_what_tensors_say_is_passed_on() -> None:
    plain = dict(batch=1, heads=2, kv_heads=2, length=16, head_dim=8, value_dim=8)
    kinds = dict(dtype="float32", device="cpu")
    assert _settings(T, T, T, True) == {**plain, **kinds, "pattern": "causal"}
    assert _settings(T, T, T, False)["pattern"] == "bidirectional"
    card: Any = Stand(dtype="torch.bfloat16", device="cuda:1")
    found = _settings(card, card, replace(card, shape=(1, 2, 16, 4)), True)
    assert (found["dtype"], found["device"], found["value_dim"]) == ("bfloat16", "cuda:1", 4)


def test_tensors_that_are_no_call_of_attention_are_refused(program: str) -> None:
    def refused(*tensors: Any, **more: Any) -> str:
        with pytest.raises(ValueError) as caught:
            attnbench.measure(refused, *tensors, **more)
        return str(caught.value)

    flat, empty = Stand((2, 16, 8)), Stand((1, 2, 0, 8))
    assert "query is [2, 16, 8]: 3 dimensions; expected [batch, heads, tok" in refused(flat, T, T)
    assert "value is [1, 2, 0, 8]: it is empty" in refused(T, T, empty)
    assert "dtype: query float32, key float64, value float32; expected one" in refused(
        T, Stand(dtype="torch.float64"), T
    )
    whole = Stand(dtype="torch.int64")
    assert "of float32, float64, bfloat16, float16" in refused(whole, whole, whole)
    assert "device: query cpu, key cpu, value cuda:0; expected" in refused(
        T, T, Stand(device="cuda:0")
    )
    meta = Stand(device="meta")
    assert "device: query meta, key meta, value meta; expected one for all, of cpu, cuda" in refused(
        meta, meta, meta
    )
    for key, value in (
        (Stand((2, 2, 16, 8)), T),  # another batch
        (Stand((1, 2, 16, 4)), T),  # another width
        (T, Stand((1, 1, 16, 8))),  # other heads
        (T, Stand((1, 2, 15, 8))),  # other tokens
        (Stand((1, 4, 16, 8)), Stand((1, 4, 16, 8))),  # more heads than queries have
    ):
        assert "do not fit together; expected [B, H, T, D], [B, G, S, D] and" in refused(
            T, key, value
        )
    longer = Stand((1, 2, 24, 8))
    assert "causal: 16 queries and 24 keys; pass causal=False" in refused(T, longer, longer)
    array = SimpleNamespace(shape=(1, 2, 16, 8), dtype="float32", device="cpu")
    assert "key is a SimpleNamespace; expected a tensor of PyTorch" in refused(T, array, T)
    said = "batch, pass: said by the tensors, by causal and by backward"
    assert said in refused(T, T, T, batch=3, **{"pass": "backward"})
    assert "takes no query; its parameters are: tensors, more" in refused(T, T, T)
    with pytest.raises(ValueError, match="'flash': expected a function.*for a name: attnbench.run"):
        attnbench.measure("flash", T, T, T)  # type: ignore[arg-type]


def test_what_is_shown_says_how_sure_it_is() -> None:
    cells = json.loads((FIXTURES / "quickstart.json").read_text())["attnbench"]["cells"]
    disturbed = next(cell for cell in cells if cell["status"] == "disturbed")
    text = repr(_measurement(disturbed))
    assert text.splitlines()[-1] == f"disturbed: {disturbed['reason']}"
    ok = _measurement(next(cell for cell in cells if cell["status"] == "ok"))
    assert repr(ok).endswith("\nok")
    shown = replace(
        ok, timing="backward", median_seconds=2.5e-5, low_seconds=2.25e-5, high_seconds=1.5, interval="order",
        rounds=9, rounds_disturbed=4, workspace_bytes=512, peak_bytes=3 << 19, compile_seconds=3.5,
    )  # fmt: skip
    assert repr(shown).splitlines()[1:] == [
        "backward 25 µs (22.5 µs to 1.5 s, 95 %)",
        "rounds 9, disturbed 4",
        "the first call, not timed, took 3.5 s more",
        "workspace 512 B, peak 1.5 MiB",
        "ok",
    ]
    assert "first call" not in repr(replace(shown, compile_seconds=2.5e-4))
    none = replace(shown, median_seconds=None, peak_bytes=None, status="timeout", reason="60 s")
    assert repr(none).splitlines()[1:] == ["timeout: 60 s"]
