"""A run in a notebook's kernel: the table is shown, and progress is one output that is updated."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from test_run import SHORT, TINY


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
