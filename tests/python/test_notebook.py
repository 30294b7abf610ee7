"""A run in a notebook's kernel: the table is shown, and progress is one output that is updated.

The notebooks of docs/ run from the first cell to the last, and show pictures.
"""

from __future__ import annotations

import base64
import importlib.util
import io
from pathlib import Path

import nbformat
import pytest
from conftest import FIXTURES, at_night
from matplotlib.image import imread
from nbclient import NotebookClient
from test_run import SHORT, TINY


@at_night
def test_a_notebook_shows_table_and_progress(program: str, tmp_path: Path) -> None:
    book = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    code = f"""
import attnbench, warnings
warnings.simplefilter("ignore")  # cells that are disturbed
seen = attnbench.progress.in_notebook()
table = attnbench.run({TINY!r}, **{SHORT!r})
print("in a notebook:", seen)
table[["label", "length", "median_seconds"]]
"""
    book.cells = [nbformat.v4.new_code_cell(code)]  # type: ignore[no-untyped-call]
    client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    kinds = [output.output_type for output in book.cells[0].outputs]
    assert kinds == ["display_data", "stream", "execute_result"]
    assert book.cells[0].outputs[1].text == "in a notebook: True\n"
    assert "median_seconds" in book.cells[0].outputs[2].data["text/html"]


@at_night
@pytest.mark.parametrize("name", ["first_steps", "my_mechanism"])
def test_the_notebooks_of_the_documents(name: str, program: str, tmp_path: Path) -> None:
    file = FIXTURES.parents[2] / f"docs/{name}.ipynb"
    book = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in book.cells)
    before = "import sys, warnings\nwarnings.simplefilter('ignore')  # cells that are disturbed\n"
    if importlib.util.find_spec("torch") is None:
        # A notebook that imports PyTorch and leaves computing to the worker, which has its own.
        (tmp_path / "stand_in").mkdir()
        (tmp_path / "stand_in/torch.py").touch()
        before += f"sys.path.append({str(tmp_path / 'stand_in')!r})\n"
    book.cells.insert(0, nbformat.v4.new_code_cell(before))  # type: ignore[no-untyped-call]
    measured = "assert len(set(table.label)) == 2\nassert (table.median_seconds > 0).all()"
    book.cells.append(nbformat.v4.new_code_cell(measured))  # type: ignore[no-untyped-call]
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output.output_type == "error"]
    data = [output.data for output in shown if "data" in output]
    pictures = [base64.b64decode(one["image/png"]) for one in data if "image/png" in one]
    assert len(pictures) == 1
    for picture in pictures:
        assert imread(io.BytesIO(picture), format="png").std() > 0.02
    words = "\n".join(one["text/plain"] for one in data)
    expected = {"first_steps": "Verdict\n", "my_mechanism": "all properties hold"}
    assert expected[name] in words
    assert "median_seconds" in words
