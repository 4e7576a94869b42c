"""The blocks of docs/python.md and README.md run in order, as one script each; the notebook runs from top to bottom."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "least_lines"), [("README.md", 4), ("docs/python.md", 60)])
def test_the_page_runs_from_top_to_bottom(page: str, least_lines: int, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    script: list[str] = []
    for found in re.finditer(r"^```python(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        line = text[: found.start(2)].count("\n")
        ast.parse(found[2])
        if found[1].strip() != "no-run":
            # Every line of the script stands where the page has it.
            script += [""] * (line - len(script)) + found[2].splitlines()
    assert len([each for each in script if each]) >= least_lines
    file = tmp_path / "page.py"
    file.write_text("\n".join(script) + "\n", encoding="utf-8")
    done = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    text = (ROOT / "docs/python.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is stored without outputs"
    os.environ["IPYTHONDIR"] = str(tmp_path)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    done = client.execute()
    shown = [output for cell in done.cells for output in cell.get("outputs", [])]
    pages = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    framed = [page for page in pages if page.startswith("<iframe srcdoc=")]
    assert len(framed) == 2
    assert all(len(page) < 600_000 for page in framed), [len(page) for page in framed]
